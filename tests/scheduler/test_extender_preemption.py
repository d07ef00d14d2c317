"""Extenders that have a say in whom preemption evicts (spec §6.5)."""

from typing import Any

import httpx
import pytest

from tests.builders import node, pod
from tests.harness import Harness
from tests.scheduler.asking import entry, harness, message

LOST = httpx.ConnectError("refused")


def world(*answers: Any, ignorable: bool = False, whole: bool = False) -> tuple[Harness, list[Any]]:
    """Nodes a and b, each full with a pod of its own; p would rather have the one on a evicted.

    One extender for each answer.
    """
    paths = [f"preempt{i}" for i in range(len(answers))]
    made, network = harness(
        {f"/{path}": answer for path, answer in zip(paths, answers, strict=True)},
        *(entry(preemptVerb=p, ignorable=ignorable, nodeCacheCapable=not whole) for p in paths),
    )
    made.put(node("a", cpu=2), node("b", cpu=2))
    made.put(pod("on-a", cpu=2, node="a"), pod("on-b", cpu=2, node="b", priority=1))
    made.put(pod("p", cpu=2, priority=10))
    return made, network.requests


def agree(asked: Any) -> Any:
    return {"NodeNameToMetaVictims": asked["NodeNameToMetaVictims"]}


def only(*names: str, victims: bool = True) -> Any:
    """Agree to the candidates of these names, or find nobody to evict there."""

    def answer(asked: Any) -> Any:
        found = asked["NodeNameToMetaVictims"] or {
            name: {"Pods": [{"UID": f"pod-default-on-{name}"}], "NumPDBViolations": 0}
            for name in asked["NodeNameToVictims"]
        }
        return {
            "NodeNameToMetaVictims": {
                name: said if victims else {"Pods": [], "NumPDBViolations": 0}
                for name, said in found.items()
                if name in names
            }
        }

    return answer


def evicted(made: Harness) -> list[str]:
    return [event.pod for event in made.cluster.events if event.reason == "Preempted"]


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(agree, "a", id="all candidates are left: the best one"),
        pytest.param(only("b"), "b", id="only the worse one is left"),
    ],
)
@pytest.mark.parametrize("whole", [False, True], ids=["names", "whole pods"])
async def test_the_best_of_what_is_left_is_taken(answer: Any, want: str, whole: bool) -> None:
    if whole and answer is agree:
        answer = only("a", "b")
    made, requests = world(answer, whole=whole)
    await made.until_idle()

    assert evicted(made) == [f"default/on-{want}"]
    assert made.placements()["p"] == want
    form = "NodeNameToVictims" if whole else "NodeNameToMetaVictims"
    assert sorted(requests[0][1][form]) == ["a", "b"]


async def test_one_extender_is_asked_about_what_the_one_before_left() -> None:
    made, requests = world(only("b"), agree)
    await made.until_idle()

    assert evicted(made) == ["default/on-b"]
    assert list(requests[1][1]["NodeNameToMetaVictims"]) == ["b"]


IN_VAIN = "0/2 nodes are available: 2 Insufficient cpu. "


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(
            only(),
            "no new claims to deallocate, preemption: no candidate node for preemption",
            id="no candidate is left",
        ),
        pytest.param(LOST, 'preemption: Post "http://one/preempt0": refused', id="no answer"),
        pytest.param(
            only("a", victims=False),
            'preemption: expected at least one victim pod on node "a"',
            id="a candidate without victims",
        ),
    ],
)
async def test_nobody_is_evicted_and_the_nomination_is_left_alone(answer: Any, want: str) -> None:
    made, _ = world(answer)
    await made.until_idle()

    assert evicted(made) == []
    assert message(made) == IN_VAIN + want
    assert made.cluster.conditions["default/p"].reason == "Unschedulable"
    queued = made.queue.sub_queues.get("default/p")
    assert queued is not None
    assert queued.unschedulable_plugins == {"NodeResourcesFit"}


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(LOST, ["default/on-a"], id="no answer: as if it had not been asked"),
        pytest.param(500, ["default/on-a"], id="an error, too"),
        pytest.param(only("a", "b", victims=False), [], id="nodes without victims: left out"),
    ],
)
async def test_one_that_may_be_ignored(answer: Any, want: list[str]) -> None:
    made, _ = world(answer, ignorable=True)
    await made.until_idle()
    assert evicted(made) == want


async def test_nobody_is_asked_where_preemption_finds_nothing() -> None:
    made, requests = world(agree)
    made.put(pod("low", cpu=2, priority=-1))
    await made.until_idle()
    assert [asked["Pod"]["metadata"]["name"] for _, asked in requests] == ["p"]
