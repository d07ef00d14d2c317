"""The extenders of a replay: they give the answers that were recorded.

What is recorded is what was read of an answer: names of nodes, reasons, scores and UIDs. How
bindings by an extender ended is a step of its own, as that of every binding.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from berth.insight.recording import lines
from berth.insight.recording.recorder import EXTENDER_ANSWERS, EXTENDER_SCORES, extender_call
from berth.kube.objects.node import Node
from berth.runtime.redaction import without_password
from berth.scheduler.config.types import Extender as Config
from berth.scheduler.extender.errors import ExtenderError
from berth.scheduler.extender.extender import Extender
from berth.scheduler.extender.extenders import Extenders
from berth.scheduler.framework.pod_info import PodInfo

if TYPE_CHECKING:
    from berth.scheduler.extender.client import ExtenderClient, Verb

NOT_ASKED: Final = "the recorded scheduler did not ask this extender in this attempt"


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
        clients = (
            _ReplayedClient(answers, without_password(extender.url_prefix)) for extender in configs
        )
        super().__init__(
            Extender(config, cast("ExtenderClient", client), may_write=lambda: True)
            for config, client in zip(configs, clients, strict=True)
        )
        self._answers = answers

    async def prioritize(self, _pod: PodInfo, _nodes: Sequence[Node]) -> dict[str, int]:
        try:
            answer = await self._answers.wait(EXTENDER_SCORES)
        except ExtenderError:
            return {}
        return msgspec.json.decode(answer.result, type=dict[str, int])


class _ReplayedClient:
    def __init__(self, answers: ExtenderAnswers, prefix: str) -> None:
        self.name = prefix.rstrip("/")
        self._answers = answers

    async def call(self, verb: "Verb", _path: str, _body: bytes, _read: Any) -> Any:
        if verb not in EXTENDER_ANSWERS:
            return ""
        answer = await self._answers.wait(extender_call(verb, self.name))
        if answer.error:
            raise ExtenderError(answer.message)
        return msgspec.json.decode(answer.result, type=EXTENDER_ANSWERS[verb])
