"""Acts begin at their moments, whatever becomes of the others."""

import asyncio
from collections.abc import Coroutine
from functools import partial
from random import Random
from typing import Any

import pytest

from berth.runtime.clock import FakeClock
from berth.runtime.virtual_time import VirtualTimeLoop
from berth.tools.bench.pace import MOST, Act, arrivals, paced
from berth.tools.bench.process import BenchError


def on(clock: FakeClock, doing: Coroutine[Any, Any, float]) -> float:
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner:
        return runner.run(doing)


def test_arrivals_are_even() -> None:
    assert [*arrivals(4, 1.5)] == [0, 0.25, 0.5, 0.75, 1.0, 1.25]


def test_random_arrivals_come_at_the_rate_and_again_with_the_seed() -> None:
    moments = [*arrivals(100, 50, rng=Random(1))]
    assert moments == sorted(moments)
    assert 4_700 < len(moments) < 5_300
    assert moments[-1] < 50
    assert moments == [*arrivals(100, 50, rng=Random(1))]


def test_a_slow_act_holds_up_no_other() -> None:
    clock, begun = FakeClock(), []
    start = clock.monotonic()

    async def act(seconds: float) -> None:
        begun.append(clock.monotonic() - start)
        await clock.sleep(seconds)

    acts: list[tuple[float, Act]] = [(n / 2, partial(act, 5.0)) for n in range(4)]
    late = on(clock, paced(acts, clock=clock))
    assert begun == pytest.approx([0, 0.5, 1, 1.5], abs=0.002)
    assert late < 0.002
    assert clock.monotonic() - start == pytest.approx(6.5, abs=0.002)


def test_the_first_error_is_raised() -> None:
    clock = FakeClock()

    async def fail(number: int) -> None:
        raise BenchError(f"act {number} failed")

    acts: list[tuple[float, Act]] = [(n, partial(fail, n)) for n in range(3)]
    with pytest.raises(BenchError, match="act 0 failed"):
        on(clock, paced(acts, clock=clock))


def test_a_rate_that_is_too_high_is_told() -> None:
    clock = FakeClock()
    acts: list[tuple[float, Act]] = [(0, partial(clock.sleep, 60))] * (MOST + 1)
    with pytest.raises(BenchError, match="500 requests wait for answers: this rate is too high"):
        on(clock, paced(acts, clock=clock))
