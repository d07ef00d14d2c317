"""Simulations in processes of their own. Real processes, of a few lines each."""

import asyncio
import json
import signal
import sys
from collections.abc import Iterable, Iterator

import pytest

from berth.insight.whatif.answer import Answer
from berth.service.applications import SIMULATION_WORKER
from berth.service.server.scheduler.simulation_process import (
    SimulationError,
    SimulationFailedError,
    SimulationProcesses,
    SimulationTooLargeError,
    TooManySimulationsError,
)
from tests.builders import node, pod
from tests.insight.whatif.asking import ask, deployment, snapshot

pytestmark = pytest.mark.wall

LIVE = snapshot(node("one"), pod("p"))


SLEEP = "import time; time.sleep(60)"
MEBIBYTE = 2**20


def running(code: str, *, most_seconds: float = 30, most_at_once: int = 2) -> SimulationProcesses:
    """Have *code* run, which may read from ``source``, in place of the worker."""
    begin = "import sys; source = sys.stdin.buffer"
    command = [sys.executable, "-c", f"{begin}; {code}"]
    return SimulationProcesses(command, most_seconds=most_seconds, most_at_once=most_at_once)


async def nothing_live() -> Iterable[bytes]:
    return ()


async def asked(
    processes: SimulationProcesses, question: object = None, *, live: Iterable[bytes] = ()
) -> bytes:
    async def ask() -> bytes:
        return json.dumps(question or {}).encode()

    async def take() -> Iterable[bytes]:
        return live

    return await processes.simulate(ask, take)


def worker(most_memory: int = 2**30, *, most_cpu_seconds: float = 30.0) -> SimulationProcesses:
    return SimulationProcesses(
        SIMULATION_WORKER, most_memory=most_memory, most_cpu_seconds=most_cpu_seconds
    )


async def test_the_worker_answers() -> None:
    told = await asked(worker(), live=LIVE.encode())
    assert Answer.model_validate_json(told) == ask(LIVE)


async def test_the_worker_wants_no_cluster_if_one_comes_along() -> None:
    brought = {"snapshot": json.loads(b"".join(LIVE.encode()))}
    told = await asked(worker(), brought, live=snapshot(node("other")).encode())
    assert Answer.model_validate_json(told) == ask(LIVE)


async def test_the_worker_says_what_is_wrong() -> None:
    with pytest.raises(SimulationError, match=r"removeNodes.names\[0\]: 'x'"):
        await asked(worker(), {"removeNodes": {"names": ["x"]}}, live=LIVE.encode())


async def test_who_takes_too_much_memory_is_told() -> None:
    """In one of many places: where there is none left, is a matter of luck."""
    many = {"templates": [{"manifest": deployment(), "replicas": 20_000}]}
    with pytest.raises(SimulationTooLargeError, match="takes more than 16 MiB of memory: ask for"):
        await asked(worker(16 * MEBIBYTE), many, live=LIVE.encode())
    assert await asked(worker(), live=LIVE.encode()), "others are still answered"


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGKILL, id="by the kernel, when the container has none left"),
        pytest.param(signal.SIGABRT, id="by a library that gives up"),
        pytest.param(signal.SIGSEGV, id="by a library that does not look at what it got"),
    ],
)
async def test_who_is_killed_had_no_memory(number: signal.Signals) -> None:
    killed = running(f"import os; os.kill(os.getpid(), {number.value})")
    with pytest.raises(SimulationTooLargeError, match="takes more than 1024 MiB of memory"):
        await asked(killed)


async def test_an_answer_may_not_be_endless() -> None:
    endless = running("exec('while True: sys.stdout.write(\"x\" * 2**20)')")
    with pytest.raises(SimulationTooLargeError, match="answer has more than 64 MiB"):
        await asked(endless)


async def test_everything_is_told() -> None:
    processes = running(
        "source.read(10); sys.stdout.write('?'); sys.stdout.flush();"
        " sys.stdout.write(str(len(source.read())))"
    )
    assert await asked(processes, live=[b"x" * 1_000_000] * 3) == b"3000000"


async def test_a_failure_is_not_the_askers_fault(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SimulationFailedError, match="status 4"):
        await asked(running("sys.exit(4)"), "x" * 1_000_000)
    assert caplog.messages == ["a simulation failed"]


async def test_who_takes_too_long_is_ended() -> None:
    with pytest.raises(
        SimulationError,
        match=r"not done within 0.2 s, and it has not taken 30 s of CPU: the machine",
    ):
        await asked(running(SLEEP, most_seconds=0.2))


async def test_nobody_is_told_for_ever() -> None:
    """The snapshot is not read, and does not fit into a pipe."""

    def without_end() -> Iterator[bytes]:
        while True:
            yield b"x" * 100_000

    code = f"sys.stdout.write('?'); sys.stdout.flush(); {SLEEP}"
    with pytest.raises(SimulationError, match=r"not done within 0.5 s"):
        await asked(running(code, most_seconds=0.5), live=without_end())


async def test_only_so_many_at_once() -> None:
    """A question is read when it is its turn: those that are refused take no memory."""
    processes = running("source.read(10); sys.stdout.write('done')", most_at_once=1)
    first = asyncio.create_task(asked(processes), name="first")
    await asyncio.sleep(0)

    async def never() -> bytes:
        raise AssertionError("read")

    with pytest.raises(TooManySimulationsError, match="1 simulations are being done"):
        await processes.simulate(never, nothing_live)
    assert await first == b"done"
    assert await asked(processes) == b"done"


async def test_an_answer_is_partial_when_the_cpu_time_is_over() -> None:
    """The start of the process takes more than that, so that it is over at once."""
    told = await asked(worker(most_cpu_seconds=0.001), live=LIVE.encode())
    found = Answer.model_validate_json(told)
    assert found.partial is not None
    assert (found.partial.done, found.partial.of, found.fits) == (0, 1, False)
    assert found.partial.undecided == ("default/p",)


async def test_who_does_not_look_at_the_time_is_ended() -> None:
    spin = "import signal, os; os.kill(os.getpid(), signal.SIGXCPU)"
    with pytest.raises(SimulationError, match="30 s of CPU are over before a pod was decided"):
        await asked(running(spin))


async def test_the_progress_is_told() -> None:
    lines = [b'{"progress": {"done": 1}}\n', b'{"progress": {"done": 2}}\n']
    code = "; ".join(f"sys.stdout.buffer.write(b'\\2' + {line!r})" for line in lines)
    heard: list[bytes] = []

    async def ask_() -> bytes:
        return b"{}"

    for end, want in (("sys.stdout.write('{}')", b"{}"), ("sys.stdout.write('\\2half')", b"")):
        heard.clear()
        processes = running(f"source.read(10); {code}; {end}")
        assert await processes.simulate(ask_, nothing_live, heard.append) == want
        assert heard == lines
