"""Whose eviction breaks a budget."""

import pytest

from berth.kube.objects.meta import LabelSelector
from berth.kube.objects.policy import PodDisruptionBudget
from berth.scheduler.framework.listers import Lister
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.disruption_budgets import DisruptionBudgets
from tests.builders import disruption_budget, expression, pod, selector

WEB = selector({"app": "web"})


def web(name: str, **labels: str) -> PodInfo:
    return PodInfo(pod(name, labels={"app": "web", **labels}))


PODS = [web("a"), web("b", tier="front"), web("c"), PodInfo(pod("bare"))]


@pytest.mark.parametrize(
    ("budgets", "violated_by"),
    [
        pytest.param([], [], id="without budgets nothing is broken"),
        pytest.param(
            [disruption_budget(selects=WEB, allows=2)],
            ["c"],
            id="the least important pods break what the others have used up",
        ),
        pytest.param(
            [disruption_budget(selects=WEB, allows=-1)], ["a", "b", "c"], id="nothing was left"
        ),
        pytest.param(
            [disruption_budget(ns="other", selects=WEB)],
            [],
            id="a budget is about its own namespace",
        ),
        pytest.param(
            [disruption_budget(selects=WEB, allows=1, granted=["a"])],
            ["c"],
            id="an eviction that was granted before is not charged",
        ),
        pytest.param(
            [
                disruption_budget("one", selects=WEB, allows=1),
                disruption_budget("two", selects=selector({"tier": "front"}), allows=0),
            ],
            ["b", "c"],
            id="a pod that breaks one budget is charged to the others as well",
        ),
        pytest.param([disruption_budget(selects=None)], [], id="no selector selects nothing"),
        pytest.param(
            [disruption_budget(selects=LabelSelector())], [], id="an empty one does not, either"
        ),
        pytest.param(
            [disruption_budget(selects=selector(expressions=[expression("app", "In")]))],
            [],
            id="nor does one that makes no sense",
        ),
        pytest.param(
            [
                disruption_budget(
                    selects=selector(expressions=[expression("app", "DoesNotExist")]), allows=0
                )
            ],
            [],
            id="pods without labels are in no budget",
        ),
    ],
)
def test_violations(budgets: list[PodDisruptionBudget], violated_by: list[str]) -> None:
    known = DisruptionBudgets(Lister(budgets))
    assert [found.name for found in known.filter_pods_with_pdb_violation(PODS)] == violated_by


@pytest.mark.parametrize(
    ("stops", "violated_by"),
    [
        pytest.param(False, ["both", "second"], id="1.36: all of its budgets"),
        pytest.param(True, ["both"], id="1.37: up to the first that it breaks"),
    ],
)
def test_a_pod_is_charged_to(stops: bool, violated_by: list[str]) -> None:
    """1.37 spec N3.7."""
    one, two = {"in": "first"}, {"also": "second"}
    budgets = [
        disruption_budget("first", selects=selector(one), allows=0),
        disruption_budget("second", selects=selector(two), allows=1),
    ]
    known = DisruptionBudgets(Lister(budgets), stops_at_first_violation=stops)
    pods = [PodInfo(pod("both", labels=one | two)), PodInfo(pod("second", labels=two))]
    assert [info.name for info in known.filter_pods_with_pdb_violation(pods)] == violated_by


def test_each_node_is_reckoned_by_itself() -> None:
    known = DisruptionBudgets(Lister([disruption_budget(selects=WEB, allows=1)]))
    assert known.filter_pods_with_pdb_violation(PODS[:1]) == []
    assert known.filter_pods_with_pdb_violation(PODS[:1]) == []


def test_changes_are_seen() -> None:
    lister = Lister([disruption_budget(selects=WEB, allows=3)])
    known = DisruptionBudgets(lister)
    assert known.filter_pods_with_pdb_violation(PODS) == []

    lister.on_add(disruption_budget(selects=WEB, allows=2))
    assert known.filter_pods_with_pdb_violation(PODS) == [PODS[2]]

    lister.on_add(disruption_budget(selects=selector({"tier": "front"}), allows=0))
    assert known.filter_pods_with_pdb_violation(PODS) == [PODS[1]]

    lister.on_delete(disruption_budget())
    assert known.filter_pods_with_pdb_violation(PODS) == []
