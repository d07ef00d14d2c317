"""A plugin that fails is what explain tells about, and no reason to fail itself."""

import numpy as np
import pytest

from berth.insight.explain.tables import render
from berth.runtime.tables import as_text
from berth.scheduler.framework.change import Detail
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.explanation import Explains
from berth.scheduler.framework.interface import FilterPlugin, PreFilterPlugin, ScorePlugin, Scores
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.framework.verdict import PASS, Rejection, Verdict
from tests.builders import node, pod, taint
from tests.harness import Harness, with_plugins
from tests.insight.explain.asking import explain, verdict


class Raising(FilterPlugin):
    """Raises when it is asked about all nodes."""

    NAME = "Raising"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        raise ValueError("no idea")


class FailingOn(FilterPlugin):
    """Fails on the nodes n2 and n3, and knows it."""

    NAME = "FailingOn"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        where = nodes.rows_named(["n2", "n3"])
        return Verdict((Rejection("no answer", Code.ERROR, where),)) if where.any() else PASS


class FailingFirst(PreFilterPlugin):
    NAME = "FailingFirst"

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        raise ValueError("no idea")


class FailingLast(ScorePlugin):
    NAME = "FailingLast"

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        raise ValueError("no idea")


class Mumbling(FilterPlugin, Explains):
    """Rejects all nodes, and explains it in its own way."""

    NAME = "Mumbling"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        return Verdict.reject(Status.unschedulable("no"), where=np.ones(nodes.size, bool))

    def explain(  # type: ignore[override] # that is the point
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int
    ) -> list[str | Detail]:
        return ["because"]


async def tried(kind: type[FilterPlugin] | type[PreFilterPlugin] | type[ScorePlugin]) -> Harness:
    harness = with_plugins(kind)
    harness.put(node("n1", taints=[taint("a")]), *(node(f"n{i}") for i in (2, 3, 4)), pod("p"))
    await harness.until_idle()
    return harness


async def test_nodes_that_nobody_evaluated_are_not_said_to_fit() -> None:
    told = explain(await tried(Raising), "default/p")

    evaluated = told.evaluation
    assert evaluated is not None
    assert evaluated.error == "running \"Raising\" filter plugin: ValueError('no idea')"
    assert (evaluated.failed_plugin, evaluated.num_not_evaluated, evaluated.num_feasible) == (
        "Raising",
        3,
        0,
    )
    assert (evaluated.choice, evaluated.nearest_miss) == (None, None)
    assert [each.node for each in evaluated.nodes if each.fits] == []
    assert verdict(evaluated, "n1").plugin == "TaintToleration"
    lines = as_text(render(told), width=200).splitlines()
    assert [line.split() for line in lines if line.startswith(("n2", "n3", "n4"))] == [
        [name, "not", "evaluated"] for name in ("n2", "n3", "n4")
    ]


async def test_the_event_names_the_nodes_that_the_plugin_failed_on() -> None:
    harness = await tried(FailingOn)

    text = 'running "FailingOn" filter plugin: no answer (node n2 and 1 more)'
    assert [event.note for event in harness.cluster.events] == [text]
    evaluated = explain(harness, "default/p").evaluation
    assert evaluated is not None
    assert evaluated.error == text
    assert verdict(evaluated, "n2").plugin == "FailingOn"
    assert verdict(evaluated, "n2").code == "Error"
    assert verdict(evaluated, "n4").plugin == ""


@pytest.mark.parametrize(
    ("kind", "not_evaluated", "fitting"),
    [
        pytest.param(FailingFirst, 4, 0, id="in PreFilter, nobody was asked about nodes"),
        pytest.param(FailingLast, 0, 3, id="in Score, all were evaluated and some fit"),
    ],
)
async def test_what_is_known_of_nodes_depends_on_where_it_failed(
    kind: type[PreFilterPlugin] | type[ScorePlugin], not_evaluated: int, fitting: int
) -> None:
    evaluated = explain(await tried(kind), "default/p").evaluation

    assert evaluated is not None
    assert "no idea" in evaluated.error
    assert evaluated.num_not_evaluated == not_evaluated
    assert sum(each.fits for each in evaluated.nodes) == evaluated.num_feasible == fitting


async def test_a_plugin_that_fails_behind_others_is_left_out() -> None:
    harness = with_plugins(Raising)
    harness.put(node("n1", taints=[taint("a")]), pod("p"))
    await harness.until_idle()

    evaluated = explain(harness, "default/p").evaluation
    assert evaluated is not None
    assert [obstacle.plugin for obstacle in verdict(evaluated).obstacles] == ["TaintToleration"]


async def test_an_explanation_in_another_form_costs_the_details_only() -> None:
    evaluated = explain(await tried(Mumbling), "default/p").evaluation

    assert evaluated is not None
    obstacle = next(o for o in verdict(evaluated, "n2").obstacles if o.plugin == "Mumbling")
    assert (obstacle.reasons, obstacle.details) == (("no",), ())
