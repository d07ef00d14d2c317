"""How much memory there is, and how long objects that nobody needs take some of it."""

import asyncio
import gc
import sys
from collections.abc import Callable, Mapping
from multiprocessing import get_context
from pathlib import Path
from weakref import ref

import pytest

from berth.runtime.clock import FakeClock
from berth.runtime.memory import LOOK_SECONDS, THAW_SECONDS, YOUNG, Survivors, room_in_container


class Knot:
    """A reference cycle."""

    def __init__(self) -> None:
        self.myself = self


def test_survivors_are_spared_until_the_thaw() -> None:
    """In a process without the million objects of all tests, which a thaw looks at."""
    process = get_context("spawn").Process(target=spare_survivors_until_the_thaw)
    process.start()
    process.join()
    assert process.exitcode == 0, "it says why on standard error"


def spare_survivors_until_the_thaw() -> None:
    clock, later, before = FakeClock(), list[Callable[[], None]](), gc.get_threshold()
    gc.collect()
    gc.freeze()
    frozen = gc.get_freeze_count()
    with Survivors(clock, later.append).spared():
        assert gc.get_threshold() == YOUNG
        knot: Knot | None = Knot()
        survivor = ref(knot)
        gc.collect(1)
        knot = None
        gc.collect()
        assert survivor() is not None
        assert not later
        young = ref(Knot())
        gc.collect(1)
        assert young() is None
        clock.advance(THAW_SECONDS)
        gc.collect(1)
        later.pop()()
        assert survivor() is None
        assert gc.get_freeze_count() > frozen / 2
        gc.collect(1)
        assert not later
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() > frozen / 2, "what was frozen before still is"


async def test_young_objects_are_looked_at_however_few_more_there_are() -> None:
    clock, seen = FakeClock(), list[int]()

    def collected(phase: str, info: Mapping[str, int]) -> None:
        if phase == "stop":
            seen.append(info["generation"])

    gc.disable()
    gc.callbacks.append(collected)
    looking = asyncio.create_task(Survivors(clock, list[object]().append).look(), name="look")
    for _ in range(2 * (YOUNG[1] + 1)):
        await asyncio.sleep(0)
        clock.advance(LOOK_SECONDS)
        await asyncio.sleep(0)
    looking.cancel()
    gc.callbacks.remove(collected)
    gc.enable()

    assert seen == 2 * [*YOUNG[1] * [0], 1]


@pytest.mark.parametrize(
    ("limit", "taken", "room"),
    [
        pytest.param("1000\n", "300\n", 700, id="a limit"),
        pytest.param("1000\n", "1200\n", 0, id="a limit that was lowered"),
        pytest.param("max\n", "300\n", sys.maxsize, id="no limit"),
        pytest.param(None, None, sys.maxsize, id="no control group"),
    ],
)
def test_room_in_container(tmp_path: Path, limit: str | None, taken: str, room: int) -> None:
    if limit is not None:
        (tmp_path / "memory.max").write_text(limit)
        (tmp_path / "memory.current").write_text(taken)
    assert room_in_container(tmp_path) == room
