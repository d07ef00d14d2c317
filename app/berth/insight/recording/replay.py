"""A core that makes the steps of a recording again."""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import Any, Final, cast

from prometheus_client import CollectorRegistry

from berth.insight.recording import lines
from berth.insight.recording.chance import AttemptChance
from berth.insight.recording.files import LineError
from berth.insight.recording.following import (
    Following,
    ReplayedBindingCycle,
    ReplayedPreemptions,
    ReplayedScheduler,
)
from berth.insight.recording.kinds import by_name
from berth.insight.recording.recorder import EXTENDER_CALL
from berth.insight.recording.replayed_api import Meetings, ReplayClock, ReplayedWrites, check_answer
from berth.insight.recording.replayed_extenders import ExtenderAnswers
from berth.kube.objects.pod import Pod
from berth.runtime.errors import UNREADABLE
from berth.runtime.release import RELEASES
from berth.scheduler.background import Job
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.load import emulating, from_object
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.core.outside import ApiWrites, Outside, RandomSources
from berth.scheduler.core.scheduler_core import CoreJournal, CoreOptions, SchedulerCore
from berth.scheduler.decisions import DecisionRecord
from berth.scheduler.framework.kind import PODS
from berth.scheduler.framework.listers import with_kinds
from berth.scheduler.framework.pod_info import QueuedPodInfo
from berth.scheduler.framework.status import Code
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from berth.scheduler.outcome import Outcome
from berth.scheduler.preemption import PendingPreemption
from berth.scheduler.profile.build import Registry, args_models, kinds_read
from berth.scheduler.profile.profile import Profile

_CODES: Final = frozenset(Code)
log = logging.getLogger(__name__)

TURNS: Final = 12
"""Turns of the event loop in which what a step has woken comes to where it waits again."""
PRE_BINDS: Final = frozenset({"DynamicResources", "VolumeBinding"})
"""PreBind plugins that are run: they write by the handle alone, which answers as recorded."""


class Replay(CoreJournal):
    """Makes the steps of a recording, one after the other, on a core of its own.

    It is the core's journal as well: that is how it hears what is decided.
    """

    def __init__(
        self,
        header: lines.Header,
        registry: Registry,
        config: KubeSchedulerConfiguration | None = None,
        *,
        release: str = "",
        ranks_nodes: bool = False,
    ) -> None:
        """Decide by *config*, by default by what was recorded; *registry* has the plugins.

        If it *ranks_nodes*, decisions are kept with the best nodes, as a running scheduler does.

        *release* is the one to be like, by default that of the configuration. Unless one of them is
        given, decisions must be the same in every field. Raises ConfigError when the profiles
        cannot be made.
        """
        self._own_config = config is not None
        self._release = release
        self._registry = registry
        self.following = Following(is_strict=config is None and not release)
        self.clock = ReplayClock()
        self.clock.moment = header.t
        self._chance = AttemptChance(header.seed)
        self._pods: dict[str, Pod] = {}
        self._writes = ReplayedWrites()
        self._endings: Meetings[lines.Bound] = Meetings()
        self._evictions: Meetings[lines.Evicted] = Meetings()
        self._pending: dict[str, PendingPreemption] = {}
        self._jobs: dict[str, Job] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures: list[BaseException] = []
        """Of tasks that ended with one: lines that cannot be meant."""
        recorded = self._configuration(header.config)
        self._extenders = ExtenderAnswers()
        self.core = SchedulerCore(
            (config or recorded).model_copy(update={"extenders": recorded.extenders}),
            registry,
            Outside(
                api=cast("ApiWrites", self._writes),
                pods=self._pods,
                listers=with_kinds(kinds_read(registry))(),
                clock=self.clock,
                rng=RandomSources(
                    ties=self._chance.source(),
                    plugins=self._chance.source(),
                    extenders=self._chance.source(),
                ),
                metrics=SchedulerMetrics(CollectorRegistry()),
                extenders=self._extenders.of(recorded.extenders),
            ),
            CoreOptions(
                max_in_unschedulable=header.max_in_unschedulable,
                uses_signatures=self.following.is_strict,
                is_watched=ranks_nodes,
                adapt_profile=_without_side_effects,
                journal=self,
                scheduler=ReplayedScheduler,
                binding_cycle=ReplayedBindingCycle,
                preemptions=ReplayedPreemptions,
            ),
        )
        self._kinds = by_name(self.core.handlers)
        self._unknown = set[str]()
        self._objects: dict[str, dict[str, Any]] = {name: {} for name in self._kinds}

    def _configuration(self, config: Mapping[str, Any]) -> KubeSchedulerConfiguration:
        # The first recordings do not say which release they are like; there was one.
        return from_object(
            {"emulatedVersion": RELEASES[0], **config},
            source="recording",
            args_models=args_models(self._registry),
            adjust=emulating(self._release),
        )

    async def step(self, line: lines.Line) -> None:
        """Make one step. Raises LineError, or what msgspec raises, if *line* cannot be meant."""
        self.clock.moment = getattr(line, "t", self.clock.moment)
        match line:
            case lines.Added() | lines.Updated() | lines.Deleted():
                self._told(line)
            case lines.Attempt():
                await self._attempt(line)
            case lines.Bound():
                if line.code not in _CODES:
                    raise LineError(f"code: {line.code!r}: must be a code of a status")
                self._endings.come(line.uid, line)
            case lines.Answer() if line.call.startswith(EXTENDER_CALL):
                self._extenders.come(line)
            case lines.Answer():
                check_answer(line)
                self._writes.answers.come(line)
            case lines.Woke():
                self.clock.wake(line.sleep)
            case lines.Flush():
                if line.leftovers:
                    self.core.queue.flush_unschedulable_pods_leftover()
                else:
                    self.core.queue.flush_backoff_completed()
            case lines.Preempt():
                self._preempt(line.uid)
            case lines.Evicted():
                self._evictions.come(line.uid, line)
            case lines.Job():
                self._do(line.name)
            case lines.Configured():
                self._reconfigure(line)
            case _:
                pass
        self.core.queue.settle()
        if self._tasks:
            await _turns()
        if self._failures:
            failure = self._failures.pop()
            raise LineError(f"{type(failure).__name__}: {failure}") from failure

    async def end(self) -> None:
        """Give up what has not ended."""
        self.following.end()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _told(self, line: lines.Added | lines.Updated | lines.Deleted) -> None:
        """Do as a watch that tells of an object."""
        kind = self._kinds.get(line.kind)
        if kind is None:
            if line.kind not in self._unknown:  # or its feature gate is off
                self._unknown.add(line.kind)
                log.warning("objects of a kind are passed over", extra={"kind": line.kind})
            return
        try:
            obj = kind.decode(bytes(line.object))
        except UNREADABLE as exc:
            raise LineError(f"object of kind {line.kind!r}: {exc}") from exc
        known = self._objects[line.kind]
        key, handler = obj.metadata.key, self.core.handlers[kind]
        old = known.pop(key, None)
        if not isinstance(line, lines.Deleted):
            known[key] = obj
        if kind is PODS:
            _follow(self._pods, key, known.get(key))
        try:
            if isinstance(line, lines.Deleted):
                handler.on_delete(obj)
            elif isinstance(line, lines.Updated) and old is not None:
                handler.on_update(old, obj)
            else:
                handler.on_add(obj)
        except Exception:  # as the informers: an error of a plugin stops nothing
            log.exception("event handler failed", extra={"kind": line.kind, "key": key})

    async def _attempt(self, line: lines.Attempt) -> None:
        self._extenders.begin(line.number)
        if self._tasks:
            await _turns()
        self._chance.attempt = line.number
        scheduler = self.core.scheduler
        queued = self._take(line)
        self.core.sampling.next_start_node_index = line.start
        self.following.begin(line)
        if queued is None or scheduler.apply_cached_failure(queued):
            self.following.end()
        else:
            self._start(self._try(queued))
            await _turns()

    def _take(self, line: lines.Attempt) -> QueuedPodInfo | None:
        """Take the pod from the queue that was taken, whether or not it would be its turn."""
        queued = self.core.queue.pop_entity_of(line.pod)
        if queued is not None and all(each.uid != line.uid for each in queued.pods):
            self.core.queue.entity_done(queued)
            return None
        return queued

    async def _try(self, queued: QueuedPodInfo) -> None:
        scheduler = self.core.scheduler
        for binding in await scheduler.schedule_one(queued):
            self._start(scheduler.binding_cycle.run(binding))
        self.following.end()

    def _preempt(self, uid: str) -> None:
        while (pending := self.core.preemptions.take()) is not None:
            self._pending[pending.uid] = pending
        found = self._pending.pop(uid, None)
        if found is not None:
            self._start(self.core.preemptions.prepare_candidate(found, self.core.queue))

    def _do(self, name: str) -> None:
        background = self._writes.background
        while (job := background.take()) is not None:
            self._jobs[job.name] = job
        found = self._jobs.pop(name, None)
        if found is not None:
            self._start(background.do(found))

    def _reconfigure(self, line: lines.Configured) -> None:
        if self._own_config:
            return
        try:
            self.core.reconfigure(self._configuration(line.config), self._registry)
        except ConfigError as exc:  # as it was then: nothing has changed
            log.warning("configuration refused", extra={"error": str(exc)})

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            self._failures.append(failure)

    # What the core tells.

    def begins(self, core: SchedulerCore) -> None:
        assert isinstance(core.scheduler, ReplayedScheduler)
        assert isinstance(core.scheduler.binding_cycle, ReplayedBindingCycle)
        assert isinstance(core.preemptions, ReplayedPreemptions)
        core.preemptions.evictions = self._evictions
        core.scheduler.following = self.following
        core.scheduler.binding_cycle.endings = self._endings

    def decided(self, record: DecisionRecord, outcome: Outcome | None) -> None:
        self.following.decided(lines.Decision.of(record, outcome))


def _follow(pods: dict[str, Pod], key: str, pod: Pod | None) -> None:
    if pod is None:
        pods.pop(key, None)
    else:
        pods[key] = pod


def _without_side_effects(profile: Profile) -> None:
    """Run nothing that reaches beyond the recording; what became of each binding is in it."""
    profile.binds = []
    profile.pre_binds = [pre_bind for pre_bind in profile.pre_binds if pre_bind.NAME in PRE_BINDS]
    profile.post_binds = []


async def _turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)
