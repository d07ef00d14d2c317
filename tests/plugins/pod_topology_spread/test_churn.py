"""PodTopologySpread keeps counts from pod to pod, and is right whatever happens in between."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.node import Node
from berth.kube.objects.pod import TopologySpreadConstraint
from tests.builders import HOSTNAME, ZONE, selector, service, spread
from tests.plugins.churn import Churn
from tests.plugins.pod_topology_spread.spreading import final_scores, plugin, verdicts
from tests.plugins.pod_topology_spread.test_rule import (
    World,
    constraints,
    rule_filter,
    rule_scores,
    worlds,
)

STEPS = 12

dice = st.randoms(use_true_random=False)


@settings(max_examples=40)
@given(worlds(constraints(soft=False)), dice)
def test_filter_follows_the_rule_all_the_time(world: World, rng: Random) -> None:
    churn = Churn(world.nodes, world.pods)
    spreading = plugin(churn.table)
    for _ in range(STEPS):
        churn.step(rng)
        now = World(churn.nodes, churn.pods, world.waiting)
        assert verdicts(spreading, world.waiting, churn.table) == rule_filter(now)


@settings(max_examples=40)
@given(worlds(constraints(soft=True)), dice)
def test_scores_follow_the_rule_all_the_time(world: World, rng: Random) -> None:
    soft = world.waiting.spec.topology_spread_constraints
    _check_scores(world, rng, soft, by_system=False)


@settings(max_examples=40)
@given(worlds(st.just([])), dice)
def test_system_defaults_follow_the_rule_all_the_time(world: World, rng: Random) -> None:
    chosen = selector({"app": "a"})
    soft = (
        spread(HOSTNAME, max_skew=3, soft=True, selector=chosen),
        spread(ZONE, max_skew=5, soft=True, selector=chosen),
    )
    is_selected = world.waiting.metadata.labels.get("app") == "a"
    _check_scores(world, rng, soft if is_selected else (), by_system=True)


def _check_scores(
    world: World, rng: Random, soft: tuple[TopologySpreadConstraint, ...], *, by_system: bool
) -> None:
    churn = Churn(world.nodes, world.pods)
    spreading = plugin(churn.table, *([service("s", selects={"app": "a"})] if by_system else []))
    for _ in range(STEPS):
        churn.step(rng)
        feasible = _some(churn.nodes, rng)
        if not feasible:
            continue
        names = [node.name for node in feasible]
        got = final_scores(spreading, world.waiting, churn.table, on=names)
        now = World(churn.nodes, churn.pods, world.waiting)
        want = rule_scores(now, soft, feasible, by_system=by_system) if soft else None
        assert got == want


def _some(nodes: list[Node], rng: Random) -> list[Node]:
    return [node for node in nodes if rng.random() < 0.8]
