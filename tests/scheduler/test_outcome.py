"""What an attempt came to, and what is reported of it."""

import numpy as np
import pytest

from berth.scheduler.find_nodes_that_fit import NO_ROWS, FeasibleNodes
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.interface import PostFilterResult
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.outcome import (
    CLEAR,
    KEEP,
    Failed,
    Nomination,
    Placed,
    To,
    Unschedulable,
    nomination_of,
    refused_placement,
)
from tests.builders import pod

POD = PodInfo(pod("p"))
FULL = Status.unschedulable("full").of("Room")
NOWHERE = FeasibleNodes(Diagnosis(2, statuses={0: FULL, 1: FULL}), np.zeros(2, bool), NO_ROWS)
SOMEWHERE = FeasibleNodes(Diagnosis(2), np.ones(2, bool), np.arange(2))


@pytest.mark.parametrize(
    ("node", "nomination", "override"),
    [
        pytest.param(None, KEEP, None, id="kept: nothing is written"),
        pytest.param("", CLEAR, "", id="cleared"),
        pytest.param("n1", To("n1"), "n1", id="set"),
    ],
)
def test_nomination(node: str | None, nomination: Nomination, override: str | None) -> None:
    assert nomination_of(node) == nomination
    assert nomination.override == override


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        pytest.param(
            Unschedulable(POD, "default", NOWHERE),
            "0/2 nodes are available: 2 full.",
            id="the diagnosis",
        ),
        pytest.param(
            Unschedulable(
                POD,
                "default",
                NOWHERE,
                post_filter=PostFilterResult(Status.unschedulable("preemption: no")),
            ),
            "0/2 nodes are available: 2 full. preemption: no",
            id="and why PostFilter could not help",
        ),
        pytest.param(
            Unschedulable(POD, "default", NOWHERE, post_filter=PostFilterResult(None, "n1")),
            "0/2 nodes are available: 2 full.",
            id="and nothing more if it could",
        ),
        pytest.param(
            Unschedulable(POD, "default", FeasibleNodes.nowhere(Diagnosis(0))),
            "no nodes available to schedule pods",
            id="there are no nodes",
        ),
        pytest.param(
            Unschedulable(POD, "default", NOWHERE, words="pair: 1 of 2 members fit"),
            "pair: 1 of 2 members fit",
            id="what holds for the whole gang",
        ),
        pytest.param(
            Failed(POD, "default", NOWHERE, Status.error("broken", "badly")),
            "broken, badly",
            id="the error",
        ),
    ],
)
def test_message(outcome: Unschedulable | Failed, message: str) -> None:
    assert outcome.message == message


def test_a_node_that_reserve_rejects_is_all_the_cluster() -> None:
    placed = Placed(POD, "default", SOMEWHERE, "n1")
    outcome = refused_placement(placed, FULL)

    assert isinstance(outcome, Unschedulable)
    assert outcome.message == "0/1 nodes are available: 1 full."
    assert outcome.diagnosis.unschedulable_plugins == {"Room"}
    assert (outcome.nomination, outcome.refused) == (CLEAR, placed)
    assert outcome.found.candidates is SOMEWHERE.candidates


def test_where_reserve_breaks_the_pod_is_tried_again() -> None:
    placed = Placed(POD, "default", SOMEWHERE, "n1")
    status = Status.error("broken")
    assert refused_placement(placed, status) == Failed(
        POD, "default", SOMEWHERE, status, CLEAR, placed
    )
