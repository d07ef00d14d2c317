"""PreBind plugins: one after the other, or side by side where neighbours allow it (spec §2.9)."""

import asyncio
from typing import Any, ClassVar

import pytest

from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import PreBindPlugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.profile.profile import Profile
from berth_plugins.priority_sort import PrioritySort
from tests.builders import pod

POD = PodInfo(pod("p"))


class Step(PreBindPlugin):
    """Takes some turns of the event loop, then answers; writes down when."""

    log: ClassVar[list[str]]

    def __init__(self, turns: int, answer: Status | None = None) -> None:
        super().__init__()
        self.turns = turns
        self.answer = answer

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return None

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self.log.append(f"{self.NAME} begins")
        try:
            for _ in range(self.turns):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.log.append(f"{self.NAME} cancelled")
            raise
        self.log.append(f"{self.NAME} ends")
        return self.answer


def step(name: str, turns: int, answer: Status | None = None, *, parallel: bool = True) -> Step:
    kind: Any = type(name, (Step,), {"NAME": name, "ALLOW_PARALLEL": parallel})
    made: Step = kind(turns, answer)
    return made


async def run(*steps: Step) -> tuple[Status | None, list[str]]:
    Step.log = []
    points = {"queue_sort": [PrioritySort()], "pre_bind": steps}
    profile = Profile("default-scheduler", points, weights={})
    status = await profile.run_pre_binds(steps, CycleState(), POD, "n1", entered=lambda _: None)
    return status, Step.log


async def test_neighbours_that_allow_it_run_side_by_side() -> None:
    assert await run(step("A", 2), step("B", 1)) == (
        None,
        ["A begins", "B begins", "B ends", "A ends"],
    )


async def test_one_that_does_not_allow_it_runs_alone() -> None:
    _, log = await run(step("A", 2), step("B", 1, parallel=False), step("C", 2), step("D", 1))
    assert log == [
        *("A begins", "A ends", "B begins", "B ends"),
        *("C begins", "D begins", "D ends", "C ends"),
    ]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(
            Status.error("no disk"),
            Status(Code.ERROR, ('running PreBind plugin "B": no disk',), "B"),
            id="an error names the plugin",
        ),
        pytest.param(
            Status.unschedulable("full"),
            Status(Code.UNSCHEDULABLE, ("full",), "B"),
            id="a rejection stays one",
        ),
    ],
)
async def test_the_first_failure_cancels_the_others(answer: Status, expected: Status) -> None:
    assert await run(step("A", 5), step("B", 1, answer), step("C", 1, parallel=False)) == (
        expected,
        ["A begins", "B begins", "B ends", "A cancelled"],
    )


async def test_nobody_is_left_running_when_the_binding_is_cancelled() -> None:
    task = asyncio.create_task(run(step("A", 50), step("B", 50)))
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert Step.log == ["A begins", "B begins", "A cancelled", "B cancelled"]
