"""What a process has used between two moments."""

from berth.runtime.clock import FakeClock
from berth.tools.bench.usage import Meter, Usage


def test_usage_between_two_moments() -> None:
    assert Usage(3.0, 70).since(Usage(1.0, 10)) == Usage(2.0, 60)
    assert Usage(3.0, 70).since(Usage(1.0, None)) == Usage(2.0, None)
    assert Usage(2.0, 60).instructions_per(4) == 15
    assert Usage(2.0, None).instructions_per(4) is None


def test_a_meter_goes_by_its_clock() -> None:
    clock = FakeClock()
    meter = Meter(clock, None)
    before = meter.used()
    clock.advance(2)
    assert meter.used().since(before) == Usage(2, None)
