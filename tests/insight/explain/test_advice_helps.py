"""Whatever is advised helps once it is done, or says that it may not."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import pytest
from msgspec.structs import replace

from berth.insight.explain.explanation import NearestMiss
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Affinity, Pod, TopologySpreadConstraint
from berth.kube.objects.taints import written
from berth.scheduler.framework.change import Change, ChangeKind
from berth.scheduler.framework.pod_info import PodInfo
from tests.builders import (
    HOSTNAME,
    ZONE,
    affinities,
    node,
    node_affinity,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    requirement,
    selector,
    spread,
    taint,
    term,
)
from tests.insight.explain.asking import evaluation

CLUSTERS: Final = 60
RACK: Final = "rack"
LABELS: Final = {"disk": ("ssd", "hdd"), RACK: ("r1", "r2", "r3"), "cores": ("4", "16")}
APPS: Final = ("web", "db", "cache")


def cordoned(name: str = "n1", **more: object) -> Node:
    return node(
        name,
        unschedulable=True,
        taints=[taint("node.kubernetes.io/unschedulable")],
        **more,  # type: ignore[arg-type] # what node() takes
    )


def wants(*demands: tuple[str, str, tuple[str, ...]]) -> Affinity:
    asked = [requirement(key, operator, *values) for key, operator, values in demands]
    return node_affinity(required=[term(*asked)])


@pytest.mark.parametrize(
    ("waiting", "objects", "advice"),
    [
        pytest.param(
            pod(affinity=wants(("disk", "In", ("ssd", "nvme")), ("disk", "NotIn", ("ssd",)))),
            [node(labels={"disk": "hdd"})],
            "n1: label it disk=nvme",
            id="one value for all that is asked of a label",
        ),
        pytest.param(
            pod(
                node_selector={"disk": "ssd"},
                affinity=wants(("disk", "DoesNotExist", ())),
            ),
            [node()],
            None,
            id="no label is to be added and removed",
        ),
        pytest.param(
            pod(
                node_selector={RACK: "r1"},
                affinity=pod_anti_affinity(required=[pod_term({"app": "web"}, key=RACK)]),
            ),
            [
                node("n1"),
                node("n2", labels={RACK: "r1"}, taints=[taint("node.kubernetes.io/not-ready")]),
                pod("old", labels={"app": "web"}, node="n2"),
            ],
            "n1: label it rack=r1; take what keeps it away (1) out of rack=r1",
            id="a label puts anti-affinity in force",
        ),
        pytest.param(
            pod(
                labels={"app": "web"},
                affinity=affinities(
                    pod_affinity(required=[pod_term({"app": "web"})]),
                    pod_anti_affinity(required=[pod_term({"app": "web"})]),
                ),
            ),
            [node(), pod("old", labels={"app": "web"}, node="n1")],
            "n1: take what keeps it away (1) out of kubernetes.io/hostname=n1",
            id="near its own kind, which it may be the first of, and away from it",
        ),
        pytest.param(
            pod(affinity=pod_affinity(required=[pod_term({"app": "db"})])),
            [node()],
            "n1: have a pod to be near in kubernetes.io/hostname=n1; that may not be enough",
            id="a pod to be near that there is none like",
        ),
        pytest.param(
            pod(spread=[spread(RACK, selector=selector({"app": "web"}))], labels={"app": "web"}),
            [
                node("n1", taints=[taint("a")], labels={RACK: "r1"}),
                node("n2"),
            ],
            "n1: remove taint a:NoSchedule, or tolerate it",
            id="a taint before a label for which any value will do",
        ),
        pytest.param(
            pod(spread=[spread(RACK, selector=selector({"app": "web"}))], labels={"app": "web"}),
            [node("n1", labels={RACK: "r1"}, unschedulable=True), node("n2")],
            "n1: uncordon it, or tolerate node.kubernetes.io/unschedulable",
            id="a cordon without its taint",
        ),
        pytest.param(
            pod(),
            [cordoned()],
            "n1: uncordon it, or tolerate node.kubernetes.io/unschedulable",
            id="a cordon and its taint go together",
        ),
        pytest.param(
            pod(spread=[spread(RACK, selector=selector({"app": "web"}))], labels={"app": "web"}),
            [node("n1"), node("n2")],
            "n1: label it rack=new",
            id="a label of which any value will do gets one that was tried",
        ),
    ],
)
def test_advice_was_tried(waiting: Pod, objects: list[Node | Pod], advice: str | None) -> None:
    evaluated = evaluation(waiting, *objects)

    miss = evaluated.nearest_miss
    assert (miss and miss.words) == advice
    assert (miss is None) or miss.is_complete is ("may not" not in miss.words)


def test_a_node_on_which_nothing_helps_is_told() -> None:
    waiting = pod(
        affinity=affinities(
            pod_affinity(required=[pod_term({"app": "db"})]),
            pod_anti_affinity(required=[pod_term({"app": "db"})]),
        )
    )
    evaluated = evaluation(waiting, node(), node("n2"), pod("db", labels={"app": "db"}, node="n2"))

    assert evaluated.nearest_miss is None
    assert "no change helps on the 2 nodes that came nearest: each puts others in the way" in (
        evaluated.notes
    )


# Random clusters.


@dataclass
class Cluster:
    """What there is beside the pod that waits."""

    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)


def some_cluster(rng: random.Random) -> Cluster:
    found = Cluster()
    for number in range(rng.randint(2, 6)):
        name = f"n{number}"
        labels = {k: rng.choice(values) for k, values in LABELS.items() if rng.random() < 0.6}
        labels[ZONE] = rng.choice("ab")
        is_cordoned = rng.random() < 0.15
        taints = [taint(key) for key in ("dedicated", "spot") if rng.random() < 0.3]
        if is_cordoned:
            taints.append(taint("node.kubernetes.io/unschedulable"))
        found.nodes[name] = node(
            name,
            cpu=4,
            memory="8Gi",
            pods=rng.choice((3, 110)),
            allocatable={"example.com/gpu": rng.choice((0, 2))},
            labels={**labels, HOSTNAME: name},
            taints=taints,
            unschedulable=is_cordoned,
        )
        for place in range(rng.randint(0, 3)):
            app = rng.choice(APPS)
            away = pod_anti_affinity(
                required=[pod_term({"app": rng.choice(APPS)}, key=rng.choice((HOSTNAME, RACK)))]
            )
            each = pod(
                f"{name}-{place}",
                labels={"app": app},
                cpu=f"{rng.randint(1, 16)}00m",
                memory=f"{rng.randint(1, 3)}Gi",
                ports=[8080] if rng.random() < 0.2 else [],
                affinity=away if rng.random() < 0.2 else None,
                node=name,
            )
            found.pods[each.key] = each
    return found


def some_pod(rng: random.Random) -> Pod:
    """A pod with one cause or several not to fit, which may contradict each other."""
    demands: list[tuple[str, str, tuple[str, ...]]] = []
    for key, values in LABELS.items():
        for _ in range(rng.choice((0, 0, 1, 2))):
            operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))
            chosen = tuple(rng.sample(values, rng.randint(1, 2)))
            demands.append((key, operator, chosen if operator in ("In", "NotIn") else ()))
    if rng.random() < 0.2:
        demands.append(("cores", rng.choice(("Gt", "Lt")), ("8",)))
    parts = [wants(*demands)] if demands else []
    keys = (HOSTNAME, RACK, ZONE)
    for make in (pod_affinity, pod_anti_affinity):
        if rng.random() < 0.3:
            about = pod_term({"app": rng.choice(APPS)}, key=rng.choice(keys))
            parts.append(make(required=[about]))
    app = rng.choice(APPS)
    spreads = [spread(key, selector=selector({"app": app})) for key in keys if rng.random() < 0.2]
    return pod(
        "waiting",
        labels={"app": app},
        cpu=rng.choice(("100m", "2", "6")),
        memory=rng.choice(("1Gi", "6Gi")),
        requests={"example.com/gpu": 1} if rng.random() < 0.2 else {},
        ports=[8080] if rng.random() < 0.3 else [],
        affinity=affinities(*parts) if parts else None,
        spread=spreads,
        node_selector={"disk": "ssd"} if rng.random() < 0.2 else {},
    )


class Operator:
    """Does what is advised, as a person would, without asking the scheduler."""

    def __init__(self, cluster: Cluster, waiting: Pod, miss: NearestMiss) -> None:
        self.waiting = waiting
        self.nodes = dict(cluster.nodes)
        self.pods = dict(cluster.pods)
        self.name = miss.node
        kinds: dict[ChangeKind, Callable[[Change], None]] = {
            ChangeKind.FREE_RESOURCE: self.free,
            ChangeKind.REQUEST_LESS: self.larger,
            ChangeKind.FREE_POD_SLOT: self.larger,
            ChangeKind.FREE_PORT: self.close_port,
            ChangeKind.REMOVE_TAINT: self.untaint,
            ChangeKind.UNCORDON: self.uncordon,
            ChangeKind.LABEL_NODE: self.label,
            ChangeKind.MOVE_PODS: self.move,
        }
        for change in miss.changes:
            kinds[change.kind](change)

    @property
    def node(self) -> Node:
        return self.nodes[self.name]

    def set_node(self, **changes: object) -> None:
        self.nodes[self.name] = replace(self.node, **changes)

    def here(self) -> Sequence[Pod]:
        return [each for each in self.pods.values() if each.spec.node_name == self.name]

    def free(self, change: Change) -> None:
        """Have pods on the node request less, all together so much."""
        left = change.amount
        for each in self.here():
            amounts = PodInfo(each).template.requested
            given = min(left, amounts.amount(change.what))
            left -= given
            unit = "m" if change.what == "cpu" else ""
            container = each.spec.containers[0]
            rest = f"{amounts.amount(change.what) - given}{unit}"
            requests = {**container.resources.requests, change.what: rest}
            less = replace(container, resources=replace(container.resources, requests=requests))
            spec = replace(each.spec, containers=(less,))
            self.pods[each.key] = replace(each, spec=spec)
        assert not left, f"nobody has {left} of {change.what} left to give"

    def larger(self, change: Change) -> None:
        status = self.node.status
        has = PodInfo(pod(cpu=status.allocatable["cpu"], memory=status.allocatable["memory"]))
        if change.what == "cpu":
            amount = f"{has.template.requested.milli_cpu + change.amount}m"
        elif change.what == "memory":
            amount = str(has.template.requested.memory + change.amount)
        else:
            amount = str(int(status.allocatable[change.what]) + change.amount)
        self.set_node(
            status=replace(status, allocatable={**status.allocatable, change.what: amount})
        )

    def close_port(self, change: Change) -> None:
        for each in self.here():
            containers = tuple(replace(c, ports=()) for c in each.spec.containers)
            self.pods[each.key] = replace(each, spec=replace(each.spec, containers=containers))

    def untaint(self, change: Change) -> None:
        spec = self.node.spec
        left = tuple(each for each in spec.taints if written(each) != change.what)
        assert len(left) < len(spec.taints), change
        self.set_node(spec=replace(spec, taints=left))

    def uncordon(self, change: Change) -> None:
        left = tuple(t for t in self.node.spec.taints if "unschedulable" not in t.key)
        self.set_node(spec=replace(self.node.spec, taints=left, unschedulable=False))

    def label(self, change: Change) -> None:
        labels = {k: v for k, v in self.node.metadata.labels.items() if k != change.what}
        if not change.removes:
            labels[change.what] = change.values[0]
        self.set_node(metadata=replace(self.node.metadata, labels=labels))

    def move(self, change: Change) -> None:
        key, _, value = change.what.partition("=")
        if change.words.startswith("have a pod to be near"):
            wanted = self.waiting.spec.affinity
            assert wanted is not None
            assert wanted.pod_affinity is not None
            near = wanted.pod_affinity.required[0].label_selector
            assert near is not None
            new = pod("near", labels=near.match_labels, node=self.name)
            self.pods[new.key] = new
            return
        inside = [
            each
            for each in self.pods.values()
            if self.nodes[each.spec.node_name].metadata.labels.get(key) == value
        ]
        is_spread = "to spread" in change.words
        about = self._spread(key) if is_spread else None
        left = change.amount
        for each in inside:
            if about is not None and left and _matches(each, about):
                left -= 1
                del self.pods[each.key]
            elif about is None and self._is_apart(each, key):
                del self.pods[each.key]

    def _spread(self, key: str) -> TopologySpreadConstraint:
        return next(
            c for c in self.waiting.spec.topology_spread_constraints if c.topology_key == key
        )

    def _is_apart(self, other: Pod, key: str) -> bool:
        return _repels(self.waiting, other, key) or _repels(other, self.waiting, key)


def _matches(each: Pod, constraint: TopologySpreadConstraint) -> bool:
    assert constraint.label_selector is not None
    return constraint.label_selector.match_labels.items() <= each.metadata.labels.items()


def _repels(holder: Pod, other: Pod, key: str) -> bool:
    affinity = holder.spec.affinity
    terms = affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else ()
    return any(
        each.topology_key == key
        and each.label_selector is not None
        and each.label_selector.match_labels.items() <= other.metadata.labels.items()
        for each in terms
    )


@pytest.mark.slow
async def test_all_advice_for_random_causes_helps_or_says_that_it_may_not() -> None:
    counts: Counter[str] = Counter()
    seed = 0
    while counts["pending"] < CLUSTERS:
        seed += 1
        rng = random.Random(seed)
        cluster, waiting = some_cluster(rng), some_pod(rng)
        told = evaluation(waiting, *cluster.nodes.values(), *cluster.pods.values())
        if not told.message:
            continue
        counts["pending"] += 1
        if told.nearest_miss is None:
            counts["no advice"] += 1
        for miss in filter(None, (told.nearest_miss, *told.next_misses)):
            assert miss.is_complete or "may not be enough" in miss.words, (seed, miss.words)
            if not miss.is_complete:
                counts["may not help"] += 1
                continue
            done = Operator(cluster, waiting, miss)
            found = evaluation(waiting, *done.nodes.values(), *done.pods.values())
            fits = {each.node for each in found.nodes if each.fits}
            assert miss.node in fits, (seed, miss.words, found.message)
            counts["helps"] += 1
    assert counts["helps"] > CLUSTERS, counts
