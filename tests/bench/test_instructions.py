"""Instructions are counted where the kernel does that; where it refuses, that is said."""

import errno
import os
import struct

import pytest

from berth.bench.instructions import ATTR, Counter, InstructionClock, counter_of, why_not
from berth.bench.process import Usage


class Kernel:
    """Opens counters that read what they are told to, or refuses."""

    def __init__(self, *counts: int, refusal: int = 0) -> None:
        self.counts = counts
        self.refusal = refusal
        self.asked: list[tuple[bytes, int]] = []

    def open_counter(self, attr: bytes, pid: int) -> int:
        self.asked.append((attr, pid))
        if self.refusal:
            raise OSError(self.refusal, os.strerror(self.refusal))
        reading, writing = os.pipe()
        os.write(writing, b"".join(count.to_bytes(8, "little") for count in self.counts))
        os.close(writing)
        return reading


def test_a_process_is_asked_about_with_all_that_it_starts() -> None:
    kernel = Kernel(7, 12)
    counter = Counter(42, open_counter=kernel.open_counter)
    assert (counter.read(), counter.read()) == (7, 12)
    counter.close()
    ((attr, pid),) = kernel.asked
    kind, size, config, period, sample_type, read_format, flags = struct.unpack("=IIQQQQQ16x", attr)
    assert (pid, kind, size, config) == (42, 0, len(ATTR), 1)
    assert (period, sample_type, read_format) == (0, 0, 0)
    inherit, exclude_kernel, exclude_hypervisor = 1 << 1, 1 << 5, 1 << 6
    assert flags == inherit | exclude_kernel | exclude_hypervisor


def test_a_clock_tells_instructions() -> None:
    counter = Counter(open_counter=Kernel(7, 12).open_counter)
    clock = InstructionClock(counter)
    assert (clock.monotonic(), clock.monotonic()) == (7, 12)
    counter.close()


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        pytest.param(0, "", id="the kernel counts"),
        pytest.param(errno.ENOENT, "ENOENT, No such file or directory", id="there is no counter"),
        pytest.param(errno.EACCES, "EACCES, Permission denied", id="users may not"),
    ],
)
def test_a_refusal_is_told(refusal: int, reason: str) -> None:
    kernel = Kernel(1, refusal=refusal)
    said = why_not(open_counter=kernel.open_counter)
    assert said == (f"perf_event_open: {reason}" if reason else "")
    counter = counter_of(open_counter=kernel.open_counter)
    assert (counter is None) == bool(refusal)
    if counter:
        counter.close()


def test_usage_between_two_moments() -> None:
    assert Usage(3.0, 70).since(Usage(1.0, 10)) == Usage(2.0, 60)
    assert Usage(3.0, 70).since(Usage(1.0, None)) == Usage(2.0, None)
    assert Usage(2.0, 60).instructions_per(4) == 15
    assert Usage(2.0, None).instructions_per(4) is None


def test_more_work_is_more_instructions() -> None:
    if reason := why_not():
        pytest.skip(reason)
    counter = Counter()
    counts = [counter.read()]
    for size in (10_000, 1_000_000):
        sum(range(size))
        counts.append(counter.read())
    counter.close()
    start, little, much = counts
    assert 10_000 < little - start < much - little
