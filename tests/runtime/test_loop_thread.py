"""Work in the event loop of another thread: what comes of it, and how it is cancelled."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from berth.runtime.loop_thread import LoopThread, call_in, call_soon

pytestmark = pytest.mark.wall


@pytest.fixture
def other() -> Iterator[LoopThread]:
    with LoopThread("other") as thread:
        yield thread


async def where() -> str:
    return threading.current_thread().name


async def test_work_is_done_in_the_other_thread(other: LoopThread) -> None:
    assert await other.call(where) == "other"


async def test_what_it_raises_is_raised_here(other: LoopThread) -> None:
    async def fail() -> None:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await other.call(fail)


async def test_a_loop_that_is_waited_for_can_be_called_back(other: LoopThread) -> None:
    here = asyncio.get_running_loop()

    async def back() -> str:
        return f"{await where()}, {await call_in(here, where)}"

    assert await other.call(back) == f"other, {threading.current_thread().name}"


async def test_cancelling_waits_for_the_end_of_the_work(other: LoopThread) -> None:
    here, begun = asyncio.get_running_loop(), asyncio.Event()
    steps: list[str] = []

    async def work() -> None:
        call_soon(here, begun.set)
        try:
            await asyncio.Event().wait()
        finally:
            steps.append("cancelled")
            await asyncio.sleep(0.05)
            steps.append("ended")

    calling = asyncio.create_task(other.call(work), name="call")
    await begun.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert steps == ["cancelled", "ended"]


async def test_a_context_is_entered_and_left_in_the_other_thread(other: LoopThread) -> None:
    left: list[str] = []

    @asynccontextmanager
    async def context() -> AsyncIterator[str]:
        yield await where()
        left.append(await where())

    async with other.entered(context()) as value:
        assert value == "other"
    assert left == ["other"]


async def test_a_loop_that_is_gone_is_told_nothing() -> None:
    gone = asyncio.new_event_loop()
    gone.close()
    call_soon(gone, lambda: pytest.fail("it runs"))


async def test_what_is_left_in_the_thread_is_cancelled() -> None:
    ended: list[str] = []

    async def linger() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("linger")

    async def begin() -> asyncio.Task[None]:
        task = asyncio.create_task(linger(), name="linger")
        await asyncio.sleep(0)
        return task

    with LoopThread("other") as thread:
        await thread.call(begin)
    assert ended == ["linger"]
