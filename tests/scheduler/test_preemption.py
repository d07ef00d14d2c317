"""How victims are evicted, and how long the preemptor is kept from being tried."""

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass, field

import pytest
from prometheus_client import CollectorRegistry

from berth.kube.client.errors import ApiError, FencedError, ForbiddenError, UnavailableError
from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import PodGroup
from berth.runtime.clock import FakeClock
from berth.scheduler.binding import Bindings
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.candidate import Candidate
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from berth.scheduler.preemption import PendingPreemption, Preemptions
from berth.scheduler.queue.scheduling_queue import SchedulingQueue
from berth_plugins.priority_sort import PrioritySort
from tests.builders import pod

HIGH = PodInfo(pod("high", priority=9))
REFUSED = UnavailableError("connection refused", sent=False)
LOST = UnavailableError("timed out", sent=None)


@dataclass
class World:
    """Preemptions between a fake API and a real queue; what happens is noted in order."""

    failing: dict[str, Exception] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    in_memory: set[str] = field(default_factory=set)
    pods: dict[str, Pod] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    activated: list[str] = field(default_factory=list)
    gated: dict[str, bool] = field(default_factory=dict)
    """Whether the preemptor was gated when a victim was evicted."""
    asked: Counter[str] = field(default_factory=Counter)
    """How often each victim was to be evicted."""

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.registry = CollectorRegistry()
        self.pods[HIGH.key] = HIGH.pod
        self.queue = SchedulingQueue(
            clock=FakeClock(),
            sort_key=PrioritySort().sort_key,
            pre_enqueue={},
            hints={},
            pod_lookup=self.pods.get,
        )
        self.preemptions = Preemptions(
            pods=self.pods,
            bindings=InMemory(self),
            reporter=self,
            evictor=self,
            metrics=SchedulerMetrics(self.registry),
            clock=self.clock,
        )

    async def evict(self, pod: Pod, condition: Condition, *, nominated: Pod | None = None) -> bool:
        name = pod.metadata.name
        self.gated[name] = self.preemptions.is_preempting(HIGH.uid)
        self.asked[name] += 1
        await asyncio.sleep(0)
        if name in self.failing:
            raise self.failing[name]
        if name in self.gone:
            return False
        self.done.append(f"evicted {name}")
        return True

    def event(
        self,
        pod: Pod,
        *,
        profile: str = "",
        type: str,
        reason: str,
        action: str,
        note: str,
        related: PodGroup | None = None,
    ) -> None:
        assert related is None, "as recorded of kube-scheduler"
        assert (profile, type, reason, action) == ("prof", "Normal", "Preempted", "Preempting")
        self.done.append(f"{pod.metadata.name}: {note}")

    def status(
        self, pod: Pod, *, condition: Condition | None, nominated_node_name: str | None
    ) -> None:
        assert (condition, nominated_node_name) == (None, "")
        self.done.append(f"cleared {pod.metadata.name}")

    async def preempt(self, *victims: Pod, preemptor: PodInfo = HIGH) -> None:
        """Have *victims* evicted, and let as much time pass as that takes."""
        carrying = self.begin(*victims, preemptor=preemptor)
        while not carrying.done():
            await self.settle()
            if not carrying.done():
                self.clock.advance(0.5)
        await carrying

    def tell(self, name: str, now: Pod | None) -> None:
        """Have the watch tell that a victim is leaving, or gone."""
        before = self.pods.pop(f"default/{name}")
        if now is not None:
            self.pods[now.key] = now
        self.preemptions.pod_leaves(now or before, self.queue)

    def begin(self, *victims: Pod, preemptor: PodInfo = HIGH) -> asyncio.Task[None]:
        for victim in victims:
            if victim.metadata.name not in self.gone:
                self.pods[victim.key] = victim
        chosen = Candidate(0, "n1", tuple(map(PodInfo, victims)), 0)
        self.preemptions.prepare_candidate_async(preemptor, profile="prof", chosen=chosen)
        pending = self.preemptions.take()

        async def prepare_candidate() -> None:
            if pending is not None:
                await self.preemptions.prepare_candidate(pending, self.queue)

        return asyncio.create_task(prepare_candidate(), name="prepare candidate")

    def pending(self, victim: Pod) -> PendingPreemption:
        """Have *victim* chosen, and return what is to be done."""
        chosen = Candidate(0, "n1", (PodInfo(victim),), 0)
        self.preemptions.prepare_candidate_async(HIGH, profile="prof", chosen=chosen)
        pending = self.preemptions.take()
        assert pending is not None
        return pending

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    def queue_preemptor(self) -> None:
        """Have the preemptor wait for something to happen after its attempt."""
        self.queue.add(HIGH.pod)
        queued = self.queue.pop()
        assert queued is not None
        queued.unschedulable_plugins.add("NodeResourcesFit")
        self.queue.add_unschedulable_if_not_present(queued)
        assert self.queue.sub_queues.pending_counts()["unschedulable"] == 1

    def surplus(self) -> float | None:
        return self.registry.get_sample_value("berth_preemption_surplus_victims_total")


class InMemory(Bindings):
    """Bindings that some pods give up."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def preempt(self, uid: str) -> bool:
        return uid.removeprefix("pod-default-") in self._world.in_memory


def told(name: str, suffix: str = "") -> str:
    return f"{name}: Preempted by pod pod-default-high on node n1{suffix}"


async def test_the_last_victim_goes_when_the_others_are_gone() -> None:
    world = World()
    await world.preempt(pod("a"), pod("b"), pod("c"))

    assert sorted(world.done[:4]) == sorted(["evicted a", "evicted b", told("a"), told("b")])
    assert world.done[4:] == ["evicted c", told("c")]
    assert world.gated == {"a": True, "b": True, "c": True}


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(pod("b", deleted="2026-01-01T00:00:00Z"), id="that it is leaving"),
        pytest.param(None, id="that it is gone"),
    ],
)
async def test_the_preemptor_waits_until_the_watch_tells_of_the_last_victim(
    last: Pod | None,
) -> None:
    world = World()
    await world.preempt(pod("a"), pod("b"))
    assert world.preemptions.is_preempting(HIGH.uid)
    assert not world.preemptions.is_idle

    world.tell("a", None)
    assert world.preemptions.is_preempting(HIGH.uid)

    world.tell("b", last)
    assert not world.preemptions.is_preempting(HIGH.uid)
    assert world.preemptions.is_idle


async def test_two_preemptors_may_wait_for_the_same_victim() -> None:
    world = World()
    higher = PodInfo(pod("higher", priority=10))
    await world.preempt(pod("a"))
    await world.preempt(pod("a"), preemptor=higher)
    waiting = {HIGH.uid, higher.uid}
    assert {uid for uid in waiting if world.preemptions.is_preempting(uid)} == waiting

    world.tell("a", None)
    assert world.preemptions.is_idle


async def test_a_preemptor_is_woken_by_the_watch_if_its_last_victim_was_gone_before() -> None:
    """No other event may help it."""
    world = World(gone={"b"})
    world.queue_preemptor()
    world.pods["default/b"] = pod("b")
    await world.preempt(pod("a"), pod("b"))
    assert world.preemptions.is_preempting(HIGH.uid)
    assert world.queue.sub_queues.pending_counts()["active"] == 0

    world.tell("b", None)
    assert world.queue.sub_queues.pending_counts()["active"] == 1
    assert world.preemptions.is_idle


async def test_of_a_victim_in_memory_the_watch_has_nothing_to_tell() -> None:
    world = World(in_memory={"b"})
    await world.preempt(pod("a"), pod("b"))
    assert not world.preemptions.is_preempting(HIGH.uid)
    assert world.preemptions.is_idle


async def test_pods_that_are_leaving_already_are_let_go() -> None:
    world = World()
    await world.preempt(pod("a", deleted="2026-01-01T00:00:00Z"), pod("b"))
    assert world.done == ["evicted b", told("b")]

    world = World()
    await world.preempt(pod("a", deleted="2026-01-01T00:00:00Z"))
    assert world.done == []
    assert not world.preemptions.is_preempting(HIGH.uid)


async def test_a_victim_that_was_gone_gets_no_event() -> None:
    world = World(gone={"a"})
    await world.preempt(pod("a"), pod("b"))
    assert world.done == ["evicted b", told("b")]


async def test_a_pod_that_is_not_bound_yet_gives_up_its_room_in_memory() -> None:
    world = World(in_memory={"a"})
    await world.preempt(pod("a"), pod("b"))
    assert world.done == [
        told("a", " (in kube-scheduler memory)."),
        "evicted b",
        told("b"),
    ]


async def test_lower_nominations_to_the_node_are_cleared_first() -> None:
    world = World()
    for name, priority, node in (("low", 1, "n1"), ("equal", 9, "n1"), ("elsewhere", 1, "n2")):
        waiting = pod(name, priority=priority, nominated=node)
        world.pods[waiting.key] = waiting
        world.queue.add(waiting)
    await world.preempt(pod("a"))
    assert world.done == ["cleared low", "evicted a", told("a")]


@pytest.mark.parametrize(
    ("world", "done"),
    [
        pytest.param(World(failing={"a": REFUSED}), [], id="before the last one"),
        pytest.param(World(failing={"b": REFUSED}), ["evicted a", told("a")], id="the last one"),
        pytest.param(World(gone={"b"}), ["evicted a", told("a")], id="the last one was gone"),
    ],
)
async def test_the_preemptor_is_woken_when_nothing_else_may_wake_it(
    world: World, done: list[str]
) -> None:
    world.queue_preemptor()

    await world.preempt(pod("a"), pod("b"))

    assert world.done == done
    assert world.queue.sub_queues.pending_counts()["active"] == 1
    assert not world.preemptions.is_preempting(HIGH.uid)


@pytest.mark.parametrize(
    ("last", "waits"),
    [
        pytest.param(pod("low"), True, id="the last victim stays"),
        pytest.param(pod("low", deleted="2026-01-01T00:00:00Z"), False, id="it is leaving"),
        pytest.param(None, False, id="it is gone"),
    ],
)
def test_the_preemptor_waits_until_the_last_victim_is_seen_to_go(
    last: Pod | None, waits: bool
) -> None:
    world = World()
    assert not world.preemptions.is_preempting(HIGH.uid)

    pending = world.pending(pod("low"))
    assert world.preemptions.is_preempting(HIGH.uid)

    pending.last_victim = PodInfo(pod("low"))
    if last is not None:
        world.pods["default/low"] = last
    assert world.preemptions.is_preempting(HIGH.uid) is waits


async def test_the_end_of_one_preemption_is_not_that_of_the_next_one_for_the_same_pod() -> None:
    world = World()
    first, second = world.pending(pod("a")), world.pending(pod("b"))

    await world.preemptions.prepare_candidate(first, world.queue)
    assert world.preemptions.is_preempting(HIGH.uid)

    await world.preemptions.prepare_candidate(second, world.queue)
    assert not world.preemptions.is_preempting(HIGH.uid)


# Evictions that fail.


async def test_what_failed_is_tried_again_with_pauses_and_nothing_else_is() -> None:
    world = World(failing={"b": REFUSED})
    world.queue_preemptor()
    carrying = world.begin(pod("a"), pod("b"), pod("c"))
    tries = []
    for _ in range(7):
        await world.settle()
        tries.append(world.asked["b"])
        world.clock.advance(1)

    assert tries == [1, 2, 2, 3, 3, 3, 3], "after 1, 2 and 4 seconds"
    assert world.preemptions.is_preempting(HIGH.uid), "it must not try other nodes meanwhile"
    assert world.queue.sub_queues.pending_counts()["active"] == 0
    world.failing.clear()
    await carrying

    assert world.asked == {"a": 1, "b": 4, "c": 1}
    assert world.done[-4:] == ["evicted b", told("b"), "evicted c", told("c")]
    assert world.surplus() == 0


async def test_what_was_evicted_for_nothing_is_counted() -> None:
    world = World(failing={"c": REFUSED})
    world.queue_preemptor()

    await world.preempt(pod("a"), pod("b"), pod("c"))

    assert world.asked == {"a": 1, "b": 1, "c": 4}
    assert world.surplus() == 2
    assert world.queue.sub_queues.pending_counts()["active"] == 1


@pytest.mark.parametrize(
    "leaving",
    [
        pytest.param("2026-01-01T00:00:00Z", id="it is leaving"),
        pytest.param(None, id="it is gone"),
    ],
)
async def test_a_victim_that_leaves_although_the_answer_was_lost_is_not_evicted_again(
    leaving: str | None,
) -> None:
    world = World(failing={"b": LOST})
    world.queue_preemptor()
    carrying = world.begin(pod("a"), pod("b"))
    await world.settle()
    if leaving is None:
        del world.pods["default/b"]
    else:
        world.pods["default/b"] = pod("b", deleted=leaving)
    world.clock.advance(1)
    await carrying

    assert world.asked == {"a": 1, "b": 1}
    assert world.surplus() == 0
    assert world.queue.sub_queues.pending_counts()["active"] == 1, (
        "its going may have been told too early"
    )


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(None, id="deleted"),
        pytest.param(pod("high", priority=9, node="n2"), id="bound"),
        pytest.param(pod("high", priority=9, uid="another"), id="another of its name"),
    ],
)
async def test_nobody_is_evicted_for_a_pod_that_does_not_wait_any_more(now: Pod | None) -> None:
    world = World(failing={"b": REFUSED})
    carrying = world.begin(pod("a"), pod("b"))
    await world.settle()
    if now is None:
        del world.pods[HIGH.key]
    else:
        world.pods[HIGH.key] = now
    world.clock.advance(1)
    await carrying

    assert world.asked == {"a": 1, "b": 1}
    assert world.surplus() == 1
    assert world.preemptions.is_idle


async def test_a_preemptor_whose_room_became_free_is_not_kept_by_the_pauses() -> None:
    """The nomination holds the room; who frees it otherwise makes the evictions needless."""
    world = World(failing={"b": REFUSED})
    carrying = world.begin(pod("b"))
    await world.settle()
    del world.pods["default/b"]

    assert not world.preemptions.is_preempting(HIGH.uid)
    world.clock.advance(1)
    await carrying


@pytest.mark.parametrize(
    ("error", "level", "has_traceback"),
    [
        pytest.param(REFUSED, logging.WARNING, False, id="no connection"),
        pytest.param(ForbiddenError(403, "Forbidden", "no"), logging.WARNING, False, id="refused"),
        pytest.param(FencedError("not sent"), logging.DEBUG, False, id="another leads"),
        pytest.param(ValueError("a bug"), logging.ERROR, True, id="a bug"),
    ],
)
async def test_how_a_failure_is_told(
    error: Exception, level: int, *, has_traceback: bool, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(failing=dict.fromkeys("abcd", error))
    caplog.set_level(logging.DEBUG)
    await world.preempt(*map(pod, "abcd"))

    failed = [record for record in caplog.records if record.levelno == level]
    assert {bool(each.exc_info) for each in failed} == {has_traceback}
    tries = 4 if isinstance(error, ApiError) else 1
    assert len(failed) == tries, "one line a try, however many victims"


async def test_orders_are_carried_out_beside_each_other() -> None:
    world = World()
    running = asyncio.create_task(world.preemptions.run(world.queue))
    for name in ("a", "b"):
        chosen = Candidate(0, "n1", (PodInfo(pod(name)),), 0)
        world.preemptions.prepare_candidate_async(HIGH, profile="prof", chosen=chosen)
    for _ in range(10):
        await asyncio.sleep(0)
    assert sorted(world.done) == sorted(["evicted a", "evicted b", told("a"), told("b")])
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
