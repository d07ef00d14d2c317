"""The shell of controllers: batches, retries, coalescing, and the queue it waits on."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import msgspec
import pytest

from berth.cluster.actions import (
    Action,
    Create,
    Delete,
    DeleteCollection,
    Get,
    Patch,
    Replace,
    perform,
)
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.loop import (
    FIRST_RETRY,
    LONGEST_INTERVAL,
    MOST_PACES,
    QUIET,
    Loop,
    Pace,
    slow_start,
)
from berth.cluster.delay_queue import DelayQueue
from berth.kube.client.errors import ServerError
from berth.runtime.clock import FakeClock


class Api:
    """Answers what it is told to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self.bodies: list[bytes | None] = []
        self.failing = False
        self.asked = asyncio.Event()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> bytes:
        self.requests.append((method, path))
        self.bodies.append(body)
        self.asked.set()
        await asyncio.sleep(0)
        if self.failing:
            raise ServerError(500, "InternalError", "no")
        return b"{}"

    def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        raise AssertionError("loops do not watch")


class Script:
    """A controller that plans what a test says."""

    name = "script"

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.planned: list[str] = []
        self.outcomes: list[Outcome] = []
        self.enqueue: Callable[[str], None] = lambda _key: None

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        self.enqueue = enqueue

    def plan(self, key: str) -> Plan:
        self.planned.append(key)
        if not self.plans:
            return NOTHING
        return self.plans.pop(0)

    def finished(self, key: str, outcome: Outcome) -> None:
        self.outcomes.append(outcome)


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


@asynccontextmanager
async def running(script: Script, api: Api, clock: FakeClock) -> AsyncIterator[Loop]:
    loop = Loop(script, api, clock=clock, slots=asyncio.Semaphore(4))
    task = asyncio.create_task(loop.run(), name="loop under test")
    await settle()
    yield loop
    task.cancel()
    await asyncio.wait([task])


async def advance(clock: FakeClock, seconds: float) -> None:
    clock.advance(seconds)
    await settle()


def creates(count: int) -> list[Action]:
    return [Create(f"/{number}", {}) for number in range(count)]


async def test_many_changes_cost_one_plan() -> None:
    script, api, clock = Script(), Api(), FakeClock()
    async with running(script, api, clock):
        for _ in range(1000):
            script.enqueue("a")
        await advance(clock, LONGEST_INTERVAL)
        await advance(clock, 10)

    assert script.planned == ["a"]


async def test_a_change_after_a_quiet_time_is_answered_at_once() -> None:
    script, api, clock = Script(), Api(), FakeClock()
    async with running(script, api, clock):
        for _ in range(3):
            script.enqueue("a")
            await settle()
            await advance(clock, QUIET)

    assert script.planned == ["a"] * 3


async def test_who_changes_all_the_time_is_looked_at_now_and_then() -> None:
    script, api, clock = Script(), Api(), FakeClock()
    async with running(script, api, clock):
        for _ in range(1000):
            script.enqueue("a")
            await advance(clock, 0.001)

    assert len(script.planned) <= 1.0 / LONGEST_INTERVAL + 5


async def test_the_paces_of_quiet_objects_are_forgotten() -> None:
    clock = FakeClock()
    pace = Pace(clock)
    for number in range(3 * MOST_PACES):
        pace.note(f"{number}")
        clock.advance(QUIET / MOST_PACES)

    assert len(pace._looks) <= MOST_PACES + 1


async def test_a_plan_is_carried_out_and_reported() -> None:
    script, api, clock = Script(), Api(), FakeClock()
    script.plans = [Plan(creates(5))]
    async with running(script, api, clock):
        script.enqueue("a")
        await advance(clock, LONGEST_INTERVAL)

    assert api.requests == [("POST", f"/{number}") for number in range(5)]
    assert [outcome.error for outcome in script.outcomes] == [None] * 5


async def test_what_cannot_work_fails_once_and_is_tried_again_later() -> None:
    script, api, clock = Script(), Api(), FakeClock()
    script.plans = [Plan(creates(100)), Plan(creates(100)), Plan()]
    api.failing = True
    async with running(script, api, clock):
        script.enqueue("a")
        await advance(clock, LONGEST_INTERVAL)
        first = len(api.requests)
        await advance(clock, FIRST_RETRY)
        second = len(api.requests)
        await advance(clock, FIRST_RETRY)
        third = len(script.planned)
        await advance(clock, FIRST_RETRY)

    assert (first, second, third, len(script.planned)) == (1, 2, 2, 3)
    assert [outcome.skipped for outcome in script.outcomes] == ([False] + [True] * 99) * 2


async def test_an_object_is_looked_at_again_when_its_plan_says_so() -> None:
    script, api, clock = Script(), Api(), FakeClock()
    script.plans = [Plan(again=30.0)]
    async with running(script, api, clock):
        script.enqueue("a")
        await advance(clock, LONGEST_INTERVAL)
        await advance(clock, 29)
        early = list(script.planned)
        await advance(clock, 1)

    assert (early, script.planned) == (["a"], ["a", "a"])


async def test_a_plan_that_raises_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    script, api, clock = Script(), Api(), FakeClock()
    bad = Plan([Patch("/x", {"a": object()})])  # cannot be encoded
    script.plans = [bad, Plan(creates(1))]
    async with running(script, api, clock):
        script.enqueue("a")
        await advance(clock, LONGEST_INTERVAL)
        await advance(clock, FIRST_RETRY)

    assert api.requests == [("POST", "/0")]
    assert [record.message for record in caplog.records] == ["plan failed"]


async def test_changes_while_a_plan_is_under_way_are_not_lost() -> None:
    script, api, clock = Script(), Api(), FakeClock()
    script.plans = [Plan(creates(1))]
    async with running(script, api, clock):
        script.enqueue("a")
        clock.advance(LONGEST_INTERVAL)
        await api.asked.wait()
        script.enqueue("a")
        await settle()
        await advance(clock, LONGEST_INTERVAL)

    assert script.planned == ["a", "a"]


def test_slow_start() -> None:
    assert [list(batch) for batch in slow_start([1, 2, 3, 4, 5])] == [[1], [2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("action", "request_line", "body"),
    [
        (Get("/p", {"limit": "1"}), ("GET", "/p"), None),
        (Create("/p", {"a": 1}), ("POST", "/p"), {"a": 1}),
        (Replace("/p", {"a": 1}), ("PUT", "/p"), {"a": 1}),
        (Patch("/p", {"a": 1}), ("PATCH", "/p"), {"a": 1}),
        (
            DeleteCollection("/p"),
            ("DELETE", "/p"),
            {
                "kind": "DeleteOptions",
                "apiVersion": "v1",
                "propagationPolicy": "Background",
            },
        ),
        (
            Delete("/p", "u", grace_seconds=0),
            ("DELETE", "/p"),
            {
                "kind": "DeleteOptions",
                "apiVersion": "v1",
                "preconditions": {"uid": "u"},
                "propagationPolicy": "Background",
                "gracePeriodSeconds": 0,
            },
        ),
    ],
)
async def test_actions_are_requests(
    action: Action, request_line: tuple[str, str], body: dict[str, object] | None
) -> None:
    api = Api()
    await perform(api, action)
    (sent,) = api.bodies
    assert api.requests == [request_line]
    assert (msgspec.json.decode(sent) if sent is not None else None) == body


async def test_the_queue_keeps_the_earliest_time() -> None:
    clock = FakeClock()
    queue: DelayQueue[str] = DelayQueue(clock)
    queue.add("a", delay=5)
    queue.add("a", delay=2)
    queue.add("a", delay=9)
    queue.add("b", delay=3)
    taking = asyncio.create_task(queue.take(), name="take")
    await settle()
    queue.add("c", delay=1)
    await settle()

    clock.advance(1)
    first = await taking
    queue.discard("b")
    clock.advance(8)

    assert (first, queue.take_due(), len(queue)) == (["c"], ["a"], 0)
