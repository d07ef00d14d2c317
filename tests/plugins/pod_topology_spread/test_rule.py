"""PodTopologySpread against its rule, written as straight loops over nodes and pods."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.meta import LabelSelector
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod, TopologySpreadConstraint
from berth.kube.objects.selectors import compile_selector, required_node_affinity
from berth.kube.objects.taints import untolerated
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.pod_batch import PodBatch
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Status
from berth_plugins.pod_topology_spread.plugin import MISSING_LABEL, SKEWED
from tests.builders import (
    HOSTNAME,
    ZONE,
    expression,
    node,
    pod,
    selector,
    service,
    spread,
    taint,
    toleration,
)
from tests.plugins.evaluating import table
from tests.plugins.pod_topology_spread.spreading import final_scores, plugin, verdicts

RACK = "example.com/rack"
NEVER = 2**31 - 1


@dataclass(frozen=True)
class World:
    """A cluster, and a pod that waits."""

    nodes: list[Node]
    pods: list[Pod]
    waiting: Pod


# The rule.


def selected(constraint: TopologySpreadConstraint, pod: Pod) -> bool:
    return compile_selector(constraint.label_selector).matches(pod.metadata.labels)


def pods_on(world: World, node: Node, constraint: TopologySpreadConstraint) -> int:
    if compile_selector(constraint.label_selector).is_empty:
        return 0
    return sum(
        other.spec.node_name == node.name
        and other.metadata.namespace == world.waiting.metadata.namespace
        and other.metadata.deletion_timestamp is None
        and selected(constraint, other)
        for other in world.pods
    )


def is_included(world: World, node: Node, constraint: TopologySpreadConstraint) -> bool:
    spec = world.waiting.spec
    required = required_node_affinity(spec)
    allowed = required is None or required.matches(node.labels, node.name)
    repelling = untolerated(node.spec.taints, spec.tolerations, effects=["NoSchedule", "NoExecute"])
    return (allowed or constraint.node_affinity_policy == "Ignore") and (
        repelling is None or constraint.node_taints_policy != "Honor"
    )


def rule_filter(world: World) -> dict[str, Status | None]:
    hard = [
        constraint
        for constraint in world.waiting.spec.topology_spread_constraints
        if constraint.when_unsatisfiable == "DoNotSchedule"
    ]
    counts: list[dict[str, int]] = [{} for _ in hard]
    for a_node in world.nodes:
        if all(constraint.topology_key in a_node.labels for constraint in hard):
            for constraint, count in zip(hard, counts, strict=True):
                if is_included(world, a_node, constraint):
                    domain = a_node.labels[constraint.topology_key]
                    count[domain] = count.get(domain, 0) + pods_on(world, a_node, constraint)

    def evaluated(a_node: Node) -> Status | None:
        for constraint, count in zip(hard, counts, strict=True):
            domain = a_node.labels.get(constraint.topology_key)
            if domain is None:
                return MISSING_LABEL
            least = min(count.values(), default=NEVER)
            if len(count) < (constraint.min_domains or 1):
                least = 0
            itself = selected(constraint, world.waiting)
            if count.get(domain, 0) + itself - least > constraint.max_skew:
                return SKEWED
        return None

    return {a_node.name: evaluated(a_node) for a_node in world.nodes}


def rule_scores(
    world: World, soft: Sequence[TopologySpreadConstraint], feasible: list[Node], *, by_system: bool
) -> dict[str, int]:
    def has_all(a_node: Node) -> bool:
        return by_system or all(c.topology_key in a_node.labels for c in soft)

    scored = [a_node for a_node in feasible if has_all(a_node)]
    costs = dict.fromkeys([a_node.name for a_node in scored], 0.0)
    for constraint in soft:
        key = constraint.topology_key
        counts = {a_node.labels.get(key, ""): 0 for a_node in scored}
        weight = math.log((len(scored) if key == HOSTNAME else len(counts)) + 2)
        for a_node in world.nodes:
            domain = a_node.labels.get(key, "")
            if has_all(a_node) and is_included(world, a_node, constraint) and domain in counts:
                counts[domain] += pods_on(world, a_node, constraint)
        for a_node in scored:
            if key in a_node.labels:
                on_node = pods_on(world, a_node, constraint)
                count = on_node if key == HOSTNAME else counts[a_node.labels[key]]
                costs[a_node.name] += count * weight + (constraint.max_skew - 1)
    whole = {name: math.floor(cost + 0.5) for name, cost in costs.items()}
    highest, lowest = max(whole.values(), default=0), min(whole.values(), default=0)
    return {a_node.name: 0 for a_node in feasible} | {
        name: 100 * (highest + lowest - cost) // highest if highest else 100
        for name, cost in whole.items()
    }


# Clusters.

apps = st.sampled_from([{}, {"app": "a"}, {"app": "b"}, {"app": "a", "version": "1"}])
selectors: st.SearchStrategy[LabelSelector | None] = st.sampled_from(
    [
        None,
        selector(),
        selector({"app": "a"}),
        selector(expressions=[expression("app", "Exists")]),
        selector(expressions=[expression("app", "NotIn", "b")]),
    ]
)
policies: st.SearchStrategy[Literal["Honor", "Ignore"] | None] = st.sampled_from(
    [None, "Honor", "Ignore"]
)


@st.composite
def clusters_nodes(draw: st.DrawFn) -> list[Node]:
    def labels() -> dict[str, str]:
        found = {
            ZONE: draw(st.sampled_from([None, "", "z1", "z2", "z3"])),
            RACK: draw(st.sampled_from([None, "r1", "r2"])),
        }
        return {key: value for key, value in found.items() if value is not None}

    return [
        node(
            f"n{i}",
            labels=labels(),
            taints=draw(st.sampled_from([[], [], [taint("t")], [taint("soft", effect="x")]])),
        )
        for i in range(draw(st.integers(1, 6)))
    ]


@st.composite
def constraints(
    draw: st.DrawFn, *, soft: bool, of: st.SearchStrategy[LabelSelector | None] = selectors
) -> list[TopologySpreadConstraint]:
    keys = draw(st.lists(st.sampled_from([ZONE, HOSTNAME, RACK]), unique=True, max_size=3))
    return [
        spread(
            key,
            max_skew=draw(st.integers(1, 3)),
            soft=soft,
            selector=draw(of),
            min_domains=None if soft else draw(st.sampled_from([None, 1, 2, 4])),
            node_affinity_policy=draw(policies),
            node_taints_policy=draw(policies),
        )
        for key in keys
    ]


@st.composite
def worlds(draw: st.DrawFn, spreads: st.SearchStrategy[list[TopologySpreadConstraint]]) -> World:
    nodes = draw(clusters_nodes())
    running = [
        pod(
            f"r{i}",
            ns=draw(st.sampled_from(["default", "default", "default", "other"])),
            labels=draw(apps),
            node=draw(st.sampled_from([n.name for n in nodes])),
            deleted=draw(st.sampled_from([None, None, None, "2026-11-20T00:00:00Z"])),
        )
        for i in range(draw(st.integers(0, 12)))
    ]
    waiting = pod(
        labels=draw(apps),
        node_selector=draw(st.sampled_from([None, None, {RACK: "r1"}])),
        tolerations=draw(st.sampled_from([[], [toleration("t")]])),
        spread=draw(spreads),
    )
    return World(nodes, running, waiting)


# The properties.


@given(worlds(constraints(soft=False)))
def test_filter_follows_the_rule(world: World) -> None:
    nodes = table(*world.nodes, pods=world.pods)
    assert verdicts(plugin(nodes), world.waiting, nodes) == rule_filter(world)


@given(worlds(constraints(soft=False)), st.randoms(use_true_random=False))
def test_filter_follows_pods_that_come_and_go(world: World, rng: Random) -> None:
    nodes = table(*world.nodes)
    spreading = plugin(nodes)
    running: list[Pod] = []
    for come in world.pods:
        running.append(come)
        nodes.add_pod(nodes.row_of[come.spec.node_name], PodInfo(come))
        if rng.random() < 0.3:
            gone = running.pop(rng.randrange(len(running)))
            nodes.remove_pod(nodes.row_of[gone.spec.node_name], PodInfo(gone))
        now = World(world.nodes, running, world.waiting)
        assert verdicts(spreading, world.waiting, nodes) == rule_filter(now)


@given(worlds(constraints(soft=False)))
def test_a_row_is_evaluated_alike_in_a_table_of_its_own(world: World) -> None:
    nodes = table(*world.nodes, pods=world.pods)
    spreading, state = plugin(nodes), CycleState(nodes.exists.copy())
    info = PodInfo(world.waiting)
    if spreading.pre_filter(state, info, nodes) is SKIP:
        return
    whole = spreading.filter(state, info, nodes)
    for row in nodes.row_of.values():
        alone = spreading.filter(state.clone(), info, nodes.take([row]))
        assert alone.status_of(0) == whole.status_of(row)


@given(worlds(constraints(soft=False, of=selectors.filter(lambda s: s != selector()))), st.data())
def test_pods_that_come_and_go_in_thought_count_as_if_they_did(
    world: World, data: st.DataObject
) -> None:
    """Of every node by itself, as preemption asks: all of its pods go and some come back."""
    nodes = table(*world.nodes, pods=world.pods)
    spreading, whole = plugin(nodes), CycleState(nodes.exists.copy())
    info = PodInfo(world.waiting)
    if spreading.pre_filter(whole, info, nodes) is SKIP:
        return
    names, state = [*nodes.row_of], whole.clone()
    part = nodes.take(nodes.row_of.values())
    gone, come = [], []
    for i, name in enumerate(names):
        here = [p for p in part.pods[i].values() if p.pod.metadata.deletion_timestamp is None]
        gone += [(i, other) for other in here]
        back = data.draw(st.lists(st.sampled_from(here), unique=True)) if here else []
        nominated = [PodInfo(pod(f"new-{n}", labels={"app": "a"}, node=name)) for n in range(2)]
        come += [(i, p) for p in [*back, *data.draw(st.sampled_from([[], nominated]))]]
    for changes, change, tell in (
        (gone, part.remove_pods, spreading.remove_pods),
        (come, part.add_pods, spreading.add_pods),
    ):
        rows, pods = np.array([i for i, _ in changes], np.intp), PodBatch([p for _, p in changes])
        change(rows, pods)
        tell(state, info, rows, pods, part)
    verdict = spreading.filter(state, info, part)
    for i, name in enumerate(names):
        elsewhere = [other for other in world.pods if other.spec.node_name != name]
        after = World(
            world.nodes, [*elsewhere, *(p.pod for p in part.pods[i].values())], world.waiting
        )
        assert verdict.status_of(i) == rule_filter(after)[name]
    # Other questions start from what was found at first.
    assert {
        name: spreading.filter(whole, info, nodes).status_of(row)
        for name, row in nodes.row_of.items()
    } == rule_filter(world)


def some_of(nodes: list[Node]) -> st.SearchStrategy[list[Node]]:
    return st.lists(st.sampled_from(nodes), unique_by=lambda n: n.name, min_size=1)


@given(worlds(constraints(soft=True)), st.data())
def test_scores_follow_the_rule(world: World, data: st.DataObject) -> None:
    nodes = table(*world.nodes, pods=world.pods)
    feasible = data.draw(some_of(world.nodes))
    got = final_scores(plugin(nodes), world.waiting, nodes, on=[n.name for n in feasible])
    soft = world.waiting.spec.topology_spread_constraints
    assert got == (rule_scores(world, soft, feasible, by_system=False) if soft else None)


@given(worlds(st.just([])), st.data())
def test_system_defaults_follow_the_rule(world: World, data: st.DataObject) -> None:
    nodes = table(*world.nodes, pods=world.pods)
    feasible = data.draw(some_of(world.nodes))
    spreading = plugin(nodes, service("s", selects={"app": "a"}))
    got = final_scores(spreading, world.waiting, nodes, on=[n.name for n in feasible])
    if world.waiting.metadata.labels.get("app") != "a":
        assert got is None
        return
    chosen = selector({"app": "a"})
    soft = [
        spread(HOSTNAME, max_skew=3, soft=True, selector=chosen),
        spread(ZONE, max_skew=5, soft=True, selector=chosen),
    ]
    assert got == rule_scores(world, soft, feasible, by_system=True)
