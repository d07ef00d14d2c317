"""Signals, sent to processes of their own."""

import asyncio
import os
import pty
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

pytestmark = pytest.mark.wall

SERVE = """
import asyncio, sys
from berth.runtime.termination import until_terminated

async def serve():
    print("up", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("cleaning", flush=True)
        await asyncio.sleep({cleaning})

sys.exit(5 if asyncio.run(until_terminated(serve())) else 6)
"""
STAND = """
import sys
from berth.runtime.termination import exit_when_continued

exit_when_continued(lambda: {overdue})
print("up", flush=True)
sys.stdin.readline()
sys.exit(5)
"""


HANG = """
import asyncio, os, signal
from berth.runtime.termination import on_signals, unless_hung_up

os.open({terminal!r}, os.O_RDWR)  # the first that a new session opens is its own

async def serve():
    with on_signals({{signal.SIGHUP: unless_hung_up(lambda: print("reloaded", flush=True))}}):
        print("up", flush=True)
        await asyncio.Event().wait()

asyncio.run(serve())
"""


@asynccontextmanager
async def python(
    code: str, *, start_new_session: bool = False
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run *code*, which says when it is up."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=start_new_session,
        # The jobs that a shell has in the background ignore it, and so would this.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    await says(process, "up")
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


COMMAND = """
import asyncio, sys
from berth.runtime.event_loop import in_loop

async def work():
    print("up", flush=True)
    try:
        await asyncio.sleep(3600)
    finally:
        await asyncio.sleep(0)
        print("cleaning", flush=True)

try:
    sys.exit(in_loop(work()))
except KeyboardInterrupt:
    sys.exit(130)
"""
"""As berth.cli runs a command."""


async def says(process: asyncio.subprocess.Process, word: str) -> None:
    assert process.stdout is not None
    async with asyncio.timeout(30):
        assert await process.stdout.readline() == f"{word}\n".encode()


async def exit_status(process: asyncio.subprocess.Process) -> int:
    return await asyncio.wait_for(process.wait(), timeout=30)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_cancels_the_work(number: signal.Signals) -> None:
    async with python(SERVE.format(cleaning=0)) as process:
        process.send_signal(number)
        await says(process, "cleaning")

        assert await exit_status(process) == 5


@pytest.mark.parametrize(
    ("number", "status"),
    [
        pytest.param(signal.SIGTERM, 143, id="SIGTERM"),
        pytest.param(signal.SIGINT, 130, id="Ctrl-C"),
    ],
)
async def test_a_command_cleans_up(number: signal.Signals, status: int) -> None:
    """berth up takes its context from the kubeconfig in the end."""
    async with python(COMMAND) as process:
        process.send_signal(number)
        await says(process, "cleaning")

        assert await exit_status(process) == status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_stuck_loop_is_ended_by_the_second_signal(number: signal.Signals) -> None:
    """A plugin of berth up loops: only handlers that need no turn of the loop run."""
    async with python(COMMAND.replace("await asyncio.sleep(3600)", "while True: pass")) as process:
        process.send_signal(number)
        await asyncio.sleep(0.1)  # two at once are one
        process.send_signal(number)

        assert await exit_status(process) == 128 + number


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_waits_for_nothing(second: signal.Signals) -> None:
    async with python(SERVE.format(cleaning=3600)) as process:
        process.send_signal(signal.SIGTERM)
        await says(process, "cleaning")
        process.send_signal(second)

        assert await exit_status(process) == 1


@pytest.mark.parametrize(
    ("overdue", "status"),
    [
        pytest.param(True, 1, id="too late: it ends before it does anything"),
        pytest.param(False, 5, id="in time: it goes on"),
    ],
)
async def test_a_process_that_was_stopped(overdue: bool, status: int) -> None:
    async with python(STAND.format(overdue=overdue)) as process:
        process.send_signal(signal.SIGSTOP)
        assert process.stdin is not None
        process.stdin.write(b"go on\n")
        await process.stdin.drain()
        process.send_signal(signal.SIGCONT)

        assert await exit_status(process) == status


async def test_a_terminal_that_closes_ends_a_process_that_reloads() -> None:
    """It must not go on for ever, with nobody who could see it."""
    terminal, end = pty.openpty()
    try:
        async with python(HANG.format(terminal=os.ttyname(end)), start_new_session=True) as process:
            process.send_signal(signal.SIGHUP)
            await says(process, "reloaded")
            os.close(end)
            os.close(terminal)
            terminal = end = -1
            assert await process.wait() == -signal.SIGTERM
    finally:
        for each in (terminal, end):
            if each >= 0:
                os.close(each)
