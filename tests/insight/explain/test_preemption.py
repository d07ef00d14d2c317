"""Who is evicted for a pod, and why those."""

import pytest

from berth.insight.explain.explanation import PastPreemption
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from tests.builders import node, pod
from tests.harness import Harness
from tests.insight.explain.asking import explain

EARLY, LATE = "2001-01-01T00:00:00Z", "2001-01-01T00:00:01Z"


def running(name: str, at: str, cpu: str, priority: int, started: str = EARLY) -> Pod:
    return pod(name, cpu=cpu, node=at, priority=priority, started=started)


async def preempting(*objects: Node | Pod) -> tuple[PastPreemption, Harness]:
    harness = Harness()
    harness.put(node("n1", cpu=1), node("n2", cpu=1), *objects)
    harness.put(pod("urgent", cpu=1, priority=10))
    await harness.until_idle()
    found = explain(harness, "default/urgent").history
    (preemption,) = (past.preemption for past in found if past.preemption is not None)
    return preemption, harness


@pytest.mark.parametrize(
    ("objects", "rounds", "words"),
    [
        pytest.param(
            [running("a", "n1", "1", 0), running("b", "n2", "1", 20)],
            [],
            "n1, the only node that evictions were found to help on",
            id="nobody is less important elsewhere",
        ),
        pytest.param(
            [running("a", "n1", "1", 5), running("b", "n2", "1", 1)],
            [("PDBViolations", 2), ("HighestPriority", 1)],
            "n2 before n1: its most important victim has priority 1, not 5",
            id="by the most important victim",
        ),
        pytest.param(
            [
                running("a", "n1", "500m", 5),
                running("b", "n1", "500m", 3),
                running("c", "n2", "500m", 5),
                running("d", "n2", "500m", 1),
            ],
            [("PDBViolations", 2), ("HighestPriority", 2), ("SumOfPriorities", 1)],
            "n2 before n1: the priorities of its victims add up to 6, not 8",
            id="by the sum of the priorities",
        ),
        pytest.param(
            [
                running("a", "n1", "500m", 5),
                running("b", "n1", "500m", 5),
                running("c", "n2", "1", 5),
            ],
            [("PDBViolations", 2), ("HighestPriority", 2), ("SumOfPriorities", 1)],
            "n2 before n1: 1 victim, not 2",
            id="a sum that is larger because there are more victims",
        ),
        pytest.param(
            [running("a", "n1", "1", 5), running("b", "n2", "1", 5, LATE)],
            [
                ("PDBViolations", 2),
                ("HighestPriority", 2),
                ("SumOfPriorities", 2),
                ("NumVictims", 2),
                ("StartTime", 1),
            ],
            "n2 before n1: its most important victims have not run for as long",
            id="by how long they have run",
        ),
    ],
)
async def test_why_those(objects: list[Pod], rounds: list[tuple[str, int]], words: str) -> None:
    found, _ = await preempting(*objects)

    assert [(round_.criterion, round_.num_left) for round_ in found.rounds] == rounds
    assert found.words == words
    assert (found.decided_by, found.equals) == (rounds[-1][0] if rounds else None, 0)


async def test_the_victims_are_those_that_leave() -> None:
    found, harness = await preempting(
        running("a", "n1", "600m", 1),
        running("b", "n1", "400m", 5),
        running("c", "n2", "1", 20),
    )

    told = [(victim.pod, victim.priority, victim.started) for victim in found.chosen.victims]
    assert told == [("default/b", 5, EARLY), ("default/a", 1, EARLY)]
    assert (found.chosen.node, found.chosen.num_victims) == ("n1", 2)
    assert {event.pod for event in harness.cluster.events if event.reason == "Preempted"} == {
        "default/a",
        "default/b",
    }


async def test_chance_between_equals() -> None:
    found, _ = await preempting(running("a", "n1", "1", 5), running("b", "n2", "1", 5))

    assert (found.num_candidates, found.equals, found.decided_by) == (2, 1, None)
    assert found.runner_up is not None
    assert {found.chosen.node, found.runner_up.node} == {"n1", "n2"}
    assert found.words == f"{found.chosen.node}: chance decides between 2 equally good candidates"
