"""The world of a replayed core: what the API server answered, and when pauses ended."""

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from berth.insight.recording import lines
from berth.insight.recording.files import LineError
from berth.insight.recording.recorder import (
    BOUND_NODE,
    CLAIM,
    EVICT,
    PATCH_POD_STATUS,
    UPDATE,
    key_of,
)
from berth.kube.client import errors
from berth.kube.objects.devices import ResourceClaim
from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.kube.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.runtime.errors import UNREADABLE
from berth.scheduler.background import Background, Work
from berth.scheduler.framework.listers import KINDS
from berth.scheduler.framework.writes import ConflictError

T = TypeVar("T")

_KIND: Final = {kind.type: kind for kind in KINDS.values()}
_API_ERRORS: Final[dict[str, type[errors.ApiError]]] = {
    name: error
    for name, error in vars(errors).items()
    if isinstance(error, type) and issubclass(error, errors.ApiError)
}


class RecordedError(Exception):
    """An error of a class that is not known here."""


class Meetings(Generic[T]):
    """Whoever waits and what it waits for, by key; either may come first."""

    def __init__(self) -> None:
        self._waiting: defaultdict[object, deque[asyncio.Future[T]]] = defaultdict(deque)
        self._came: defaultdict[object, deque[T]] = defaultdict(deque)

    async def wait(self, key: object) -> T:
        """Return what comes for *key*."""
        if self._came[key]:
            return self._came[key].popleft()
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting[key].append(future)
        return await future

    def come(self, key: object, what: T) -> None:
        """Give *what* to the first that waits for *key*, or that will."""
        waiting = self._waiting[key]
        while waiting:
            future = waiting.popleft()
            if not future.done():
                future.set_result(what)
                return
        self._came[key].append(what)


class Answers:
    """What the API server answered, for whoever asks."""

    def __init__(self) -> None:
        self._asked: Counter[tuple[str, str]] = Counter()
        self._answers: Meetings[lines.Answer] = Meetings()

    async def wait(self, call: str, key: str) -> lines.Answer:
        self._asked[call, key] += 1
        return await self._answers.wait((call, key, self._asked[call, key]))

    def come(self, answer: lines.Answer) -> None:
        self._answers.come((answer.call, answer.key, answer.nth), answer)


class ReplayClock:
    """Stands at the time of the step; pauses end when they ended."""

    def __init__(self) -> None:
        self.moment = 0.0
        self._pauses: Meetings[None] = Meetings()
        self._sleeps = 0

    def now(self) -> float:
        return self.moment

    monotonic = cpu_time = now

    async def sleep(self, _seconds: float) -> None:
        self._sleeps += 1
        await self._pauses.wait(self._sleeps)

    def wake(self, sleep: int) -> None:
        """End the pause of this number."""
        self._pauses.come(sleep, None)


class ReplayedWrites:
    """The :class:`~berth.scheduler.core.outside.ApiWrites` that answers as recorded, and writes
    nothing.

    Nothing is bound: how each binding ended is a step of the recording.
    """

    is_binding = False
    is_behind = False
    has_room = True

    def __init__(self) -> None:
        self.background = Background()
        self.answers = Answers()
        self.resource_claims = _ReplayedClaims(self.answers)

    def start(self, name: str, work: Work) -> None:
        self.background.start(name, work)

    def event(self, *_args: Any, **_fields: Any) -> None:
        """Drop it, as all that nobody waits for."""

    status = pod_group_condition = event

    async def until_room(self) -> None:
        """Return at once: that there was room was part of when an attempt was made."""

    async def evict(self, pod: Pod, _condition: Condition, *, nominated: Pod | None = None) -> bool:
        return bool(await self._answer(EVICT, pod.metadata.uid))

    async def patch_pod_status(self, pod: Pod, _status: Mapping[str, Any]) -> None:
        await self._answer(PATCH_POD_STATUS, pod.metadata.uid)

    async def bound_node(self, pod: Pod) -> str | None:
        node: str | None = await self._answer(BOUND_NODE, pod.metadata.uid)
        return node

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        answer = await self.answers.wait(UPDATE, volume.metadata.uid)
        return _object(PersistentVolume, answer)

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        answer = await self.answers.wait(UPDATE, claim.metadata.uid)
        return _object(PersistentVolumeClaim, answer)

    async def _answer(self, call: str, key: str) -> Any:
        return _result(await self.answers.wait(call, key))


class _ReplayedClaims:
    def __init__(self, answers: "Answers") -> None:
        self._answers = answers

    async def _claim(self, verb: str, key: str) -> ResourceClaim:
        return _object(ResourceClaim, await self._answers.wait(CLAIM + verb, key))

    async def get(self, _namespace: str, name: str) -> ResourceClaim:
        return await self._claim("get", name)

    async def create(self, body: Mapping[str, Any]) -> ResourceClaim:
        return await self._claim("create", key_of(body))

    async def update(self, body: Mapping[str, Any]) -> ResourceClaim:
        return await self._claim("update", key_of(body))

    async def update_status(self, body: Mapping[str, Any]) -> ResourceClaim:
        return await self._claim("update status", key_of(body))

    async def patch_status(
        self, _namespace: str, name: str, _patch: Mapping[str, Any]
    ) -> ResourceClaim:
        return await self._claim("patch status", name)

    async def delete(self, _namespace: str, name: str) -> None:
        _result(await self._answers.wait(CLAIM + "delete", name))


def check_answer(answer: lines.Answer) -> None:
    """Raise LineError if whoever waits for *answer* could not read it."""
    if answer.error or answer.call == f"{CLAIM}delete":
        return
    types: Sequence[type[Any]] = ()
    if answer.call.startswith(CLAIM):
        types = (ResourceClaim,)
    elif answer.call == UPDATE:
        types = (PersistentVolume, PersistentVolumeClaim)
    problem: Exception | None = None
    for type_ in types:
        try:
            _KIND[type_].decode(bytes(answer.result))
        except UNREADABLE as exc:
            problem = exc
        else:
            return
    if problem is not None:
        raise LineError(f"result of {answer.call!r}: {problem}") from problem


def _object(type_: type[T], answer: lines.Answer) -> T:
    _raise(answer)
    obj: T = _KIND[type_].decode(bytes(answer.result))
    return obj


def _result(answer: lines.Answer) -> Any:
    _raise(answer)
    return msgspec.json.decode(answer.result)


def _raise(answer: lines.Answer) -> None:
    """Raise the error that *answer* was, if it was one."""
    if not answer.error:
        return
    if answer.error == ConflictError.__name__ and answer.call.startswith(CLAIM):
        raise ConflictError(answer.message)
    known = _API_ERRORS.get(answer.error)
    if known is None:
        raise RecordedError(answer.message)
    raise known(answer.status, "", answer.message)
