"""Work that plugins start in a scheduling attempt and nobody waits for."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from berth.kube.client.errors import log_failure

log = logging.getLogger(__name__)

Work = Callable[[], Awaitable[None]]


class Job(NamedTuple):
    name: str
    work: Work


class Background:
    """Takes work without waiting and does each in a task. Somebody must own :meth:`run`."""

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()
        self._started = asyncio.Event()
        self._running = 0

    def start(self, name: str, work: Work) -> None:
        """Have *work* done; when it fails, that is logged."""
        self._jobs.append(Job(name, work))
        self._started.set()

    def take(self) -> Job | None:
        """Take the oldest job, for :meth:`do`; None if there is none."""
        return self._jobs.popleft() if self._jobs else None

    async def do(self, job: Job) -> None:
        self._running += 1
        try:
            await job.work()
        except Exception as exc:  # noqa: BLE001 - nobody waits for it, and other work goes on
            log_failure(log, "background work failed", exc, {"work": job.name})
        finally:
            self._running -= 1

    async def run(self) -> None:
        """Do what is started, for ever; ends by cancellation."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._started.wait()
                self._started.clear()
                while job := self.take():
                    tasks.create_task(self.do(job), name=job.name)

    @property
    def is_idle(self) -> bool:
        return not self._jobs and not self._running
