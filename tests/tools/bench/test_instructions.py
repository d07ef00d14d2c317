"""Instructions are counted where the kernel does that; where it refuses, that is said."""

import errno
import os
import struct
import subprocess
import sys
import threading
import time

import pytest

from berth.tools.bench.instructions import (
    INSTRUCTIONS,
    TASK_CLOCK,
    Counter,
    InstructionClock,
    attributes,
    counter_of,
    why_not,
)


class Kernel:
    """Opens counters that read what they are told to, or refuses."""

    def __init__(self, *readings: tuple[int, int, int], refusal: int = 0) -> None:
        """*readings* are counts, with the nanoseconds of counting as asked for and as done."""
        self.readings = readings
        self.refusal = refusal
        self.asked: list[tuple[bytes, int]] = []

    def open_counter(self, attr: bytes, pid: int) -> int:
        self.asked.append((attr, pid))
        if self.refusal:
            raise OSError(self.refusal, os.strerror(self.refusal))
        reading, writing = os.pipe()
        os.write(writing, b"".join(struct.pack("=QQQ", *each) for each in self.readings))
        os.close(writing)
        return reading


def test_a_process_is_asked_about_with_all_that_it_starts() -> None:
    kernel = Kernel((7, 1, 1), (12, 2, 2))
    counter = Counter(42, open_counter=kernel.open_counter)
    assert (counter.read(), counter.read()) == (7, 12)
    counter.close()
    assert kernel.asked == [(attributes(INSTRUCTIONS), 42)]
    attr = kernel.asked[0][0]
    kind, size, config, period, sample_type, read_format, flags = struct.unpack("=IIQQQQQ16x", attr)
    assert (kind, size, config) == (0, len(attr), 1)
    assert (period, sample_type, read_format) == (0, 0, 1 | 2)
    inherit, exclude_kernel, exclude_hypervisor = 1 << 1, 1 << 5, 1 << 6
    assert flags == inherit | exclude_kernel | exclude_hypervisor


READ = [
    pytest.param((100, 8, 8), 100, id="the whole time"),
    pytest.param((100, 8, 2), 400, id="a quarter of the time"),
    pytest.param((0, 8, 0), 0, id="not yet"),
]


@pytest.mark.parametrize(("reading", "count"), READ)
def test_a_count_is_of_the_whole_time(reading: tuple[int, int, int], count: int) -> None:
    counter = Counter(open_counter=Kernel(reading).open_counter)
    assert counter.read() == count
    counter.close()


def test_a_clock_tells_instructions() -> None:
    counter = Counter(open_counter=Kernel((7, 1, 1), (12, 2, 2)).open_counter)
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
    kernel = Kernel((1, 1, 1), refusal=refusal)
    said = why_not(open_counter=kernel.open_counter)
    assert said == (f"perf_event_open: {reason}" if reason else "")
    counter = counter_of(open_counter=kernel.open_counter)
    assert (counter is None) == bool(refusal)
    if counter:
        counter.close()


def cpu_counter(pid: int = 0) -> Counter:
    """Count nanoseconds of CPU, which needs no hardware: the rest is as with instructions."""
    try:
        return Counter(pid, event=TASK_CLOCK)
    except OSError as exc:
        pytest.skip(f"perf_event_open: {exc}")


def work() -> None:
    sum(range(1_000_000))


def test_threads_count_that_are_started_later() -> None:
    counter = cpu_counter()
    before = time.process_time_ns()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    used = time.process_time_ns() - before
    assert used * 0.9 < counter.read() < used * 1.1
    counter.close()


def test_a_process_that_runs_counts_with_those_it_starts_and_after_its_end() -> None:
    start = "input(); subprocess.run([sys.executable, '-c', 'sum(range(1_000_000))'], check=True)"
    tell = "print(sum(os.times()[:4]))"
    command = [sys.executable, "-c", f"import os, subprocess, sys; {start}; {tell}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        counter = cpu_counter(process.pid)
        told, _ = process.communicate(b"\n")
    # It says what it has used since its start, in ticks of 10 ms.
    assert 5_000_000 < counter.read() < (float(told) + 0.1) * 1e9
    counter.close()


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
