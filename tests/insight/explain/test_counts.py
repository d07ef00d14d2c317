"""Explanations of small clusters, made up at random, against what the scheduler does.

The counts must be those of the FailedScheduling message, a pod that is said to fit must be placed,
and doing what the nearest miss says must make the pod fit there. What is excluded: labels that
bring a node with pods into a topology domain.
"""

import asyncio
from collections import Counter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.insight.explain.explanation import NearestMiss
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.change import ChangeKind
from tests.builders import ZONE, node, pod, pod_anti_affinity, pod_term, selector, spread, taint
from tests.harness import Harness
from tests.insight.explain.asking import explain

NAMES = ("n1", "n2", "n3")
TAINTS = (taint("a"), taint("b", "1"), taint("c", effect="NoExecute"))
LABELS = {"app": "web"}

nodes = st.builds(
    lambda name, cpu, pods, zone, disk, taints, unschedulable: node(
        name,
        cpu=cpu,
        pods=pods,
        zone=zone,
        labels={"disk": disk} if disk else {},
        taints=taints,
        unschedulable=unschedulable,
    ),
    st.sampled_from(NAMES),
    st.integers(0, 3),
    st.integers(0, 4),
    st.sampled_from(["", "a", "b"]),
    st.sampled_from(["", "ssd", "hdd"]),
    st.lists(st.sampled_from(TAINTS), max_size=2, unique=True),
    st.booleans(),
)
placed = st.builds(
    lambda at, cpu, port, name: pod(
        f"old-{name}", cpu=f"{cpu}m", node=at, labels=LABELS, ports=[8080] if port else []
    ),
    st.sampled_from(NAMES),
    st.integers(0, 2000),
    st.booleans(),
    st.integers(0, 5),
)
waiting = st.builds(
    lambda cpu, port, disk, spreads, alone: pod(
        "new",
        cpu=f"{cpu}m",
        ports=[8080] if port else [],
        labels=LABELS,
        node_selector={"disk": "ssd"} if disk else None,
        spread=[spread(selector=selector(LABELS))] if spreads else [],
        affinity=pod_anti_affinity(required=[pod_term(LABELS, key=ZONE)]) if alone else None,
        # Nobody is evicted: what the scheduler says is about the cluster as it is.
        preemption_policy="Never",
    ),
    st.integers(0, 3000),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
clusters = st.lists(nodes, max_size=3, unique_by=lambda each: each.name)
crowds = st.lists(placed, max_size=4, unique_by=lambda each: each.metadata.name)


@settings(deadline=None, max_examples=100)
@given(clusters, crowds, waiting)
def test_explanations_are_true(cluster: list[Node], crowd: list[Pod], new: Pod) -> None:
    harness = Harness()
    harness.put(*cluster, *crowd, new)
    evaluated = explain(harness, new.key).evaluation
    assert evaluated is not None
    asyncio.run(harness.until_idle())

    rejected = [each for each in evaluated.nodes if not each.fits]
    assert len(evaluated.nodes) == evaluated.num_nodes == len(cluster)
    if evaluated.choice is not None:
        assert (evaluated.message, evaluated.reasons, evaluated.nearest_miss) == ("", {}, None)
        best = {each.node: each.score.total for each in evaluated.nodes if each.score is not None}
        assert best[harness.placements()["new"]] == evaluated.choice.total == max(best.values())
        assert list(best.values()).count(max(best.values())) == evaluated.choice.equals + 1
        return
    (event,) = (each for each in harness.cluster.events if each.pod == new.key)
    assert event.note.removeprefix(evaluated.message)[:1] in ("", " "), "PostFilter adds to it"
    (record,) = harness.scheduler.decisions.of(new.key)
    assert record.reasons == evaluated.reasons
    assert Counter(r for each in rejected for r in each.reasons) == evaluated.reasons
    miss = evaluated.nearest_miss
    if miss is not None and not may_call_up_others(miss, crowd, new):
        assert fits_after(miss, cluster, crowd, new)


def may_call_up_others(miss: NearestMiss, crowd: list[Pod], new: Pod) -> bool:
    """Whether a new label brings pods of the node into the domains that *new* looks at."""
    relabels = any(change.kind is ChangeKind.LABEL_NODE for change in miss.changes)
    looks = new.spec.affinity is not None or bool(new.spec.topology_spread_constraints)
    return relabels and looks and any(each.spec.node_name == miss.node for each in crowd)


def fits_after(miss: NearestMiss, cluster: list[Node], crowd: list[Pod], new: Pod) -> bool:
    """Do what *miss* says and look whether the pod fits on that node then."""
    harness = Harness()
    (near,) = (each for each in cluster if each.name == miss.node)
    away: set[str] = set()
    for change in miss.changes:
        match change.kind:
            case ChangeKind.FREE_RESOURCE | ChangeKind.REQUEST_LESS | ChangeKind.FREE_POD_SLOT:
                near = enlarged(near, change.what, change.amount)
            case ChangeKind.REMOVE_TAINT:
                key = change.what.partition("=")[0].partition(":")[0]
                near = respecified(near, taints=tuple(t for t in near.spec.taints if t.key != key))
            case ChangeKind.UNCORDON:
                near = respecified(near, unschedulable=False)
            case ChangeKind.LABEL_NODE:
                label = {"disk": "ssd", ZONE: "new"}[change.what]
                labels = {**near.labels, change.what: label}
                meta = msgspec.structs.replace(near.metadata, labels=labels)
                near = msgspec.structs.replace(near, metadata=meta)
            case ChangeKind.FREE_PORT:
                away |= {p.key for p in crowd if p.spec.containers[0].ports and on(p, near)}
            case ChangeKind.MOVE_PODS:
                domain = [n.name for n in cluster if n.labels.get(ZONE) == near.labels.get(ZONE)]
                there = [p.key for p in crowd if p.spec.node_name in domain]
                away |= set(there[: change.amount])
            case ChangeKind.EDIT_POD:
                raise AssertionError("no pod here names nodes")
    harness.put(*(near if each.name == near.name else each for each in cluster))
    harness.put(*(each for each in crowd if each.key not in away), new)
    evaluated = explain(harness, new.key).evaluation
    assert evaluated is not None
    return any(each.fits for each in evaluated.nodes if each.node == near.name)


def on(placed_pod: Pod, on_node: Node) -> bool:
    return placed_pod.spec.node_name == on_node.name


def enlarged(small: Node, resource: str, amount: int) -> Node:
    old = int(small.status.allocatable[resource])
    new = f"{old * 1000 + amount}m" if resource == "cpu" else old + amount
    status = msgspec.structs.replace(
        small.status, allocatable={**small.status.allocatable, resource: new}
    )
    return msgspec.structs.replace(small, status=status)


def respecified(old: Node, **changes: object) -> Node:
    return msgspec.structs.replace(old, spec=msgspec.structs.replace(old.spec, **changes))
