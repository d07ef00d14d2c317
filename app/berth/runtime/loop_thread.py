"""An event loop in a thread of its own, and how work in one loop waits for work in another."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from berth.runtime.loop_errors import log_loop_error

T = TypeVar("T")


class LoopThread:
    """A thread that runs an event loop from ``with`` to the end of the block.

    The loop is asyncio's own, which runs child processes in any thread; uvloop's does not.
    """

    def __init__(self, name: str) -> None:
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._runs = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self._runs.wait()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            runner.run(self._until_ended())

    async def _until_ended(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_exception_handler(log_loop_error)
        self._runs.set()
        await self._end.wait()

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Await *work* in this thread, while the caller's thread is blocked.

        It is cancelled when the caller is interrupted.
        """
        working = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return working.result()
        except BaseException:
            working.cancel()
            raise

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Await *work* in this thread; see :func:`call_in`."""
        return await call_in(self._loop, work)

    @asynccontextmanager
    async def entered(self, context: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
        """Enter and leave *context* in this thread."""
        value = await self.call(context.__aenter__)
        try:
            yield value
        finally:
            await self.call(lambda: context.__aexit__(None, None, None))


async def call_in(loop: asyncio.AbstractEventLoop, work: Callable[[], Awaitable[T]]) -> T:
    """Await *work* in *loop*, which another thread runs, and return or raise what comes of it.

    A cancellation is passed on, and the end of *work* is waited for, as if it was awaited here.
    """
    here = asyncio.get_running_loop()
    ended: asyncio.Future[asyncio.Task[T]] = here.create_future()
    begun: list[asyncio.Task[T]] = []

    def begin() -> None:
        task = loop.create_task(_called(work), name="for another loop")
        begun.append(task)
        task.add_done_callback(lambda task: call_soon(here, ended.set_result, task))

    loop.call_soon_threadsafe(begin)
    while not ended.done():
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            loop.call_soon_threadsafe(lambda: begun[0].cancel())
    return ended.result().result()


def call_soon(loop: asyncio.AbstractEventLoop, call: Callable[..., object], *args: Any) -> None:
    """Have *loop*, which another thread runs, make a call; nothing if it has been closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call, *args)


async def _called(work: Callable[[], Awaitable[T]]) -> T:
    return await work()
