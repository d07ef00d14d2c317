"""``/debug/pprof`` and ``/debug/flags``: where the time goes, while it goes (spec §7.3).

The paths are Go's, the content is Python's: samples of the event loop's thread as collapsed
stacks, which flame graph tools read, and the asyncio tasks in place of goroutines.
"""

import asyncio
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import PlainTextResponse

from berth.runtime.tasks import awaited_frames
from berth.service.server.bodies import BodyError, read_body

SAMPLE_INTERVAL: Final = 0.01
DEFAULT_SECONDS: Final = 30
MOST_SECONDS: Final = 300
LONGEST_VERBOSITY: Final = 9
"""Digits of a number for ``-v``, which is a 32-bit one in Go."""
LARGEST_BODY: Final = 100
NAMES_TOLD: Final = 5
"""Tasks that are named of those that wait at the same place."""

INDEX: Final = """/debug/pprof/
profile?seconds=N  where the event loop's thread is, 100 times a second: collapsed stacks
goroutine          all asyncio tasks, and where they wait
cmdline            the command line, separated by NUL
"""


def profiling_endpoints(*, set_verbosity: Callable[[int], None]) -> APIRouter:
    """Return the endpoints; *set_verbosity* changes how much is logged, as ``-v`` does."""
    router = APIRouter(include_in_schema=False, default_response_class=PlainTextResponse)
    sampling = asyncio.Lock()

    @router.get("/debug/pprof")
    @router.get("/debug/pprof/")
    async def index() -> str:
        return INDEX

    @router.get("/debug/pprof/profile")
    async def profile(
        seconds: Annotated[int, Query(ge=1, le=MOST_SECONDS)] = DEFAULT_SECONDS,
    ) -> PlainTextResponse:
        if sampling.locked():
            return PlainTextResponse("a profile is being taken already\n", 409)
        async with sampling:
            stop = threading.Event()
            loop_thread = threading.get_ident()
            try:
                return PlainTextResponse(
                    await asyncio.to_thread(sampled, loop_thread, seconds=seconds, stop=stop)
                )
            finally:
                stop.set()  # the thread goes on after the client has gone

    @router.get("/debug/pprof/goroutine")
    async def goroutine() -> str:
        return tasks_text()

    @router.get("/debug/pprof/cmdline")
    async def cmdline() -> str:
        return "\0".join(sys.argv)

    @router.get("/debug/flags")
    async def flags() -> str:
        return "/debug/flags/v: PUT a number to log that much from now on\n"

    @router.put("/debug/flags/v")
    async def verbosity(request: Request) -> PlainTextResponse:
        try:
            body = await read_body(request, limit=LARGEST_BODY)
        except BodyError as exc:
            return PlainTextResponse(f"error setting -v: {exc}\n", exc.status)
        text = body.decode("utf-8", "replace").strip()
        if not (text.isascii() and text.isdecimal() and len(text) <= LONGEST_VERBOSITY):
            return PlainTextResponse(f"error setting -v to {text!r}: not a number\n", 400)
        set_verbosity(int(text))
        return PlainTextResponse(f"successfully set klog.logging.verbosity to {text}")

    return router


def sampled(thread: int, *, seconds: float, stop: threading.Event) -> str:
    """Look at *thread* for *seconds*, or until *stop*; return ``outer;inner count`` lines.

    To be called in another thread.
    """
    stacks: Counter[str] = Counter()
    for _ in range(round(seconds / SAMPLE_INTERVAL)):
        if stop.wait(SAMPLE_INTERVAL):
            break
        frame = sys._current_frames().get(thread)
        stacks[";".join(reversed([_place(f.f_code) for f in _outwards(frame)]))] += 1
    return "".join(f"{stack} {count}\n" for stack, count in stacks.most_common())


def tasks_text() -> str:
    """Tell of all tasks of the running event loop, those that wait at the same place together."""
    waiting: defaultdict[str, list[str]] = defaultdict(list)
    for task in asyncio.all_tasks():
        waiting[_stack_of(task)].append(task.get_name())
    lines = [f"tasks: {sum(map(len, waiting.values()))}\n"]
    for stack, names in sorted(waiting.items(), key=lambda entry: (-len(entry[1]), entry[1])):
        more = f" and {len(names) - NAMES_TOLD} more" if len(names) > NAMES_TOLD else ""
        lines.append(f"\n{len(names)}: {', '.join(sorted(names)[:NAMES_TOLD])}{more}\n{stack}")
    return "".join(lines)


def _stack_of(task: "asyncio.Task[Any]") -> str:
    """Return the places from the task's coroutine to what it awaits, outermost first."""
    return "".join(
        f"    {_place(frame.f_code)}:{frame.f_lineno}\n"
        for frame in awaited_frames(task.get_coro())
    )


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _place(code: CodeType) -> str:
    parts = code.co_filename.rsplit("/", 2)
    return f"{'/'.join(parts[-2:])}:{code.co_qualname}"
