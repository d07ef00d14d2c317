"""Which of several nodes is chosen."""

from random import Random

import pytest

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.candidate import Candidate, Preemption
from berth.scheduler.framework.preemption.importance import importance
from berth.scheduler.framework.preemption.select_candidate import select_candidate
from tests.builders import pod

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"


def victim(priority: int, *, started: str | None = EARLY) -> Pod:
    return pod(f"v{priority}", priority=priority, started=started)


def candidate(node: str, *victims: Pod, violations: int = 0) -> Candidate:
    ordered = sorted((PodInfo(v) for v in victims), key=importance)
    return Candidate(0, node, tuple(ordered), violations)


@pytest.mark.parametrize(
    ("candidates", "best"),
    [
        pytest.param(
            [candidate("a", victim(1)), candidate("b", victim(9), violations=1)],
            ["a"],
            id="fewer broken budgets win",
        ),
        pytest.param(
            [candidate("a", victim(1), violations=1), candidate("b", victim(9), victim(9))],
            ["b"],
            id="broken budgets count more than anything else",
        ),
        pytest.param(
            [candidate("a", victim(5)), candidate("b", victim(4), victim(4))],
            ["b"],
            id="the most important victim should be of low priority",
        ),
        pytest.param(
            [candidate("a", victim(5), victim(4)), candidate("b", victim(5), victim(3))],
            ["b"],
            id="then the sum of priorities should be small",
        ),
        pytest.param(
            [candidate("a", victim(-1), victim(-1)), candidate("b", victim(-1))],
            ["b"],
            id="negative priorities add to the sum, too",
        ),
        pytest.param(
            [
                candidate("a", victim(2**31 - 1), victim(-(2**31))),
                candidate("b", victim(2**31 - 1)),
            ],
            ["b"],
            id="then fewer victims win",
        ),
        pytest.param(
            [candidate("a", victim(5, started=EARLY)), candidate("b", victim(5, started=LATE))],
            ["b"],
            id="then the victim that started last",
        ),
        pytest.param(
            [candidate("a", victim(5, started=LATE)), candidate("b", victim(5, started=None))],
            ["b"],
            id="who has not started counts as started now",
        ),
        pytest.param(
            [
                candidate("a", victim(5, started=LATE), victim(5, started=EARLY)),
                candidate("b", victim(5, started=LATE), victim(5, started=LATE)),
            ],
            ["b"],
            id="the oldest of the most important victims counts",
        ),
        pytest.param(
            [
                candidate("a", victim(5), victim(3, started=EARLY)),
                candidate("b", victim(5), victim(3, started=LATE)),
            ],
            ["a", "b"],
            id="the age of lesser victims does not",
        ),
        pytest.param([candidate("only", victim(5))], ["only"], id="one is the best of one"),
    ],
)
def test_the_least_missed_victims(candidates: list[Candidate], best: list[str]) -> None:
    for tried, names in ((candidates, best), (candidates[::-1], best[::-1])):
        preemption = select_candidate(Preemption(tried, Diagnosis(len(tried))), Random(1))
        assert [candidate.node for candidate in preemption.equals] == names


def test_chance_decides_between_equals_only() -> None:
    twins = [candidate("a", victim(1)), candidate("b", victim(1)), candidate("c", victim(2))]
    found = Preemption(tuple(twins), Diagnosis(3))

    chosen = {select_candidate(found, Random(seed)).chosen for seed in range(20)}

    assert chosen == set(twins[:2])
    assert list(select_candidate(found, Random(0)).equals) == twins[:2]


def test_of_equals_the_node_that_the_pod_is_nominated_to_is_chosen() -> None:
    found = Preemption([candidate("a", victim(1)), candidate("b", victim(1))], Diagnosis(2))
    for seed in range(20):
        chosen = select_candidate(found, Random(seed), nominated="b").chosen
        assert chosen is not None
        assert chosen.node == "b"
