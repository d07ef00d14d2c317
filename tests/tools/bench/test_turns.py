"""The turns of an event loop are measured, and what was asked meanwhile has its longest."""

import asyncio
import gc
import time
from pathlib import Path

import pytest

from berth.tools.bench.questions import Asked
from berth.tools.bench.steady import NOTHING, START, longest_turns
from berth.tools.bench.turns import LONG, Part, Turn, measured_loop, read_turns


def burn(seconds: float) -> None:
    """Take CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_long_turns_are_written_with_what_ran(tmp_path: Path) -> None:
    file = tmp_path / "turns"

    async def work() -> None:
        await asyncio.sleep(0)
        burn(2 * LONG)
        await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(
            *(asyncio.create_task(work(), name=f"worker-{number}") for number in range(2))
        )

    with file.open("w", encoding="utf-8") as output, measured_loop(output) as loop:
        loop.run_until_complete(main())
        loop.close()

    [long] = [turn for turn in read_turns(file) if turn.cpu >= 4 * LONG]
    assert [part.name.split()[0] for part in long.parts] == ["worker", "worker"]
    assert all(part.cpu >= 2 * LONG for part in long.parts)
    assert "test_long_turns_are_written_with_what_ran.<locals>.work" in str(long)


def test_what_the_garbage_collector_takes_is_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "turns"
    with file.open("w", encoding="utf-8") as output, measured_loop(output) as loop:
        loop.call_soon(gc.collect)
        loop.call_soon(burn, LONG)
        loop.run_until_complete(asyncio.sleep(0.001))
        loop.close()

    assert any(turn.collecting > 0 for turn in read_turns(file))


def test_other_loops_run_as_before(tmp_path: Path) -> None:
    file = tmp_path / "turns"
    with file.open("w", encoding="utf-8") as output, measured_loop(output) as loop:
        other = asyncio.SelectorEventLoop()
        other.run_until_complete(asyncio.to_thread(int))
        other.close()
        loop.close()

    assert read_turns(file) == []


def test_a_line_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "turns"
    file.write_text('{"end":1.0,"cpu":0.5,"collecting":0.0,"parts":[]}\n{"end":2.0,', "utf-8")
    assert read_turns(file) == [Turn(1.0, 0.5, 0.0, ())]


def test_the_longest_turn_of_each_question() -> None:
    asked = [Asked("/a", 10, 20), Asked("/b", 30, 40), Asked("/a", 50, 60)]
    turns = [
        Turn(1, 0.9, 0, ()),
        Turn(15, 0.03, 0, ()),
        Turn(25, 0.02, 0, ()),
        Turn(55, 0.05, 0.01, (Part("task", 0.04),)),
    ]
    figures = list(longest_turns(turns, asked, began=5))

    assert [(f.at["meanwhile"], f.median, f.outcome) for f in figures] == [
        (START, pytest.approx(900), ""),
        (NOTHING, pytest.approx(20), ""),
        ("/a", pytest.approx(50), "task 40, garbage collector 10"),
        ("/b", 0, "none was long"),
    ]
