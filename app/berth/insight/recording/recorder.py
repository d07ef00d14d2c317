"""Tells a file of every step of a core.

::

    watches --> handlers() --> core --> outside(): the API, whose answers are steps, and chance
                  |              |
                  +--> lines <---+  steps of the scheduler (Journal)

Steps do not overlap, except that in memory an attempt may be told of its own writes before it has
ended; its line comes first all the same.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from berth.insight.recording import lines
from berth.insight.recording.chance import AttemptChance
from berth.insight.recording.recorded_api import RecordedHandler, RecordedWrites
from berth.insight.recording.recorded_extenders import RecordedExtenders
from berth.kube.informer.store import ResourceEventHandler
from berth.runtime.clock import Clock
from berth.runtime.redaction import without_password
from berth.runtime.release import version
from berth.scheduler.config.configz import to_shown
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.core.journal import Handlers
from berth.scheduler.core.outside import ApiWrites, Outside, RandomSources
from berth.scheduler.decisions import DecisionRecord
from berth.scheduler.framework.exports import exported
from berth.scheduler.framework.kind import Kind
from berth.scheduler.framework.pod_info import QueuedPodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.outcome import Outcome

if TYPE_CHECKING:
    from berth.scheduler.core.scheduler_core import SchedulerCore

T = TypeVar("T")

Write = Callable[[bytes], None]
"""Takes a line, without its end."""


class Recorder:
    """The :class:`~berth.scheduler.core.journal.CoreJournal` that writes lines."""

    def __init__(
        self,
        write: Write,
        *,
        clock: Clock,
        seed: int | None = None,
        max_in_unschedulable: float = 300.0,
        plugins: tuple[str, ...] = (),
    ) -> None:
        """*plugins* are those that are not in-tree, in words.

        *seed* is what chance follows from, a random one by default. *max_in_unschedulable* is in
        seconds.
        """
        self._write_line = write
        self._now = clock
        self._steady = SteadyClock(clock, woke=self._woke)
        self.clock: Clock = self._steady
        self.chance = AttemptChance(Random().getrandbits(48) if seed is None else seed)
        self._max_in_unschedulable = max_in_unschedulable
        self._plugins = plugins
        self._attempt: QueuedPodInfo | None = None
        """The pod of the attempt that is being made."""
        self._began = 0.0
        self._decisions: list[lines.Decision] = []
        self._during: list[lines.Line] = []
        """What was told during an attempt that has not ended."""
        self._start = 0
        self._calls: Counter[tuple[str, str]] = Counter()

    # What a core is made with.

    def outside(self, outside: Outside) -> Outside:
        api = cast("ApiWrites", RecordedWrites(outside.api, self))
        extenders = RecordedExtenders(outside.extenders, self)
        rng = RandomSources(
            ties=self.chance.source(),
            plugins=self.chance.source(),
            extenders=self.chance.source(),
            sampling=outside.rng.sampling,
        )
        return replace(outside, api=api, rng=rng, extenders=extenders)

    def handlers(self, handlers: Mapping[Kind[Any], ResourceEventHandler[Any]]) -> Handlers:
        return {kind: RecordedHandler(kind, each, self) for kind, each in handlers.items()}

    def begins(self, core: "SchedulerCore") -> None:
        self._core = core
        self.write(
            lines.Header(
                api_version=lines.API_VERSION,
                kind=lines.KIND,
                version=version(),
                config=shown(core.live.current),
                t=self.tick(),
                seed=self.chance.seed,
                max_in_unschedulable=self._max_in_unschedulable,
                plugins=self._plugins,
            )
        )

    def exported(self, kind: Kind[Any], obj: Any) -> Any:
        """Return *obj* as it may be recorded."""
        return exported(kind, obj, annotations=self._core.live.annotations)

    # Steps.

    def tick(self) -> float:
        """Begin a step: return its time, which stands still until the next one."""
        self._steady.moment = now = self._now.now()
        return now

    def write(self, line: lines.Line) -> None:
        if self._attempt is not None:
            self._during.append(line)
        else:
            self._write_line(lines.encode(line))

    def attempt_begins(self) -> None:
        self.attempt_ended()
        self.tick()
        self._start = self._core.sampling.next_start_node_index

    def popped(self, queued: QueuedPodInfo) -> None:
        self._attempt = queued
        self._began = self._steady.moment
        self.chance.next_attempt()

    def decided(self, record: DecisionRecord, outcome: Outcome | None) -> None:
        self._decisions.append(lines.Decision.of(record, outcome))

    def attempt_ended(self) -> None:
        queued, self._attempt = self._attempt, None
        if queued is None:
            return
        decisions = tuple(self._decisions)
        self._decisions.clear()
        number = self.chance.attempt
        self.write(
            lines.Attempt(self._began, number, queued.key, queued.uid, self._start, decisions)
        )
        for line in self._during:
            self.write(line)
        self._during.clear()

    def binding_ended(self, uid: str, status: Status | None) -> None:
        line = lines.Bound(self.tick(), uid)
        if status is not None:
            line = lines.Bound(line.t, uid, int(status.code), status.reasons, status.plugin)
        self.write(line)

    def preemption_begins(self, uid: str) -> None:
        self.write(lines.Preempt(self.tick(), uid))

    def evictions_ended(self, uid: str) -> None:
        self.write(lines.Evicted(self.tick(), uid))

    def flushes(self, *, leftovers: bool) -> None:
        t = self.tick()
        if leftovers or self._core.queue.sub_queues.pending_counts()["backoff"]:
            self.write(lines.Flush(t, leftovers))

    def reconfigured(self, config: KubeSchedulerConfiguration) -> None:
        self.write(lines.Configured(self.tick(), shown(config)))

    def job_begins(self, name: str) -> None:
        """Work that a plugin started is about to be done."""
        self.write(lines.Job(self.tick(), name))

    def _woke(self, sleep: int) -> None:
        self.write(lines.Woke(self.tick(), sleep))

    async def answered(
        self,
        call: str,
        key: str,
        answer: Awaitable[T],
        *,
        kind: Kind[Any] | None = None,
        nth: int | None = None,
    ) -> T:
        """Wait for the *answer* to a call, an object of *kind* if that is given; record it.

        *nth* counts the calls of this kind about *key*; by default they are counted here.
        """
        if nth is None:
            self._calls[call, key] = nth = self._calls[call, key] + 1
        try:
            result = await answer
        except Exception as exc:
            self.write(
                lines.Answer(
                    self.tick(),
                    call,
                    key,
                    nth,
                    error=type(exc).__name__,
                    status=getattr(exc, "status", 0),
                    message=str(exc),
                )
            )
            raise
        told = result if kind is None else self.exported(kind, result)
        self.write(lines.Answer(self.tick(), call, key, nth, msgspec.Raw(lines.encode(told))))
        return result


class SteadyClock:
    """A clock whose :meth:`now` stands still during a step; the end of a pause is a step."""

    def __init__(self, clock: Clock, *, woke: Callable[[int], None]) -> None:
        self.moment = clock.now()
        self.monotonic, self.cpu_time = clock.monotonic, clock.cpu_time
        self._clock = clock
        self._woke = woke
        self._sleeps = 0

    def now(self) -> float:
        return self.moment

    async def sleep(self, seconds: float) -> None:
        self._sleeps += 1
        number = self._sleeps
        await self._clock.sleep(seconds)
        self._woke(number)


def shown(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    """Return what of *config* decides: without secrets, and without how extenders are reached."""
    told = to_shown(config)
    extenders = [
        extender | {"urlPrefix": without_password(extender["urlPrefix"]), "tlsConfig": None}
        for extender in told.get("extenders", ())
    ]
    return told | {"extenders": extenders}
