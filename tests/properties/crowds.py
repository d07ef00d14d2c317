"""Random clusters whose pods get in each other's way in every way that plugins follow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import strategies as st

from berth.kube.objects.node import Node
from berth.kube.objects.pod import (
    Affinity,
    GCEPersistentDisk,
    Pod,
    TopologySpreadConstraint,
    Volume,
)
from berth.kube.objects.policy import PodDisruptionBudget
from berth.scheduler.config.load import from_object
from berth.scheduler.cycle import Cycle
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import Plugin
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.profile.build import args_models, build_profiles
from berth.scheduler.profile.profile import Profile
from berth_plugins.registry import IN_TREE
from tests.builders import (
    HOSTNAME,
    ZONE,
    affinities,
    disruption_budget,
    node,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    selector,
    spread,
)
from tests.harness import configuration_of
from tests.volume_builders import claim, listers, volume

CPU, PRIORITY = 4, 5
"""Of every node, and of the pod that is tried."""

SINGLE = "single"
"""A claim that only one pod may use."""
STORAGE = (
    claim(SINGLE, modes=["ReadWriteOncePod"], bound_to="pv"),
    volume("pv", claim=claim(SINGLE), modes=["ReadWriteOncePod"]),
)
DISK = Volume("disk", gce_persistent_disk=GCEPersistentDisk("disk"))

Extra = Mapping[str, Any]
"""What makes a pod special, for the builder."""


@dataclass(frozen=True)
class Crowd:
    """A cluster, and the pod that is tried."""

    nodes: Sequence[Node]
    running: Sequence[Pod]
    pending: Pod
    nominated: Mapping[str, Sequence[Pod]] = field(default_factory=dict)
    budgets: Sequence[PodDisruptionBudget] = ()

    def cycle(self, *plugins: type[Plugin], rng: Random | None = None) -> Cycle:
        """Begin a cycle of the default profile with *plugins*."""
        nodes = self.table()
        known: Listers = listers(*STORAGE)
        for budget in self.budgets:
            known.pod_disruption_budgets.on_add(budget)
        handle = Handle(
            nodes,
            listers=known,
            rng=rng or Random(0),
            pod={self.pending.key: self.pending}.get,
        )
        nominated = {name: list(map(PodInfo, pods)) for name, pods in self.nominated.items()}
        return Cycle(profile(handle, plugins), PodInfo(self.pending), nodes, nominated)

    def table(self) -> NodeTable:
        nodes = NodeTable()
        for one in self.nodes:
            nodes.add_node(one)
        for other in self.running:
            nodes.add_pod(nodes.row_of[other.spec.node_name], PodInfo(other))
        nodes.order = nodes.generation.argsort()
        return nodes


def profile(handle: Handle, plugins: Sequence[type[Plugin]]) -> Profile:
    registry = {**IN_TREE, **{kind.NAME: kind for kind in plugins}}
    models = args_models(registry)
    config = configuration_of(None, models)
    if plugins:
        written = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {"plugins": {"multiPoint": {"enabled": [{"name": p.NAME} for p in plugins]}}}
            ],
        }
        config = from_object(written, source="test", args_models=models)
    (made,) = build_profiles(config, registry, handle).values()
    return made


apps = st.sampled_from(["web", "db"])
keys = st.sampled_from([HOSTNAME, ZONE])


@st.composite
def keeping_off(draw: st.DrawFn) -> Affinity:
    return pod_anti_affinity(required=[pod_term({"app": draw(apps)}, key=draw(keys))])


@st.composite
def near(draw: st.DrawFn) -> Affinity:
    terms = st.builds(lambda app, key: pod_term({"app": app}, key=key), apps, keys)
    return pod_affinity(required=draw(st.lists(terms, min_size=1, max_size=2)))


@st.composite
def constraints(draw: st.DrawFn) -> TopologySpreadConstraint:
    return spread(
        draw(keys),
        max_skew=draw(st.integers(1, 2)),
        selector=selector({"app": draw(apps)}),
        min_domains=draw(st.sampled_from([None, None, 2])),
    )


extras: st.SearchStrategy[Extra] = st.one_of(
    st.just({}),
    st.just({"ports": [80]}),
    st.just({"volumes": [DISK]}),
    st.just({"claims": [SINGLE]}),
    keeping_off().map(lambda affinity: {"affinity": affinity}),
)


@st.composite
def running_pods(draw: st.DrawFn, name: str, on: str) -> Pod:
    return pod(
        name,
        node=on,
        cpu=draw(st.integers(0, 2)),
        labels={"app": draw(apps)},
        priority=draw(st.sampled_from([0, 0, 1, 1, 1, 9])),
        started=draw(st.sampled_from([None, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"])),
        **draw(extras),
    )


@st.composite
def pending_pods(draw: st.DrawFn) -> Pod:
    """Draw pods that are likely to be in need of somebody's eviction, each for its own reasons."""
    app = draw(apps)
    reasons = draw(
        st.sets(st.sampled_from(["room", "spread", "off", "near", "volume"]), min_size=1)
    )
    parts = [keeping_off()] * ("off" in reasons) + [near()] * ("near" in reasons)
    affinity = [draw(part) for part in parts]
    return pod(
        "pending",
        cpu=draw(st.integers(3, CPU)) if "room" in reasons else 0,
        labels={"app": app},
        priority=PRIORITY,
        ports=draw(st.sampled_from([(), (), (80,)])),
        volumes=(DISK,) if "volume" in reasons else (),
        claims=draw(st.sampled_from([(), (SINGLE,)])) if "volume" in reasons else (),
        spread=draw(st.lists(constraints(), min_size=1, max_size=2, unique_by=topology_key))
        if "spread" in reasons
        else (),
        affinity=affinities(*affinity) if affinity else None,
    )


def topology_key(constraint: TopologySpreadConstraint) -> str:
    return constraint.topology_key


@st.composite
def crowds(draw: st.DrawFn, *, most_nodes: int = 4) -> Crowd:
    """Draw clusters in which nobody shares what cannot be shared, as the scheduler would see to."""
    nodes = [
        node(f"n{i}", cpu=CPU, zone=draw(st.sampled_from(["a", "b", "a", "b", ""])))
        for i in range(draw(st.integers(2, most_nodes)))
    ]
    running: list[Pod] = []
    is_claimed = False
    for one in nodes:
        has_port = False
        for _ in range(draw(st.integers(1, 3))):
            drawn = draw(running_pods(f"p{len(running)}", one.name))
            if drawn.spec.containers[0].ports:
                if has_port:
                    continue
                has_port = True
            if any(v.persistent_volume_claim for v in drawn.spec.volumes):
                if is_claimed:
                    continue
                is_claimed = True
            running.append(drawn)
    nominated = {
        one.name: [
            pod(
                f"nominated-{one.name}",
                cpu=draw(st.integers(0, 2)),
                labels={"app": draw(apps)},
                priority=draw(st.sampled_from([4, PRIORITY, 6])),
            )
        ]
        for one in nodes
        if draw(st.integers(0, 3)) == 0
    }
    allows = draw(st.sampled_from([None, 0, 1, 2]))
    web = selector({"app": "web"})
    budgets = [] if allows is None else [disruption_budget(selects=web, allows=allows)]
    return Crowd(nodes, running, draw(pending_pods()), nominated, budgets)
