"""Simulations in processes of their own. Real processes, of a few lines each."""

import asyncio
import json
import sys
from collections.abc import Iterator

import pytest

from app.endpoints import SIMULATION_WORKER
from app.server.simulation_process import (
    SimulationError,
    SimulationFailedError,
    SimulationProcesses,
    TooManySimulationsError,
)
from app.whatif.answer import Answer
from tests.builders import node, pod
from tests.whatif.asking import ask, snapshot

pytestmark = pytest.mark.wall

LIVE = snapshot(node("one"), pod("p"))


SLEEP = "import time; time.sleep(60)"


def running(code: str, *, most_seconds: float = 30, most_at_once: int = 2) -> SimulationProcesses:
    command = [sys.executable, "-c", f"import sys; {code}"]
    return SimulationProcesses(command, most_seconds=most_seconds, most_at_once=most_at_once)


async def test_the_worker_answers() -> None:
    told = await SimulationProcesses(SIMULATION_WORKER).simulate(b"{}", LIVE.encode())
    assert Answer.model_validate_json(told) == ask(LIVE)


async def test_the_worker_says_what_is_wrong() -> None:
    question = json.dumps({"removeNodes": {"names": ["x"]}}).encode()
    with pytest.raises(SimulationError, match=r"removeNodes.names\[0\]: 'x'"):
        await SimulationProcesses(SIMULATION_WORKER).simulate(question, LIVE.encode())


async def test_everything_is_told() -> None:
    processes = running("sys.stdout.write(str(len(sys.stdin.read())))")
    assert await processes.simulate(b"{}", [b"x" * 1_000_000] * 3) == b"3000003"


async def test_a_failure_is_not_the_askers_fault(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SimulationFailedError, match="status 3"):
        await running("sys.exit(3)").simulate(b"{}", [b"x" * 1_000_000])
    assert caplog.messages == ["a simulation failed"]


async def test_who_takes_too_long_is_ended() -> None:
    with pytest.raises(SimulationError, match=r"not done within 0.2 s: ask for fewer"):
        await running(SLEEP, most_seconds=0.2).simulate(b"{}", [])


async def test_nobody_is_told_for_ever() -> None:
    """The snapshot is not read, and does not fit into a pipe."""

    def without_end() -> Iterator[bytes]:
        while True:
            yield b"x" * 100_000

    with pytest.raises(SimulationError, match=r"not done within 0.2 s"):
        await running(SLEEP, most_seconds=0.2).simulate(b"{}", without_end())


async def test_only_so_many_at_once() -> None:
    processes = running("sys.stdin.read(); sys.stdout.write('done')", most_at_once=1)
    first = asyncio.create_task(processes.simulate(b"{}", []), name="first")
    await asyncio.sleep(0)
    with pytest.raises(TooManySimulationsError, match="1 simulations are being done"):
        await processes.simulate(b"{}", [])
    assert await first == b"done"
    assert await processes.simulate(b"{}", []) == b"done"
