"""Extenders that answer what a test says, without a network."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import msgspec

from berth.runtime.clock import Clock, FakeClock
from berth.scheduler.config.types import Extender as Config
from berth.scheduler.extender.build import build_extenders
from berth.scheduler.extender.client import Observer, Outcome, Verb
from berth.scheduler.extender.extenders import Extenders

Answer = Any
"""JSON of an answer; an int: that status; an exception: no answer; a function of the request."""

PREFIX = "http://extender/scheduler"


@dataclass
class FakeNetwork(httpx.AsyncBaseTransport):
    """Answers by path, and remembers what was asked."""

    answers: Mapping[str, Answer]
    requests: list[tuple[str, Any]] = field(default_factory=list)
    """Path and JSON."""
    headers: list[httpx.Headers] = field(default_factory=list)
    closed: int = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        asked = msgspec.json.decode(await request.aread())
        self.requests.append((request.url.path, asked))
        self.headers.append(request.headers)
        answer = self.answers[request.url.path]
        if callable(answer):
            answer = answer(asked)
        if asyncio.iscoroutine(answer):
            answer = await answer
        match answer:
            case Exception():
                raise answer
            case int():
                return httpx.Response(answer)
            case bytes():
                return httpx.Response(200, content=answer)
            case _:
                return httpx.Response(200, content=msgspec.json.encode(answer))

    async def aclose(self) -> None:
        self.closed += 1

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]


@dataclass
class Calls:
    """What was told of calls."""

    seen: list[tuple[str, Verb, Outcome, float]] = field(default_factory=list)

    def called(self, extender: str, verb: Verb, outcome: Outcome, *, seconds: float) -> None:
        self.seen.append((extender, verb, outcome, seconds))


def config(prefix: str = PREFIX, **fields: Any) -> Config:
    """Make an extender that does everything, but for what *fields* say."""
    verbs = {
        "filter_verb": "filter",
        "prioritize_verb": "prioritize",
        "preempt_verb": "preempt",
        "bind_verb": "bind",
        "weight": 1,
        "node_cache_capable": True,
    }
    return Config(url_prefix=prefix, **{**verbs, **fields})


def extenders(
    network: httpx.AsyncBaseTransport,
    *configs: Config,
    clock: Clock | None = None,
    may_write: Callable[[], bool] = lambda: True,
    calls: Observer | None = None,
) -> Extenders:
    return build_extenders(
        configs or (config(),),
        clock=clock or FakeClock(),
        observer=calls or Calls(),
        may_write=may_write,
        transport=network,
    )
