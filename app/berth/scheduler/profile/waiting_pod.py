"""A pod that has a node but must wait for Permit plugins (spec §2.7, §2.9)."""

import asyncio
from collections.abc import Mapping
from typing import Final

from berth.runtime.clock import Clock
from berth.runtime.duration import Duration
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code, Status

LONGEST_WAIT: Final = 900.0
"""Seconds; a plugin that asks for more waits for so long."""


class WaitingPod:
    """Waits until every plugin that said WAIT allows the pod, or any of them or time says no."""

    def __init__(self, pod: PodInfo, waits: Mapping[str, float]) -> None:
        """*waits* says by plugin for how many seconds at most."""
        self.pod = pod
        self._pending = {plugin: min(wait, LONGEST_WAIT) for plugin, wait in waits.items()}
        self._began: float | None = None
        self._refusal: Status | None = None
        self._decided = asyncio.Event()

    @property
    def pending_plugins(self) -> frozenset[str]:
        """Who still has to allow the pod."""
        return frozenset(self._pending)

    @property
    def is_decided(self) -> bool:
        """Whether the wait is over."""
        return self._decided.is_set()

    @property
    def deadlines(self) -> dict[str, float | None]:
        """Until when each plugin may take, in seconds since 1970; None before the wait begins."""
        began = self._began
        return {p: None if began is None else began + s for p, s in self._pending.items()}

    def allow(self, plugin: str) -> None:
        """Say that *plugin* lets the pod go; the last one to do so ends the wait."""
        self._pending.pop(plugin, None)
        if not self._pending:
            self._decided.set()

    def reject(self, plugin: str, message: str) -> None:
        """Turn the pod away; it has to be scheduled again. The first decision stands."""
        self._end(Status(Code.UNSCHEDULABLE, (message,), plugin))

    def preempt(self, plugin: str) -> None:
        """Take the room away from the pod for another one."""
        self._end(Status(Code.ERROR, ("preempted",), plugin))

    def _end(self, refusal: Status) -> None:
        if not self._decided.is_set():
            self._refusal = refusal
            self._decided.set()

    async def wait(self, clock: Clock) -> Status | None:
        """Return None once the pod may be bound, else why not."""
        self._began = clock.now()
        async with asyncio.TaskGroup() as tasks:
            timers = [
                tasks.create_task(
                    self._time_out(plugin, seconds, clock),
                    name=f"permit of {plugin} for {self.pod.key}",
                )
                for plugin, seconds in self._pending.items()
            ]
            await self._decided.wait()
            for timer in timers:
                timer.cancel()
        refusal = self._refusal
        if refusal is not None and not refusal.is_rejected:
            text = f"waiting on permit for pod: {refusal.message}"
            return Status(refusal.code, (text,), refusal.plugin)
        return refusal

    async def _time_out(self, plugin: str, seconds: float, clock: Clock) -> None:
        await clock.sleep(seconds)
        if plugin in self._pending:
            waited = Duration.of(seconds)
            self.reject(
                plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}"
            )
