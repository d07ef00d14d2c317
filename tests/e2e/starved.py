"""Takes the CPU away from a process, from outside."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

CPU_GROUPS: Final = Path("/sys/fs/cgroup/cpu")
PERIOD: Final = 1.0
"""Seconds of which the process gets its share: it runs for a moment, and stands still for long."""


@asynccontextmanager
async def starved(pid: int, *, share: float) -> AsyncIterator[str]:
    """Let a process have a *share* of a core only; yield how.

    By a control group, version 1, where one can be made; else it is stopped most of the time.
    """
    group = CPU_GROUPS / f"berth-test-{pid}"
    try:
        group.mkdir()
    except OSError:
        async with _mostly_stopped(pid, share):
            yield "stopped and continued"
        return
    try:
        (group / "cpu.cfs_period_us").write_text(str(int(PERIOD * 1e6)))
        (group / "cpu.cfs_quota_us").write_text(str(int(PERIOD * share * 1e6)))
        (group / "cgroup.procs").write_text(str(pid))
        yield "quota of a control group"
    finally:
        with suppress(ProcessLookupError):
            (CPU_GROUPS / "cgroup.procs").write_text(str(pid))
        group.rmdir()


@asynccontextmanager
async def _mostly_stopped(pid: int, share: float) -> AsyncIterator[None]:
    async def alternate() -> None:
        while True:
            os.kill(pid, signal.SIGSTOP)
            await asyncio.sleep(PERIOD * (1 - share))
            os.kill(pid, signal.SIGCONT)
            await asyncio.sleep(PERIOD * share)

    alternating = asyncio.create_task(alternate(), name="starve")
    try:
        yield
    finally:
        alternating.cancel()
        await asyncio.wait([alternating])
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
