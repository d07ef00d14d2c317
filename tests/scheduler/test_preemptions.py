"""How victims are evicted, and how long the preemptor is kept from being tried."""

import asyncio
from dataclasses import dataclass, field

import pytest
from prometheus_client import CollectorRegistry

from app.clock import FakeClock
from app.framework.pod_info import PodInfo
from app.framework.preemption.candidate import Candidate
from app.metrics.scheduler_metrics import SchedulerMetrics
from app.objects.meta import Condition
from app.objects.pod import Pod
from app.queue.scheduling_queue import SchedulingQueue
from app.scheduler.claim import Claims
from app.scheduler.preemption import Preemptions, PreemptionsUnderWay
from plugins.priority_sort import PrioritySort
from tests.builders import pod

HIGH = PodInfo(pod("high", priority=9))


@dataclass
class World:
    """Preemptions between a fake API and a real queue; what happens is noted in order."""

    failing: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    in_memory: set[str] = field(default_factory=set)
    pods: dict[str, Pod] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    activated: list[str] = field(default_factory=list)
    gated: dict[str, bool] = field(default_factory=dict)
    """Whether the preemptor was gated when a victim was evicted."""

    def __post_init__(self) -> None:
        self.under_way = PreemptionsUnderWay(self.pods.get)
        self.queue = SchedulingQueue(
            clock=FakeClock(),
            sort_key=PrioritySort().sort_key,
            pre_enqueue={},
            hints={},
            pod_lookup=self.pods.get,
        )
        self.preemptions = Preemptions(
            under_way=self.under_way,
            queue=self.queue,
            claims=InMemory(self),
            reporter=self,
            evictor=self,
            metrics=SchedulerMetrics(CollectorRegistry()),
            clock=FakeClock(),
        )

    async def evict(self, pod: Pod, condition: Condition) -> bool:
        name = pod.metadata.name
        self.gated[name] = self.under_way.is_preempting(HIGH.uid)
        await asyncio.sleep(0)
        if name in self.failing:
            raise OSError(name)
        if name in self.gone:
            return False
        self.done.append(f"evicted {name}")
        return True

    def event(
        self,
        pod: Pod,
        *,
        profile: str,
        type: str,
        reason: str,
        action: str,
        note: str,
    ) -> None:
        assert (profile, type, reason, action) == ("prof", "Normal", "Preempted", "Preempting")
        self.done.append(f"{pod.metadata.name}: {note}")

    def status(
        self, pod: Pod, *, condition: Condition | None, nominated_node_name: str | None
    ) -> None:
        assert (condition, nominated_node_name) == (None, "")
        self.done.append(f"cleared {pod.metadata.name}")

    async def preempt(self, *victims: Pod) -> None:
        for victim in victims:
            if victim.metadata.name not in self.gone:
                self.pods[victim.key] = victim
        chosen = Candidate(0, "n1", tuple(map(PodInfo, victims)), 0)
        self.preemptions.order(HIGH, profile="prof", chosen=chosen)
        order = self.preemptions.take()
        if order is not None:
            await self.preemptions.carry_out(order)


class InMemory(Claims):
    """Claims that some pods give up."""

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
    assert not world.under_way.is_preempting(HIGH.uid)
    assert world.preemptions.is_idle


async def test_pods_that_are_leaving_already_are_let_go() -> None:
    world = World()
    await world.preempt(pod("a", deleted="2026-01-01T00:00:00Z"), pod("b"))
    assert world.done == ["evicted b", told("b")]

    world = World()
    await world.preempt(pod("a", deleted="2026-01-01T00:00:00Z"))
    assert world.done == []
    assert not world.under_way.is_preempting(HIGH.uid)


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
        pytest.param(World(failing={"a"}), [], id="before the last one"),
        pytest.param(World(failing={"b"}), ["evicted a", told("a")], id="the last one"),
        pytest.param(World(gone={"b"}), ["evicted a", told("a")], id="the last one was gone"),
    ],
)
async def test_the_preemptor_is_woken_when_nothing_else_may_wake_it(
    world: World, done: list[str]
) -> None:
    world.pods[HIGH.key] = HIGH.pod
    world.queue.add(HIGH.pod)
    queued = world.queue.pop()
    assert queued is not None
    queued.unschedulable_plugins.add("NodeResourcesFit")
    world.queue.add_unschedulable_if_not_present(queued)
    assert world.queue.pending_counts()["unschedulable"] == 1

    await world.preempt(pod("a"), pod("b"))

    assert world.done == done
    assert world.queue.pending_counts()["active"] == 1
    assert not world.under_way.is_preempting(HIGH.uid)


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
    pods: dict[str, Pod] = {"default/low": last} if last is not None else {}
    under_way = PreemptionsUnderWay(pods.get)
    assert not under_way.is_preempting("high")

    under_way.begin("high")
    assert under_way.is_preempting("high")

    under_way.await_last("high", PodInfo(pod("low")))
    assert under_way.is_preempting("high") is waits

    under_way.end("high")
    assert not under_way.is_preempting("high")


async def test_orders_are_carried_out_beside_each_other() -> None:
    world = World()
    running = asyncio.create_task(world.preemptions.run())
    for name in ("a", "b"):
        chosen = Candidate(0, "n1", (PodInfo(pod(name)),), 0)
        world.preemptions.order(HIGH, profile="prof", chosen=chosen)
    for _ in range(10):
        await asyncio.sleep(0)
    assert sorted(world.done) == sorted(["evicted a", "evicted b", told("a"), told("b")])
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
