"""InterPodAffinity gives the same answers as loops over all pods and nodes (spec §5.11)."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from berth.kube.objects.meta import LabelSelector
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Affinity, Pod, PodAffinityTerm
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.pod_batch import PodBatch
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP
from berth_plugins.inter_pod_affinity.plugin import InterPodAffinityArgs, stretched
from tests.builders import (
    HOSTNAME,
    ZONE,
    affinities,
    expression,
    node,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    selector,
)
from tests.plugins.evaluating import table
from tests.plugins.inter_pod_affinity.affinity_evaluating import Rule, plugin, raw_scores, verdicts

NAMESPACES = {"a": {"team": "x"}, "b": {"team": "y"}, "c": {}}

pod_labels = st.sampled_from([{}, {"app": "web"}, {"app": "db"}])
label_selectors = st.sampled_from(
    [
        selector({"app": "web"}),
        selector(expressions=[expression("app", "In", "web", "db")]),
        selector(expressions=[expression("app", "NotIn", "db")]),
        selector(),
        None,
    ]
)
namespace_selectors = st.sampled_from(
    [
        None,
        None,
        selector(),
        selector({"team": "x"}),
        selector(expressions=[expression("team", "Exists")]),
        selector(expressions=[expression("team", "NotIn", "x")]),
    ]
)


@st.composite
def terms(draw: st.DrawFn) -> PodAffinityTerm:
    labels: LabelSelector | None = draw(label_selectors)
    return pod_term(
        labels,
        key=draw(st.sampled_from([HOSTNAME, ZONE, "rack"])),
        namespaces=draw(st.sampled_from([(), (), ("a",), ("b", "gone")])),
        namespace_selector=draw(namespace_selectors),
    )


some_terms = st.lists(terms(), max_size=2)
some_preferences = st.lists(st.tuples(st.integers(1, 100), terms()), max_size=2)


@st.composite
def pod_affinities(draw: st.DrawFn) -> Affinity:
    return affinities(
        pod_affinity(required=draw(some_terms), preferred=draw(some_preferences)),
        pod_anti_affinity(required=draw(some_terms), preferred=draw(some_preferences)),
    )


@st.composite
def pods(draw: st.DrawFn, name: str = "new", *, on: str = "") -> Pod:
    return pod(
        name,
        ns=draw(st.sampled_from(["a", "b", "c", "gone"])),
        labels=draw(pod_labels),
        affinity=draw(st.none() | pod_affinities()),
        node=on,
        deleted=draw(st.sampled_from([None, None, "2026-01-01T00:00:00Z"])) if on else None,
    )


def without(one: Node, key: str) -> Node:
    """Return *one* without the label *key*."""
    labels = {name: value for name, value in one.labels.items() if name != key}
    return structs.replace(one, metadata=structs.replace(one.metadata, labels=labels))


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], list[Pod]]:
    names = [f"n{i}" for i in range(draw(st.integers(1, 4)))]
    nodes = [
        node(
            name,
            zone=draw(st.sampled_from(["", "z1", "z2"])),
            labels=draw(st.sampled_from([{}, {"rack": "r1"}, {"rack": "r2"}, {HOSTNAME: "n0"}])),
        )
        for name in names
    ]
    nodes = [without(one, HOSTNAME) if draw(st.integers(0, 4)) == 4 else one for one in nodes]
    running = [
        draw(pods(f"p{i}", on=draw(st.sampled_from(names)))) for i in range(draw(st.integers(0, 5)))
    ]
    return nodes, running


any_args = st.builds(
    InterPodAffinityArgs,
    hard_pod_affinity_weight=st.sampled_from([0, 1, 7]),
    ignore_preferred_terms_of_existing_pods=st.booleans(),
)


@settings(max_examples=150)
@given(pods(), clusters(), st.booleans())
def test_verdicts(new: Pod, cluster: tuple[list[Node], list[Pod]], fast: bool) -> None:
    nodes, running = cluster
    got = verdicts(plugin(namespaces=NAMESPACES, fast=fast), new, table(*nodes, pods=running))

    rule = Rule(new, nodes, running, NAMESPACES, fast=fast)
    want = {one.name: rule.verdict(one) for one in nodes}
    assert (got or dict.fromkeys(want)) == want
    assert (got is None) == rule.skips()


@given(pods(), clusters())
def test_the_fast_path_decides_the_same_where_each_node_has_its_own_name(
    new: Pod, cluster: tuple[list[Node], list[Pod]]
) -> None:
    """1.37 spec N12.3."""
    nodes, running = cluster
    nodes = [
        structs.replace(
            one,
            metadata=structs.replace(one.metadata, labels={**one.labels, HOSTNAME: one.name}),
        )
        for one in nodes
    ]
    whole = table(*nodes, pods=running)
    slow, fast = (
        verdicts(plugin(namespaces=NAMESPACES, fast=fast), new, whole) for fast in (False, True)
    )
    unanimous = dict.fromkeys(one.name for one in nodes)
    assert (fast or unanimous) == (slow or unanimous)


@given(pods(), clusters(), any_args)
def test_scores(
    new: Pod, cluster: tuple[list[Node], list[Pod]], args: InterPodAffinityArgs
) -> None:
    nodes, running = cluster
    got = raw_scores(plugin(args, namespaces=NAMESPACES), new, table(*nodes, pods=running))

    assert got == Rule(new, nodes, running, NAMESPACES, args).scores()


@given(pods(), clusters(), st.data(), st.booleans())
def test_what_if_some_pods_came_and_went(
    new: Pod, cluster: tuple[list[Node], list[Pod]], data: st.DataObject, fast: bool
) -> None:
    """Of every row by itself; other questions start from what was found at first."""
    nodes, running = cluster
    whole, new_info = table(*nodes, pods=running), PodInfo(new)
    affinity, state = plugin(namespaces=NAMESPACES, fast=fast), CycleState(whole.exists.copy())
    if affinity.pre_filter(state, new_info, whole) is SKIP:
        return
    part, twin = whole.take([whole.row_of[one.name] for one in nodes]), state.clone()
    changes = [_changes(one, running, data) for one in nodes]
    for which, change, tell in (
        (0, part.remove_pods, affinity.remove_pods),
        (1, part.add_pods, affinity.add_pods),
    ):
        rows = np.array([i for i, of_row in enumerate(changes) for _ in of_row[which]], np.intp)
        pods = PodBatch([PodInfo(other) for of_row in changes for other in of_row[which]])
        change(rows, pods)
        tell(twin, new_info, rows, pods, part)
    verdict, unchanged = (
        affinity.filter(twin, new_info, part),
        affinity.filter(state, new_info, whole),
    )
    for i, one in enumerate(nodes):
        gone, come = changes[i]
        left = [other for other in running if other not in gone] + come
        assert verdict.status_of(i) == Rule(new, nodes, left, NAMESPACES, fast=fast).verdict(one)
        want = Rule(new, nodes, running, NAMESPACES, fast=fast).verdict(one)
        assert unchanged.status_of(whole.row_of[one.name]) == want


def _changes(one: Node, running: list[Pod], data: st.DataObject) -> tuple[list[Pod], list[Pod]]:
    there = [other for other in running if other.spec.node_name == one.name]
    gone = [other for other in there if data.draw(st.booleans())]
    come = data.draw(st.lists(pods("extra", on=one.name), max_size=1))
    return gone, come


@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=1)
    | st.lists(st.integers(-3, 4), min_size=1, max_size=20)
)
def test_normalizing(scores: list[int]) -> None:
    low, high = min(scores), max(scores)
    want = [int(100 * ((s - low) / (high - low))) if high > low else 0 for s in scores]
    assert stretched(np.array(scores, np.int64)).tolist() == want
