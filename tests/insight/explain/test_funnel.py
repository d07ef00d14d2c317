"""The funnel of filters, against what is said of each node."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings

from berth.insight.explain.explanation import Evaluation
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from tests.builders import ZONE, node, node_affinity, pod, requirement, taint, term
from tests.harness import Harness
from tests.insight.explain.asking import evaluation, explain
from tests.insight.explain.test_counts import clusters, crowds, waiting

Step = tuple[str, int, int, int, int]
"""Plugin, nodes charged to it, nodes left after it, all that it objects to, it alone."""


def steps(evaluated: Evaluation) -> list[Step]:
    return [
        (each.plugin, each.num_rejected, each.num_left, each.num_against, each.num_only)
        for each in evaluated.funnel
    ]


NAMED = node_affinity(
    required=[
        term(fields=[requirement("metadata.name", "In", "n1")]),
        term(fields=[requirement("metadata.name", "In", "n2")]),
    ]
)


@pytest.mark.parametrize(
    ("new", "objects", "expected"),
    [
        pytest.param(pod("p"), [node("n1")], [], id="nothing is taken out"),
        pytest.param(
            pod("p", cpu=2),
            [
                node("n1", cpu=1),
                node("n2", cpu=1, taints=[taint("a")]),
                node("n3", taints=[taint("a")]),
                node("n4"),
            ],
            [("TaintToleration", 2, 2, 2, 1), ("NodeResourcesFit", 1, 1, 2, 1)],
            id="a node counts for the first plugin, and against it for the others, too",
        ),
        pytest.param(
            pod("p", cpu=2, affinity=NAMED),
            [node("n1", cpu=1), node("n2"), node("n3", cpu=1), node("n4")],
            [("NodeAffinity", 2, 2, 2, 1), ("NodeResourcesFit", 1, 1, 2, 1)],
            id="what PreFilter leaves out comes first",
        ),
        pytest.param(
            pod("p", cpu=2, claims=["none"]),
            [node("n1", cpu=1), node("n2")],
            [("VolumeRestrictions", 2, 0, 2, 2)],
            id="PreFilter rejects the pod as such",
        ),
        pytest.param(
            pod("p", cpu=2),
            [node("n1", cpu=3), pod("much", cpu=2, priority=9, nominated="n1")],
            [("NodeResourcesFit", 1, 0, 1, 1)],
            id="room that is kept for a nominated pod",
        ),
    ],
)
def test_who_takes_out_how_many(new: Pod, objects: list[Node | Pod], expected: list[Step]) -> None:
    assert steps(evaluation(new, *objects)) == expected


def test_there_is_none_without_nodes() -> None:
    assert evaluation(pod("p")).funnel == ()


@settings(deadline=None, max_examples=100)
@given(clusters, crowds, waiting)
def test_it_counts_what_is_said_of_the_nodes(
    cluster: list[Node], crowd: list[Pod], new: Pod
) -> None:
    harness = Harness()
    harness.put(*cluster, *crowd, new)
    found = explain(harness, new.key).evaluation
    assert found is not None

    rejected = [each for each in found.nodes if not each.fits]
    against = [{obstacle.plugin for obstacle in each.obstacles} for each in rejected]
    for step in found.funnel:
        charged = [each for each in rejected if each.plugin == step.plugin]
        assert step.num_rejected == len(charged)
        assert step.reasons == Counter(reason for each in charged for reason in each.reasons)
        assert step.num_against == sum(step.plugin in plugins for plugins in against)
        assert step.num_only == sum(plugins == {step.plugin} for plugins in against)
    assert {plugin for plugins in against for plugin in plugins} == {
        step.plugin for step in found.funnel
    }
    lefts = [found.num_nodes, *(step.num_left for step in found.funnel)]
    drops = [before - after for before, after in pairwise(lefts)]
    assert drops == [step.num_rejected for step in found.funnel]
    assert lefts[-1] == found.num_feasible


def test_the_next_misses_follow_the_nearest() -> None:
    objects = [node(f"n{free}", cpu=1) for free in range(7)]
    crowd = [pod(f"p{free}", cpu=f"{900 - 100 * free}m", node=f"n{free}") for free in range(7)]
    found = evaluation(pod("p", cpu=1), *objects, *crowd)
    assert found.nearest_miss is not None
    told = [found.nearest_miss.words, *(next_miss.words for next_miss in found.next_misses)]
    assert told == [f"n{free}: free {900 - 100 * free}m more cpu" for free in (6, 5, 4, 3, 2)]


def test_zones_are_no_change() -> None:
    far = node_affinity(required=[term(requirement(ZONE, "In", "b"))])
    found = evaluation(pod("p", affinity=far), node("n1", zone="a"), node("n2", zone="a"))
    assert (found.nearest_miss, found.next_misses) == (None, ())
