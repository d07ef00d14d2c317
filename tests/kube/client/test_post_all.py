"""Several objects posted at a time, by a client whose transport is a function."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from berth.kube.client.api_client import ApiClient
from berth.kube.client.errors import ApiError, FencedError, TooManyRequestsError, UnavailableError
from berth.kube.client.rate_limit import TokenBucket
from berth.kube.client.transport import Headers, Response
from berth.runtime.clock import FakeClock
from berth.scheduler.metrics.recorders import RequestMetrics

CREATED = Response(201, None, b"{}")
BUSY = Response(429, "0", b'{"reason": "TooManyRequests", "message": "busy"}')
FULL = Response(500, None, b'{"reason": "InternalError", "message": "full"}')
BROKEN = UnavailableError("broke off", sent=None)


class ScriptedTransport:
    """Answers what is posted by a script, and remembers what went together."""

    def __init__(self, *script: Response | UnavailableError) -> None:
        self._script = list(script)
        self.batches: list[list[str]] = []

    async def exchange(
        self, method: str, target: str, *, guard: Callable[[], None], **_others: Any
    ) -> Response:
        guard()
        self.batches.append([target])
        answer = self._next()
        if isinstance(answer, UnavailableError):
            raise answer
        return answer

    async def post_all(
        self,
        posts: Sequence[tuple[str, bytes]],
        *,
        headers: Headers,
        timeout: float,
        guard: Callable[[], None],
    ) -> list[Response | UnavailableError]:
        guard()
        self.batches.append([target for target, _ in posts])
        return [self._next() for _ in posts]

    def stream(self, target: str, *, headers: Headers, timeout: float | None) -> Any:
        raise AssertionError("nothing is watched")

    async def close(self) -> None: ...

    def _next(self) -> Response | UnavailableError:
        return self._script.pop(0) if self._script else CREATED


def client_of(
    transport: ScriptedTransport, *, clock: FakeClock, qps: float = 0.0, burst: int = 1
) -> ApiClient:
    limiter = TokenBucket(qps=qps, burst=burst, clock=clock)
    return ApiClient(transport, "http://server", user_agent="test/1", limiter=limiter, clock=clock)


def posts(count: int) -> list[tuple[str, bytes]]:
    return [(f"/{n}", b"{}") for n in range(count)]


async def test_each_has_an_answer_of_its_own() -> None:
    transport = ScriptedTransport(CREATED, FULL, BROKEN)
    client = client_of(transport, clock=FakeClock())
    metrics = client.observer = RequestMetrics()

    first, second, third = await client.post_all(posts(3))

    assert transport.batches == [["/0", "/1", "/2"]]
    assert first == b"{}"
    assert isinstance(second, ApiError)
    assert (second.status, second.message) == (500, "full")
    assert isinstance(third, UnavailableError)
    assert (third.message, third.sent) == ("POST /2: broke off", None)
    counted = next(iter(metrics.collect())).samples
    assert {sample.labels["code"]: sample.value for sample in counted} == {
        "201": 1, "500": 1, "<error>": 1,
    }  # fmt: skip


async def test_half_of_the_burst_is_left_to_others() -> None:
    """From then on, each waits for its own turn."""
    transport = ScriptedTransport()
    client = client_of(transport, clock=FakeClock(), qps=10, burst=8)

    await client.post_all(posts(6))

    assert transport.batches == [["/0", "/1", "/2", "/3"], ["/4"], ["/5"]]
    assert client.limiter.reserve() == 0.0


async def test_what_a_busy_server_refused_is_sent_again_when_it_says_so() -> None:
    transport = ScriptedTransport(CREATED, BUSY, BUSY, CREATED, FULL)
    client = client_of(transport, clock=FakeClock())

    answers = await client.post_all(posts(3))

    assert transport.batches == [["/0", "/1", "/2"], ["/1"], ["/2"]]
    assert answers[:2] == [b"{}", b"{}"]
    assert isinstance(answers[2], ApiError)
    assert answers[2].status == 500


async def test_a_server_that_stays_busy_is_asked_four_times_in_all() -> None:
    transport = ScriptedTransport(*[BUSY] * 9)
    client = client_of(transport, clock=FakeClock())

    (answer,) = await client.post_all(posts(1))

    assert isinstance(answer, TooManyRequestsError)
    assert transport.batches == [["/0"]] * 4


@pytest.mark.parametrize("leads_for", [0, 1], ids=["before", "when the connection is there"])
async def test_nothing_leaves_beyond_a_fence(leads_for: int) -> None:
    transport, answers_left = ScriptedTransport(), [True] * leads_for

    def may_write() -> bool:
        return answers_left.pop() if answers_left else False

    client = client_of(transport, clock=FakeClock()).fenced(may_write)
    answers = await client.post_all(posts(2))

    assert [type(answer) for answer in answers] == [FencedError, FencedError]
    assert transport.batches == []
