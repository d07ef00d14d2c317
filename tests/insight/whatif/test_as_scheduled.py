"""A simulation goes as scheduling goes, and a snapshot decides as the scheduler that it is of.

The clusters are those of the placement properties: taints, ports, affinity, spreading.
"""

from typing import Any

from hypothesis import given

from berth.insight.offline.explain import describe
from berth.insight.whatif.live import LiveSnapshots
from berth.insight.whatif.snapshot import Snapshot
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.config.load import default_configuration
from berth.scheduler.cycle import Cycle
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.profile.build import args_models, build_profiles
from berth.scheduler.profile.profile import Profile
from berth.scheduler.schedule_pod import evaluate_pod, smallest_name
from berth_plugins.registry import IN_TREE
from tests.builders import disruption_budget, node, pod, selector
from tests.harness import Harness
from tests.insight.whatif.asking import ask, deployment, reread
from tests.properties.test_placements import Place, Want, clusters, wants

CONFIG = default_configuration(args_models(IN_TREE))
SEED = 1


def taken(harness: Harness) -> Snapshot:
    return LiveSnapshots(harness.core).take()


def waiting(nodes: list[Any], pods: list[Any]) -> Harness:
    harness = Harness()
    harness.put(*nodes)
    for each in pods:
        harness.put(each)
    return harness


@given(clusters, wants)
async def test_pods_are_placed_as_the_scheduler_places_them(
    places: list[Place], pods: list[Want]
) -> None:
    harness = waiting([p.object() for p in places], [want.object() for want in pods])
    before = taken(harness)
    harness.core.outside.rng.seed(SEED)
    await harness.pass_time(400)

    found = ask(reread(before), seed=SEED)

    assert found.placements == {
        f"default/{name}": where for name, where in harness.placements().items()
    }
    told = {key: group.message for group in found.unplaced for key in group.pods}
    assert told.keys() == {f"default/{w.name}" for w in pods} - found.placements.keys()


def decided(profile: Profile, nodes: NodeTable, pending: Pod) -> dict[str, Any]:
    cycle = Cycle(profile, PodInfo(pending), nodes, {})
    return describe(evaluate_pod(cycle, select=smallest_name(nodes)), nodes)


@given(clusters, wants)
async def test_a_snapshot_decides_as_the_live_table(places: list[Place], pods: list[Want]) -> None:
    *running, pending = pods
    harness = waiting([p.object() for p in places], [want.object() for want in running])
    await harness.until_idle()
    (live,) = harness.scheduler.profiles.values()

    cluster = reread(taken(harness)).scenario()
    handle = Handle(cluster.cache.table, listers=cluster.listers, pod=cluster.pods.get)
    (profile,) = build_profiles(CONFIG, IN_TREE, handle).values()

    asked = pending.object()
    assert decided(profile, cluster.cache.table, asked) == decided(live, harness.cache.table, asked)
    harness.cache.refresh_order()
    order = harness.cache.table.order.tolist()
    assert [n.name for n in taken(harness).objects["Node"] if isinstance(n, Node)] == list(
        harness.cache.table.names(order)
    )


def busy() -> Harness:
    """A scheduler with a bound, an assumed, a nominated and a ghost's pod."""
    harness = waiting([node("one", cpu="1"), node("two", cpu="1")], [])
    harness.cluster.listers.pod_disruption_budgets.on_add(disruption_budget(selects=selector()))
    bound, assumed = pod("bound", cpu="1", node="one"), pod("assumed")
    harness.put(bound, pod("ghost", node="gone"))
    harness.cluster.pods["default/assumed"] = assumed
    harness.cache.assume_pod(PodInfo(assumed).on_node("two"))
    nominated = pod("nominated", cpu="2")
    harness.cluster.pods["default/nominated"] = nominated
    harness.queue.nominator.add_nominated_pod(PodInfo(nominated), node_name="one")
    return harness


def test_a_snapshot_tells_what_the_scheduler_thinks() -> None:
    found = taken(busy())
    pods = [each for each in found.objects["Pod"] if isinstance(each, Pod)]
    assert [(p.metadata.name, p.spec.node_name, p.status.nominated_node_name) for p in pods] == [
        ("bound", "one", ""),
        ("assumed", "two", ""),
        ("ghost", "gone", ""),
        ("nominated", "", "one"),
    ]
    assert found.objects["PodDisruptionBudget"] == [disruption_budget(selects=selector())]


def test_what_if_does_not_touch_what_is() -> None:
    harness = busy()
    before = b"".join(taken(harness).encode())
    ask(
        taken(harness),
        templates=[{"manifest": deployment(priority=9), "replicas": 3}],
        removeNodes={"names": ["two"]},
        addNodes=[{"like": "one"}],
        removePods={"names": ["ghost"]},
        findNodes={"like": "one"},
        preemption=True,
    )
    assert b"".join(taken(harness).encode()) == before
    harness.cache.check_invariants()
    harness.queue.check_invariants()
