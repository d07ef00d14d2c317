"""Long work of single requests, done in a process of its own: YAML and CEL.

What takes a second would keep everybody waiting on the event loop, and in a thread, too, for it
holds the interpreter's lock. Flows take turns, so that nobody's work waits for more than one piece
of another's. The process is started when it is needed, ended when it has not been for a while, and
killed when one piece of work takes too long or the API server stops.
"""

import asyncio
import logging
import struct
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from enum import IntEnum
from typing import Final

import msgspec

from berth.cluster.access.flows import flow_of
from berth.cluster.access.users import User
from berth.cluster.fair_queue import FairQueue

log = logging.getLogger(__name__)

COMMAND: Final = (sys.executable, "-m", "berth.cluster.work_child")
MOST_SECONDS: Final = 30.0
"""How long one piece of work may take."""
IDLE_SECONDS: Final = 60.0
"""How long the process is kept without work."""
MOST_MEMORY: Final = 1 << 30
"""Bytes that it may take beside its code."""
HEAD: Final = struct.Struct(">IB")
"""Before each job and answer: its length, and which job or outcome it is."""


class Job(IntEnum):
    """What can be asked for."""

    YAML = 1
    """YAML in, JSON out."""
    SELECTOR = 2
    """A :class:`Selector` in, a :class:`Compiled` out, as MessagePack."""
    REPEATED_KEYS = 3
    """YAML in, a list of complaints out, as JSON."""


class Outcome(IntEnum):
    """What became of it."""

    DONE = 0
    REFUSED = 1
    """The answer says what is wrong with the input."""
    TOO_LARGE = 2


class Selector(msgspec.Struct, frozen=True):
    """A CEL expression that selects devices."""

    source: str
    features: tuple[bool, ...]


class Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one."""

    detail: str = ""
    """Why it cannot be compiled."""
    program: bytes = b""
    """Packed, see :mod:`berth.kube.cel.programs`."""
    size: int = 0
    cost: int = 0
    work: int = 0


class WorkError(Exception):
    """There is no result; the message says why."""


class WorkRefusedError(WorkError):
    """The input is wrong."""


class _Order:
    """A piece of work that somebody waits for."""

    __slots__ = ("answer", "content", "job")

    def __init__(self, job: Job, content: bytes) -> None:
        self.job = job
        self.content = content
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()


class WorkProcess:
    """One process, for one piece of work at a time. :meth:`close` it once."""

    def __init__(
        self,
        command: Sequence[str] = COMMAND,
        *,
        most_seconds: float = MOST_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        """*command* reads and writes as :mod:`berth.cluster.work_child` does."""
        self._command = command
        self._most_seconds = most_seconds
        self._idle_seconds = idle_seconds
        self._waiting: FairQueue[_Order] = FairQueue()
        self._ordered = asyncio.Event()
        self._working: asyncio.Task[None] | None = None
        self._process: Process | None = None
        self._is_closed = False

    async def do(self, job: Job, content: bytes, user: User) -> bytes:
        """Return the result. Raises WorkError, and QueueFullError."""
        if self._is_closed:
            raise WorkError("the server is shutting down")
        order = _Order(job, content)
        self._waiting.push(flow_of(user), user.name, order)
        self._ordered.set()
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work(), name="work process")
        return await order.answer

    async def close(self) -> None:
        """End the process, whatever it does; who waits gets a WorkError."""
        self._is_closed = True
        if self._working is not None:
            self._working.cancel()
            await asyncio.wait([self._working])
        while (order := self._waiting.pop()) is not None:
            if not order.answer.done():
                order.answer.set_exception(WorkError("the server is shutting down"))

    async def _work(self) -> None:
        try:
            while True:
                while (order := self._waiting.pop()) is not None:
                    if not order.answer.done():
                        await self._fulfil(order)
                self._ordered.clear()
                async with asyncio.timeout(self._idle_seconds):
                    await self._ordered.wait()
        except TimeoutError:  # nobody has asked for anything
            pass
        finally:
            await self._end()

    async def _fulfil(self, order: _Order) -> None:
        try:
            async with asyncio.timeout(self._most_seconds):
                answer = await self._converse(order)
        except WorkError as exc:
            _fail(order, exc)
        except TimeoutError:
            await self._end()
            _fail(order, WorkRefusedError(f"it takes more than {self._most_seconds:g} s"))
        except (OSError, asyncio.IncompleteReadError) as exc:
            await self._end()
            log.warning("a process for long requests has ended", extra={"error": repr(exc)})
            _fail(order, WorkError(f"its process has ended: {exc}"))
        except BaseException:
            _fail(order, WorkError("the server is shutting down"))
            raise
        else:
            if not order.answer.done():
                order.answer.set_result(answer)

    async def _converse(self, order: _Order) -> bytes:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=PIPE
            )
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(HEAD.pack(len(order.content), order.job) + order.content)
        await stdin.drain()
        size, outcome = HEAD.unpack(await stdout.readexactly(HEAD.size))
        answer = await stdout.readexactly(size)
        if outcome == Outcome.REFUSED:
            raise WorkRefusedError(answer.decode())
        if outcome == Outcome.TOO_LARGE:
            raise WorkRefusedError(f"it takes more than {MOST_MEMORY >> 20} MiB of memory")
        return answer

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _fail(order: _Order, error: WorkError) -> None:
    if not order.answer.done():
        order.answer.set_exception(error)
