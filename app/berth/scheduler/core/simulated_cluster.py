"""A cluster in memory with its scheduler, on a clock that does not wait for time to pass.

::

    put, delete --> api --> core: the queue, the attempts, the preemption of a real scheduler
    run_until_quiet: step, step, ... nothing to do now -> move the clock to what comes next

What plugins do to the world outside is left out: PreBind, Bind and PostBind plugins are not run,
and no extender is called. What Reserve plugins hold for a pod they go on holding, as if it were
written.

Decision (2026-11): a simulation ends when every pod that waits was tried since the cluster last
changed, because another attempt would come to the same; instead of after some time, which would be
too long for most questions and too short for some.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import floor
from typing import Any, Final, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry

from berth.kube.objects.pod import Pod
from berth.runtime.clock import FakeClock
from berth.scheduler.binding import Binding
from berth.scheduler.cache.cache import Cache
from berth.scheduler.config.feature_gates import features_of
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.core.in_memory_api import InMemoryApi
from berth.scheduler.core.outside import Outside, RandomSources
from berth.scheduler.core.scheduler_core import CoreOptions, SchedulerCore
from berth.scheduler.core.scheduler_state import WaitingPodState
from berth.scheduler.decisions import DecisionRecord
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import BindPlugin, PreEnqueuePlugin
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.pod_reader import pod_reader
from berth.scheduler.framework.status import Status
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from berth.scheduler.preemption import PendingPreemption
from berth.scheduler.profile.build import Registry
from berth.scheduler.profile.profile import Profile
from berth.scheduler.profile.waiting_pod import WaitingPod
from berth.scheduler.queue.flushers import LEFTOVERS_PERIOD
from berth.scheduler.queue.heap import SortKey
from berth.scheduler.queue.sub_queues import SubQueue
from berth.scheduler.schedule_pod import Select

MOST_ATTEMPTS: Final = 20
"""Attempts per waiting pod without any change of the cluster, before a simulation is ended.

One is enough, unless pods keep waking each other.
"""
TURNS: Final = 4
"""Turns of the event loop in which a task that was woken comes to where it waits again."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """What a simulation leaves out or does in another way than a scheduler."""

    preempts: bool = True
    """Whether PostFilter plugins are run."""
    gates: bool = True
    """Whether PreEnqueue plugins are run."""
    select: Callable[[NodeTable], Select] | None = None
    """Makes what picks one of several best nodes; by default one is drawn."""
    sort_key: SortKey | None = None
    """Orders the queue in place of the QueueSort plugin."""
    start: float = 1_000_000_000.0
    """The time when the simulation begins, in seconds since 1970."""
    is_watched: bool = False
    """Whether decisions are recorded with the best nodes, which takes time."""
    shares_answers: bool = True
    """As in CoreOptions. There is no gain from it while nodes keep going."""
    goes_on: Callable[[], bool] = lambda: True
    """Asked before each attempt; if not, :meth:`SimulatedCluster.run_until_quiet` ends as it is. It
    may raise, too."""


DEFAULT_OPTIONS: Final = SimulationOptions()


class Victim(NamedTuple):
    """A pod that was evicted to make room for another."""

    pod: PodInfo
    node: str
    preemptor: PodInfo


class Bound(NamedTuple):
    """A pod that got a node, with what Reserve plugins know of it."""

    pod: PodInfo
    state: CycleState


class SimulatedCluster:
    """Objects, and a scheduler that works when it is told to."""

    def __init__(
        self,
        config: KubeSchedulerConfiguration,
        registry: Registry,
        options: SimulationOptions = DEFAULT_OPTIONS,
        *,
        listers: type[Listers] = Listers,
    ) -> None:
        """Make an empty cluster; ConfigError when the profiles of *config* cannot be made.

        *listers* declares the kinds of objects beside nodes and pods.
        """
        self.clock = FakeClock(options.start)
        self.rng = RandomSources()
        read_pod = pod_reader(features_of(config))
        self.api = InMemoryApi(self.clock, listers(), read_pod=read_pod)
        self.bound: list[Bound] = []
        """Whom the scheduler gave a node, in order; :meth:`undo_binds` empties it."""
        self.victims: list[Victim] = []
        self._options = options
        self._gates: dict[str, Sequence[PreEnqueuePlugin]] = {}
        self.core = SchedulerCore(
            config,
            registry,
            Outside(
                api=self.api,
                pods=self.api.pods,
                listers=self.api.listers,
                clock=self.clock,
                rng=self.rng,
                metrics=SchedulerMetrics(CollectorRegistry()),
            ),
            CoreOptions(
                shares_answers=options.shares_answers,
                is_watched=options.is_watched,
                select=options.select,
                adapt_profile=self._adapt,
                sort_key=options.sort_key,
                always_preempts_async=True,
            ),
        )
        self.api.connect({kind.type: handler for kind, handler in self.core.handlers.items()})
        self._started = options.start
        self._tried: dict[str, int] = {}
        """By UID, which change of the cluster a pod's last attempt came after."""
        self._decisions_seen = 0
        self._attempts = 0  # since the last change of the cluster
        self._changes_seen = 0
        self._on_permit: dict[asyncio.Task[None], WaitingPod] = {}

    def _adapt(self, profile: Profile) -> None:
        profile.pre_binds = []
        profile.binds = [_Binder(self)]
        profile.post_binds = []
        if not self._options.preempts:
            profile.post_filters = []
        self._gates[profile.name] = profile.pre_enqueue
        if not self._options.gates:
            profile.pre_enqueue = []

    # The cluster.

    @property
    def cache(self) -> Cache:
        return self.core.cache

    @property
    def listers(self) -> Listers:
        return self.api.listers

    @property
    def pods(self) -> Mapping[str, Pod]:
        """All pods by ``namespace/name``."""
        return self.api.pods

    @property
    def profiles(self) -> Mapping[str, Profile]:
        return self.core.live.profiles

    def put(self, obj: Any) -> None:
        """Create or replace an object; a pod without a node waits from now on."""
        self.api.put(obj)

    def delete(self, obj: Any) -> None:
        self.api.delete(obj)

    def put_aside(self, pod: Pod) -> None:
        """Have a pod that does not wait: it is not tried, but keeps its nomination."""
        self.api.pods[pod.key] = pod
        self.core.queue.delete(pod)
        if pod.spec.scheduler_name in self.profiles:
            self.core.queue.nominator.add_nominated_pod(PodInfo(pod))

    def show_to_gates(self, pods: Iterable[PodInfo]) -> None:
        """Have PreEnqueue plugins see *pods*, which are to wait: some know pods only by that."""
        for pod in (shown := list(pods)):
            self.api.pods[pod.key] = pod.pod
            self._see(pod.pod)
        for pod in shown:
            profile = self.profiles.get(pod.pod.spec.scheduler_name)
            for plugin in self._gates.get(profile.name, ()) if profile else ():
                plugin.pre_enqueue(pod)

    def restore(self, pod: Pod, state: WaitingPodState) -> None:
        """Have a pod wait with the history that it has in the queue of another scheduler."""
        self.api.pods[pod.key] = pod
        self._see(pod)
        self.core.queue.restore(state.queued(pod), state.queue)

    def _see(self, pod: Pod) -> None:
        """Count *pod* in its group, as handlers do before the queue hears of it."""
        if self.core.scheduler.groups is not None:
            self.core.scheduler.groups.pod_groups.see(pod)

    def put_aside_waiting(self) -> None:
        """Put all pods that wait aside."""
        waiting = [queued.pod for queued in self.core.queue.sub_queues]
        for pod in waiting:
            self.put_aside(pod)

    def wait_anew(self, pod: Pod) -> None:
        """Have *pod* wait as if it had just been created."""
        self.api.pods.pop(pod.key, None)
        self.api.put(pod)

    def undo_binds(self) -> None:
        """Take the nodes from those of :attr:`bound`, the last one first, and put them aside."""
        while self.bound:
            pod, state = self.bound.pop()
            self.profiles[pod.pod.spec.scheduler_name].run_unreserve(state, pod, pod.node_name)
            self.api.delete(self.api.pods[pod.key])
            self.put_aside(pod.pod)

    # The scheduler.

    async def run_until_quiet(self) -> None:
        """Schedule until no pod can get a node any more, unless somebody changes the cluster.

        Raises no error for pods that wake each other for ever: it stops.
        """
        while self._options.goes_on() and (await self._step() or await self._pass_time()):
            if self._is_going_round():
                return

    async def run_now(self) -> None:
        """Schedule as far as that is possible without time passing."""
        while await self._step() and not self._is_going_round():
            pass

    def next_moment(self) -> float | None:
        """Return when there is something to do that only waits for time; None: there is nothing.

        In seconds since 1970.
        """
        moments = [self._flush_of_leftovers()] if self._has_untried() else []
        if moments or self._on_permit:
            moments += [self._end_of_backoff(), self.clock.next_wakeup()]
        return min((moment for moment in moments if moment is not None), default=None)

    async def advance_to(self, moment: float) -> None:
        """Let time pass until *moment*, which is not after :meth:`next_moment`."""
        self.clock.advance(max(moment - self.clock.now(), 0.0))
        await _turns()
        self.core.flush_backoff_completed()
        if (self.clock.now() - self._started) % LEFTOVERS_PERIOD == 0:
            self.core.flush_unschedulable_pods_leftover()

    def _is_going_round(self) -> bool:
        """Whether pods have been tried again and again though nothing has changed."""
        waiting = sum(self.core.queue.sub_queues.pending_counts().values())
        return self._attempts > MOST_ATTEMPTS * (waiting + 1)

    async def _step(self) -> bool:
        """Do the next thing, as :meth:`SchedulerCore.step`; but let pods wait for Permit."""
        for task, waiting in self._on_permit.items():
            if waiting.is_decided:
                del self._on_permit[task]
                await task
                return True
        if (preemption := self.core.preemptions.take()) is not None:
            await self.core.preemptions.prepare_candidate(preemption, self.core.queue)
            self._note_victims(preemption)
            return True
        if await self.schedule_next() is not None:
            return True
        return await self.core.step()

    async def schedule_next(self) -> Sequence[DecisionRecord] | None:
        """Make the next attempt and bind who got a node; return what was decided.

        Several decisions for a gang; None if no pod is ready.
        """
        bindings = await self.core.schedule_next()
        if bindings is None:
            return None
        records = self._new_records()
        for binding in bindings:
            await self._bind(binding)
        return records

    async def _bind(self, binding: Binding) -> None:
        run = self.core.scheduler.binding_cycle.run(binding)
        if binding.waiting is None:
            await run
            return
        task = asyncio.create_task(run, name=f"permit of {binding.pod.key}")
        self._on_permit[task] = binding.waiting
        await _turns()

    def _new_records(self) -> Sequence[DecisionRecord]:
        """Take note of the attempt that was just made, and return its decisions."""
        decisions = self.core.scheduler.decisions
        new = decisions.made - self._decisions_seen
        self._decisions_seen = decisions.made
        if self.api.changes != self._changes_seen:
            self._changes_seen, self._attempts = self.api.changes, 0
        self._attempts += 1
        records = decisions.last(new)
        for record in records:
            self._tried[record.uid] = self.api.changes
        return records

    def _note_victims(self, preemption: PendingPreemption) -> None:
        self.victims += (
            Victim(victim, victim.node_name, preemption.preemptor)
            for victim in preemption.victims
            if victim.key not in self.api.pods
        )

    async def _pass_time(self) -> bool:
        """Move the clock to when there is something to do; False if it would come to nothing."""
        moment = self.next_moment()
        if moment is None:
            return False
        await self.advance_to(moment)
        return True

    def _has_untried(self) -> bool:
        """Whether a pod that waits was not tried since the cluster last changed."""
        queue, changes = self.core.queue.sub_queues, self.api.changes
        return any(
            self._tried.get(queued.uid) != changes
            for part in (SubQueue.BACKOFF, SubQueue.UNSCHEDULABLE)
            for queued in queue.in_any_order(part)
        )

    def _flush_of_leftovers(self) -> float | None:
        """Return when the first pod is tried that is not woken by anything."""
        queue = self.core.queue.sub_queues
        unschedulable = queue.in_any_order(SubQueue.UNSCHEDULABLE)
        due = min((queue.next_try(queued) or 0.0 for queued in unschedulable), default=None)
        if due is None:
            return None
        since_start = max(due, self.clock.now()) - self._started
        return self._started + (floor(since_start / LEFTOVERS_PERIOD) + 1) * LEFTOVERS_PERIOD

    def _end_of_backoff(self) -> float | None:
        queue = self.core.queue.sub_queues
        resting = queue.in_any_order(SubQueue.BACKOFF)
        ends = (queue.next_try(queued) or 0.0 for queued in resting)
        return min(ends, default=None)


class _Binder(BindPlugin):
    """Binds in memory, in place of the Bind plugins of a profile."""

    NAME = "InMemoryBinder"

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        await self._cluster.api.bind(pod, node_name)
        self._cluster.bound.append(Bound(pod, state))
        return None


async def _turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


def run_simulation(simulation: Coroutine[Any, Any, T]) -> T:
    """Run *simulation* to its end on an event loop of its own, and return what it returns.

    It waits for nothing, so whoever calls this is kept busy; also on another event loop.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(simulation)
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, simulation).result()
