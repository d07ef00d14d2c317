"""When a service that fails is left alone, and for how long."""

import pytest

from berth.runtime.clock import FakeClock
from berth.scheduler.extender.breaker import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    TRIP_AFTER,
    BreakerState,
    CircuitBreaker,
)


def tripped() -> tuple[CircuitBreaker, FakeClock]:
    clock = FakeClock()
    breaker = CircuitBreaker(clock)
    for _ in range(TRIP_AFTER):
        assert breaker.admit()
        breaker.failed()
    return breaker, clock


def test_a_few_failures_are_nothing() -> None:
    breaker = CircuitBreaker(FakeClock())
    for _ in range(2):
        for _ in range(TRIP_AFTER - 1):
            assert breaker.admit()
            breaker.failed()
        assert breaker.admit()
        breaker.succeeded()
    assert breaker.state is BreakerState.CLOSED


def test_failures_in_a_row_open_it_until_the_pause_is_over() -> None:
    breaker, clock = tripped()
    assert (breaker.state, breaker.admit()) == (BreakerState.OPEN, False)
    clock.advance(FIRST_PAUSE - 0.25)
    assert (breaker.state, breaker.admit()) == (BreakerState.OPEN, False)
    clock.advance(0.25)
    assert breaker.state is BreakerState.HALF_OPEN


def test_after_the_pause_one_call_decides_and_others_wait_for_it() -> None:
    breaker, clock = tripped()
    clock.advance(FIRST_PAUSE)
    assert [breaker.admit(), breaker.admit()] == [True, False]
    breaker.succeeded()
    assert [breaker.admit(), breaker.admit()] == [True, True]
    assert breaker.state is BreakerState.CLOSED


def test_each_pause_that_ends_in_failure_is_followed_by_one_twice_as_long() -> None:
    breaker, clock = tripped()
    for pause in (1.0, 2.0, 4.0, 8.0, 16.0, LONGEST_PAUSE, LONGEST_PAUSE):
        clock.advance(pause - 0.25)
        assert not breaker.admit()
        clock.advance(0.25)
        assert breaker.admit()
        breaker.failed()


def test_calls_that_were_under_way_when_it_opened_do_not_make_the_pause_longer() -> None:
    breaker, clock = tripped()
    breaker.failed()
    clock.advance(FIRST_PAUSE)
    assert breaker.admit()


@pytest.mark.parametrize(
    "is_probe", [pytest.param(True, id="probe"), pytest.param(False, id="not")]
)
def test_a_call_that_is_cancelled_says_nothing(is_probe: bool) -> None:
    breaker, clock = tripped()
    if is_probe:
        clock.advance(FIRST_PAUSE)
        assert breaker.admit()
    breaker.abandoned()
    assert breaker.admit() is is_probe
