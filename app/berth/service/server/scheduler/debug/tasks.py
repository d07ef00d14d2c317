"""Tasks of the event loop, with the line at which each waits."""

import asyncio
from types import FrameType
from typing import Any

from berth.runtime.tasks import awaited_frames
from berth.service.server.scheduler.debug.models import RunningTask, RunningTasks
from berth.service.server.scheduler.debug.pagination import unordered

Task = asyncio.Task[Any]


def running_tasks(*, name: str, after: tuple[str, str] | None, limit: int) -> RunningTasks:
    """Return the tasks of this event loop whose name contains *name*."""
    tasks = (task for task in asyncio.all_tasks() if name in task.get_name())
    found, token = unordered(tasks, key=_place, after=after, limit=limit)
    return RunningTasks(items=tuple(map(_told, found)), continue_=token)


def _place(task: Task) -> tuple[str, str]:
    return task.get_name(), f"{id(task):x}"


def _told(task: Task) -> RunningTask:
    coroutine: Any = task.get_coro()
    return RunningTask(
        name=task.get_name(),
        coroutine=getattr(coroutine, "__qualname__", type(coroutine).__name__),
        where=tuple(map(_line, awaited_frames(coroutine))),
    )


def _line(frame: FrameType) -> str:
    module = frame.f_globals.get("__name__", "?")
    return f"{module}.{frame.f_code.co_qualname}:{frame.f_lineno}"
