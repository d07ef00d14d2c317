"""What is proposed does what it says, carried out by others on a cluster of their own."""

import asyncio
from collections import Counter
from collections.abc import Mapping

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.meta import KubeStruct
from berth.kube.objects.pod import Pod, PodStatus
from berth.scheduler.config.load import default_configuration
from berth.scheduler.core.simulated_cluster import SimulatedCluster, SimulationOptions
from berth.scheduler.framework.listers import Listers
from berth.scheduler.profile.build import args_models
from berth.scheduler.schedule_pod import smallest_name
from berth.tools.rebalance.proposal import Proposal
from berth.tools.rebalance.propose import Goals, propose
from berth_plugins.registry import IN_TREE
from tests.builders import disruption_budget, node, pod, selector
from tests.insight.whatif.asking import snapshot

APPS = ("web", "db", "free")
replace = msgspec.structs.replace


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[KubeStruct], dict[str, int]]:
    """Draw nodes with pods, budgets, and a pod that waits."""
    allowed = {app: draw(st.integers(0, 2)) for app in ("web", "db")}
    objects: list[KubeStruct] = [
        disruption_budget(app, selects=selector({"app": app}), allows=allows)
        for app, allows in allowed.items()
    ]
    for i in range(draw(st.integers(2, 4))):
        left = draw(st.integers(2, 6))
        objects.append(node(f"n{i}", cpu=str(left)))
        for j in range(draw(st.integers(0, 4))):
            cpu = draw(st.integers(1, 3))
            if cpu > left:
                break
            left -= cpu
            app = draw(st.sampled_from(APPS))
            objects.append(
                pod(
                    f"{app}-{i}-{j}",
                    node=f"n{i}",
                    cpu=str(cpu),
                    labels={"app": app},
                    owner=draw(st.sampled_from([app, app, app, None])),
                    priority=draw(st.sampled_from([0, 0, 5, 20])),
                )
            )
    objects.append(pod("w", cpu=str(draw(st.integers(1, 5))), priority=10))
    return objects, allowed


async def carry_out(
    objects: list[KubeStruct], proposal: Proposal, allowed: Mapping[str, int], *, with_w: bool
) -> SimulatedCluster:
    """Evict round by round: pods are made again while those that go still hold their room."""
    config = default_configuration(args_models(IN_TREE))
    options = SimulationOptions(preempts=False, select=smallest_name)
    cluster = SimulatedCluster(config, IN_TREE, options, listers=Listers)
    for each in objects:
        if with_w or each.metadata.name != "w":  # type: ignore[attr-defined]
            cluster.put(each)
    for step in proposal.steps:
        if step.cordon and not step.uncordon:
            cordon(cluster, step.cordon, cordoned=True)
    cluster.cache.refresh_order()
    if with_w:
        await cluster.run_until_quiet()
    for step in proposal.steps:
        if step.uncordon:
            cordon(cluster, step.cordon, cordoned=True)
        for round_ in step.rounds:
            gone = [cluster.pods[each.pod] for each in round_.evictions]
            used = Counter(each.metadata.labels["app"] for each in gone)
            assert all(used[app] <= allowed[app] for app in allowed), "a budget is violated"
            assert all(each.metadata.controller is not None for each in gone)
            for each, eviction in zip(gone, round_.evictions, strict=True):
                assert each.spec.node_name == eviction.node
                meta = replace(each.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
                cluster.put(replace(each, metadata=meta))
            for each in gone:
                name = f"{each.metadata.name}-again"
                meta = replace(each.metadata, name=name, uid=f"uid-{name}")
                spec = replace(each.spec, node_name="")
                cluster.put(Pod(metadata=meta, spec=spec, status=PodStatus(phase="Pending")))
            await cluster.run_until_quiet()
            for each in gone:
                cluster.delete(each)
            await cluster.run_until_quiet()
            for eviction in round_.evictions:
                assert cluster.pods[f"{eviction.pod}-again"].spec.node_name == eviction.goes_to
        if step.uncordon:
            cordon(cluster, step.cordon, cordoned=False)
            await cluster.run_until_quiet()
        for placement in (each for round_ in step.rounds for each in round_.placements):
            assert cluster.pods[placement.pod].spec.node_name == placement.node
    return cluster


def cordon(cluster: SimulatedCluster, name: str, *, cordoned: bool) -> None:
    found = cluster.api.nodes[name]
    cluster.put(replace(found, spec=replace(found.spec, unschedulable=cordoned)))


def on_node(cluster: SimulatedCluster, name: str) -> list[Pod]:
    return [each for each in cluster.pods.values() if each.spec.node_name == name]


@settings(max_examples=30, deadline=None)
@given(clusters())
def test_pods_fit_and_no_budget_is_violated(
    drawn: tuple[list[KubeStruct], dict[str, int]],
) -> None:
    objects, allowed = drawn
    found = propose(snapshot(*objects), Goals(for_pods=["default/w"]), IN_TREE)
    assert found == propose(snapshot(*objects), Goals(for_pods=["default/w"]), IN_TREE)
    assert bool(found.steps) != bool(found.unmet)
    if found.steps:
        cluster = asyncio.run(carry_out(objects, found, allowed, with_w=True))
        assert cluster.pods["default/w"].spec.node_name


@settings(max_examples=20, deadline=None)
@given(clusters(), st.integers(1, 2))
def test_nodes_become_empty(drawn: tuple[list[KubeStruct], dict[str, int]], number: int) -> None:
    objects, allowed = drawn
    found = propose(snapshot(*objects), Goals(num_empty_nodes=number), IN_TREE)
    assert len(found.steps) + len(found.unmet) >= 1
    assert (len(found.steps) == number) != bool(found.unmet)
    cluster = asyncio.run(carry_out(objects, found, allowed, with_w=False))
    assert all(on_node(cluster, step.cordon) == [] for step in found.steps)
