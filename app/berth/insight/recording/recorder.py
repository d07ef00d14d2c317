"""Tells a file of every step of a core.

::

    watches --> handlers() --> core --> outside(): the API, whose answers are steps, and chance
                  |              |
                  +--> lines <---+  steps of the scheduler (Journal)

Steps do not overlap, except that in memory an attempt may be told of its own writes before it has
ended; its line comes first all the same.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec
from msgspec.structs import replace

from berth.insight.recording import lines
from berth.insight.recording.chance import AttemptChance
from berth.insight.recording.kinds import kind_name
from berth.kube.informer.store import ResourceEventHandler
from berth.kube.objects.devices import ResourceClaim
from berth.kube.objects.meta import Condition
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.kube.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.runtime.clock import Clock
from berth.runtime.redaction import without_password
from berth.runtime.release import version
from berth.scheduler.background import Background, Job, Work
from berth.scheduler.config.configz import to_shown
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.core.outside import ApiWrites, Outside, RandomSources
from berth.scheduler.core.scheduler_core import CoreJournal, Handlers, SchedulerCore
from berth.scheduler.decisions import DecisionRecord
from berth.scheduler.extender.extenders import Extenders
from berth.scheduler.extender.wire import FilterResult, MetaVictims
from berth.scheduler.framework.exports import exported
from berth.scheduler.framework.kind import Kind
from berth.scheduler.framework.listers import KINDS
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.outcome import Outcome

if TYPE_CHECKING:
    from berth.scheduler.extender.client import ExtenderClient, Verb

T = TypeVar("T")

EVICT: Final = "evict"
PATCH_POD_STATUS: Final = "patch pod status"
BOUND_NODE: Final = "look up node"
UPDATE: Final = "update"
CLAIM: Final = "claim: "
"""Begins the names of calls about ResourceClaims."""

_KIND: Final = {kind.type: kind for kind in KINDS.values()}

EXTENDER_CALL: Final = "extender: "
"""Begins the names of calls of extenders."""

EXTENDER_ANSWERS: Final[dict[str, Any]] = {
    "filter": FilterResult,
    "preempt": dict[str, MetaVictims],
}
"""By verb: what is read of an answer."""
EXTENDER_SCORES: Final = f"{EXTENDER_CALL}scores"
"""What all extenders that score come to together: they are asked beside each other, and the attempt
goes on when the last has answered."""

Write = Callable[[bytes], None]
"""Takes a line, without its end."""


class Recorder(CoreJournal):
    """The :class:`~berth.scheduler.core.scheduler_core.CoreJournal` that writes lines."""

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

    def steady(self, clock: Clock) -> Clock:
        return self._steady

    def outside(self, outside: Outside) -> Outside:
        api = cast("ApiWrites", _RecordedWrites(outside.api, self))
        extenders = _RecordedExtenders(outside.extenders, self)
        rng = RandomSources(
            ties=self.chance.source(),
            plugins=self.chance.source(),
            extenders=self.chance.source(),
            sampling=outside.rng.sampling,
        )
        return replace(outside, api=api, rng=rng, extenders=extenders)

    def handlers(self, handlers: Handlers) -> Handlers:
        return {kind: _RecordedHandler(kind, handler, self) for kind, handler in handlers.items()}

    def begins(self, core: SchedulerCore) -> None:
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
        pod = queued.pod_info  # of a group the first one
        self.write(lines.Attempt(self._began, number, pod.key, pod.uid, self._start, decisions))
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


# Between the core and its world: watches, the API server, extenders.


class _RecordedHandler:
    """Records what a watch tells, and tells the handler."""

    def __init__(
        self, kind: Kind[Any], handler: ResourceEventHandler[Any], recorder: Recorder
    ) -> None:
        self._kind = kind
        self._name = kind_name(kind)
        self._handler = handler
        self._recorder = recorder

    def on_add(self, obj: Any) -> None:
        self._recorder.write(lines.Added(*self._told(obj)))
        self._handler.on_add(obj)

    def on_update(self, old: Any, new: Any) -> None:
        self._recorder.write(lines.Updated(*self._told(new)))
        self._handler.on_update(old, new)

    def on_delete(self, obj: Any) -> None:
        self._recorder.write(lines.Deleted(*self._told(obj)))
        self._handler.on_delete(obj)

    def _told(self, obj: Any) -> tuple[float, str, Any]:
        # It is encoded with its line, and only ever read as JSON.
        return self._recorder.tick(), self._name, self._recorder.exported(self._kind, obj)


class _RecordedWrites:
    """The API, whose answers are recorded if something but the binding itself waits for them.

    That a binding has ended is a step of its own.
    """

    def __init__(self, api: ApiWrites, recorder: Recorder) -> None:
        self._api = api
        self._answered = recorder.answered
        self.resource_claims = _RecordedClaims(api, recorder)
        self.background = _RecordedBackground(recorder)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def start(self, name: str, work: Work) -> None:
        self.background.start(name, work)

    async def evict(self, pod: Pod, condition: Condition, *, nominated: Pod | None = None) -> bool:
        write = self._api.evict(pod, condition, nominated=nominated)
        return await self._answered(EVICT, pod.metadata.uid, write)

    async def patch_pod_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        write = self._api.patch_pod_status(pod, status)
        await self._answered(PATCH_POD_STATUS, pod.metadata.uid, write)

    async def bound_node(self, pod: Pod) -> str | None:
        return await self._answered(BOUND_NODE, pod.metadata.uid, self._api.bound_node(pod))

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        write = self._api.update_persistent_volume(volume)
        return await self._answered(
            UPDATE, volume.metadata.uid, write, kind=_KIND[PersistentVolume]
        )

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        write = self._api.update_persistent_volume_claim(claim)
        return await self._answered(
            UPDATE, claim.metadata.uid, write, kind=_KIND[PersistentVolumeClaim]
        )


class _RecordedClaims:
    """ResourceClaims on the API server."""

    def __init__(self, api: ApiWrites, recorder: Recorder) -> None:
        self._api = api
        self._recorder = recorder

    async def _claim(self, verb: str, key: str, answer: Any) -> ResourceClaim:
        claim: ResourceClaim = await self._recorder.answered(
            CLAIM + verb, key, answer, kind=_KIND[ResourceClaim]
        )
        return claim

    async def get(self, namespace: str, name: str) -> ResourceClaim:
        return await self._claim("get", name, self._api.resource_claims.get(namespace, name))

    async def create(self, body: Mapping[str, Any]) -> ResourceClaim:
        return await self._claim("create", key_of(body), self._api.resource_claims.create(body))

    async def update(self, body: Mapping[str, Any]) -> ResourceClaim:
        return await self._claim("update", key_of(body), self._api.resource_claims.update(body))

    async def update_status(self, body: Mapping[str, Any]) -> ResourceClaim:
        write = self._api.resource_claims.update_status(body)
        return await self._claim("update status", key_of(body), write)

    async def patch_status(
        self, namespace: str, name: str, patch: Mapping[str, Any]
    ) -> ResourceClaim:
        write = self._api.resource_claims.patch_status(namespace, name, patch)
        return await self._claim("patch status", name, write)

    async def delete(self, namespace: str, name: str) -> None:
        write = self._api.resource_claims.delete(namespace, name)
        await self._recorder.answered(CLAIM + "delete", name, write)


def key_of(body: Mapping[str, Any]) -> str:
    """Return what tells a ResourceClaim of a call from others."""
    meta = body["metadata"]
    name: str = meta.get("name") or meta.get("generateName", "")
    return name


class _RecordedBackground(Background):
    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    async def do(self, job: Job) -> None:
        self._recorder.job_begins(job.name)
        await super().do(job)


class _RecordedExtenders(Extenders):
    """Extenders whose answers are recorded."""

    def __init__(self, extenders: Extenders, recorder: Recorder) -> None:
        super().__init__(
            extender.asking(cast("ExtenderClient", _RecordedClient(extender.client, self)))
            for extender in extenders
        )
        self._recorder = recorder
        self._attempt = 0
        self._calls = Counter[str]()
        """Of the attempt."""

    async def prioritize(self, pod: PodInfo, nodes: Sequence[Node]) -> dict[str, int]:
        return await self.recorded(EXTENDER_SCORES, super().prioritize(pod, nodes))

    async def recorded(self, call: str, answer: Awaitable[T]) -> T:
        """Wait for the *answer* to a *call*, and record it."""
        attempt = self._recorder.chance.attempt
        if attempt != self._attempt:
            self._attempt = attempt
            self._calls.clear()
        self._calls[call] += 1
        return await self._recorder.answered(call, str(attempt), answer, nth=self._calls[call])


class _RecordedClient:
    def __init__(self, client: "ExtenderClient", extenders: _RecordedExtenders) -> None:
        self._client = client
        self._extenders = extenders

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def call(self, verb: "Verb", path: str, body: bytes, read: Callable[[bytes], T]) -> T:
        answer = self._client.call(verb, path, body, read)
        if verb not in EXTENDER_ANSWERS:
            return await answer
        return await self._extenders.recorded(extender_call(verb, self._client.name), answer)


def extender_call(verb: str, extender: str) -> str:
    return f"{EXTENDER_CALL}{verb} {extender}"
