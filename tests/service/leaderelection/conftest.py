"""Electors that run during a test, and are gone after it however it ends."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from berth.service.leaderelection.elector import LeaderElector
from tests.service.leaderelection.lease_api import lead_for_ever

Work = Callable[[], Awaitable[None]]
Run = Callable[..., asyncio.Task[None]]


@pytest.fixture
async def run() -> AsyncIterator[Run]:
    """Start ``elector.run(lead)``."""
    tasks: list[asyncio.Task[None]] = []

    def start(elector: LeaderElector, lead: Work = lead_for_ever) -> asyncio.Task[None]:
        task = asyncio.create_task(elector.run(lead), name=elector.identity)
        tasks.append(task)
        return task

    yield start
    for task in tasks:
        while not task.done():
            task.cancel()  # once to stop, again so that it does not wait for its farewell
            await asyncio.wait([task], timeout=0.01)
