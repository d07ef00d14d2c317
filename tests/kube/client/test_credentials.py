"""Tokens are looked at again once a minute, and kept when that fails."""

import asyncio
import logging

import pytest

from berth.kube.client.credentials import REFRESH_INTERVAL, Credentials
from berth.runtime.clock import FakeClock


class Source:
    """A token that changes with every reload, unless reloading fails or hangs."""

    def __init__(self) -> None:
        self.reloads = 0
        self.failure: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def reload(self) -> None:
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        self.reloads += 1

    def token(self) -> str:
        return f"Bearer {self.reloads}\n"


async def test_a_token_is_reloaded_once_a_minute() -> None:
    clock, source = FakeClock(), Source()
    credentials = Credentials(source.reload, source.token, clock=clock)
    tokens = []
    for _ in range(5):
        tokens.append(await credentials())
        clock.advance(REFRESH_INTERVAL / 2)

    assert tokens == ["Bearer 0", "Bearer 0", "Bearer 1", "Bearer 1", "Bearer 2"]


async def test_only_one_request_waits_for_a_reload() -> None:
    clock, source = FakeClock(), Source()
    credentials = Credentials(source.reload, source.token, clock=clock)
    clock.advance(REFRESH_INTERVAL)
    source.gate.clear()
    first = asyncio.create_task(credentials(), name="first")
    await asyncio.sleep(0)

    assert await credentials() == "Bearer 0"

    source.gate.set()
    assert await first == "Bearer 1"


async def test_a_failed_reload_is_logged_and_the_old_token_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, source = FakeClock(), Source()
    credentials = Credentials(source.reload, source.token, clock=clock)
    source.failure = RuntimeError("plugin not found")
    clock.advance(REFRESH_INTERVAL)

    with caplog.at_level(logging.WARNING):
        assert await credentials() == "Bearer 0"

    assert [record.message for record in caplog.records] == ["credentials were not refreshed"]
    source.failure = None
    clock.advance(REFRESH_INTERVAL)
    assert await credentials() == "Bearer 1"


async def test_a_reload_that_hangs_is_not_waited_for_for_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, source = FakeClock(), Source()
    credentials = Credentials(source.reload, source.token, clock=clock, reload_seconds=0.0)
    clock.advance(REFRESH_INTERVAL)
    source.gate.clear()

    assert await credentials() == "Bearer 0"
    assert [getattr(record, "error", "") for record in caplog.records] == ["TimeoutError"]
