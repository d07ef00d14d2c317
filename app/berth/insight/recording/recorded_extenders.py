"""Between a core and its extenders, whose answers are recorded and given again.

What is recorded is what was read of an answer: names of nodes, reasons, scores and UIDs. How
bindings by an extender ended is a step of its own, as that of every binding.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec

from berth.insight.recording import lines
from berth.kube.objects.node import Node
from berth.runtime.redaction import without_password
from berth.scheduler.config.types import Extender as Config
from berth.scheduler.extender.errors import ExtenderError
from berth.scheduler.extender.extender import Extender
from berth.scheduler.extender.extenders import Extenders
from berth.scheduler.extender.wire import FilterResult, MetaVictims
from berth.scheduler.framework.pod_info import PodInfo

if TYPE_CHECKING:
    from berth.insight.recording.recorder import Recorder
    from berth.scheduler.extender.client import ExtenderClient, Verb

T = TypeVar("T")

CALL: Final = "extender: "
"""Begins the names of calls of extenders."""
NOT_ASKED: Final = "the recorded scheduler did not ask this extender in this attempt"

_ANSWERS: Final[dict[str, Any]] = {"filter": FilterResult, "preempt": dict[str, MetaVictims]}
"""By verb: what is read of an answer."""
_SCORES: Final = f"{CALL}scores"
"""What all extenders that score come to together: they are asked beside each other, and the attempt
goes on when the last has answered."""


class RecordedExtenders(Extenders):
    """Extenders whose answers are recorded."""

    def __init__(self, extenders: Extenders, recorder: "Recorder") -> None:
        super().__init__(
            extender.asking(cast("ExtenderClient", _RecordedClient(extender.client, self)))
            for extender in extenders
        )
        self._recorder = recorder
        self._attempt = 0
        self._calls = Counter[str]()
        """Of the attempt."""

    async def prioritize(self, pod: PodInfo, nodes: Sequence[Node]) -> dict[str, int]:
        return await self.recorded(_SCORES, super().prioritize(pod, nodes))

    async def recorded(self, call: str, answer: Awaitable[T]) -> T:
        """Wait for the *answer* to a *call*, and record it."""
        attempt = self._recorder.chance.attempt
        if attempt != self._attempt:
            self._attempt = attempt
            self._calls.clear()
        self._calls[call] += 1
        return await self._recorder.answered(call, str(attempt), answer, nth=self._calls[call])


class _RecordedClient:
    def __init__(self, client: "ExtenderClient", extenders: RecordedExtenders) -> None:
        self._client = client
        self._extenders = extenders

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def call(self, verb: "Verb", path: str, body: bytes, read: Callable[[bytes], T]) -> T:
        answer = self._client.call(verb, path, body, read)
        if verb not in _ANSWERS:
            return await answer
        return await self._extenders.recorded(_call(verb, self._client.name), answer)


class ExtenderAnswers:
    """Answers of extenders, as they were recorded."""

    def __init__(self) -> None:
        self._attempt = 0
        self._asked = Counter[str]()
        """How often each call was made in the attempt."""
        self._answers: dict[tuple[str, int], asyncio.Future[lines.Answer]] = {}
        """By call and how many of its kind came before it in the attempt."""

    def of(self, configs: Sequence[Config]) -> Extenders:
        """Return the extenders of *configs*, which give these answers."""
        return _ReplayedExtenders(configs, self)

    def begin(self, attempt: int) -> None:
        """*attempt* is about to be made: what was asked before and not answered never will be."""
        for future in self._answers.values():
            if not future.done():
                future.set_exception(ExtenderError(NOT_ASKED))
        self._answers.clear()
        self._asked.clear()
        self._attempt = attempt

    def come(self, answer: lines.Answer) -> None:
        """Take an *answer* of an extender."""
        if answer.key == str(self._attempt):
            future = self._answer(answer.call, answer.nth)
            if not future.done():
                future.set_result(answer)

    async def wait(self, call: str) -> lines.Answer:
        """Return the next answer to *call* in this attempt. Raises ExtenderError."""
        self._asked[call] += 1
        return await self._answer(call, self._asked[call])

    def _answer(self, call: str, nth: int) -> asyncio.Future[lines.Answer]:
        future = self._answers.get((call, nth))
        if future is None:
            future = self._answers[call, nth] = asyncio.get_running_loop().create_future()
        return future


class _ReplayedExtenders(Extenders):
    def __init__(self, configs: Sequence[Config], answers: ExtenderAnswers) -> None:
        clients = (_ReplayedClient(answers, without_password(each.url_prefix)) for each in configs)
        super().__init__(
            Extender(config, cast("ExtenderClient", client), may_write=lambda: True)
            for config, client in zip(configs, clients, strict=True)
        )
        self._answers = answers

    async def prioritize(self, _pod: PodInfo, _nodes: Sequence[Node]) -> dict[str, int]:
        try:
            answer = await self._answers.wait(_SCORES)
        except ExtenderError:
            return {}
        return msgspec.json.decode(answer.result, type=dict[str, int])


class _ReplayedClient:
    def __init__(self, answers: ExtenderAnswers, prefix: str) -> None:
        self.name = prefix.rstrip("/")
        self._answers = answers

    async def call(self, verb: "Verb", _path: str, _body: bytes, _read: Any) -> Any:
        if verb not in _ANSWERS:
            return ""
        answer = await self._answers.wait(_call(verb, self.name))
        if answer.error:
            raise ExtenderError(answer.message)
        return msgspec.json.decode(answer.result, type=_ANSWERS[verb])


def _call(verb: str, extender: str) -> str:
    return f"{CALL}{verb} {extender}"
