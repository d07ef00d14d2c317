"""Instructions that a process has executed in user mode, where the kernel counts them.

By perf_event_open(2), which virtual machines and containers often refuse. Other than CPU time, this
number hardly depends on what else the machine does. On a machine with cores of two kinds the kernel
counts on those of one kind only.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from berth.runtime.clock import RealClock

OpenSyscall = Callable[[bytes, int], int]
"""Opens a counter as *attr* says for a thread; returns its file descriptor, or raises OSError."""

SYSCALL_NUMBERS: Final = {"x86_64": 298, "aarch64": 241}
"""Of perf_event_open, by machine (asm/unistd.h)."""


class Event(NamedTuple):
    """What is counted: ``type`` and ``config`` of ``perf_event_attr``."""

    type: int
    config: int


INSTRUCTIONS: Final = Event(type=0, config=1)
"""PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS."""
TASK_CLOCK: Final = Event(type=1, config=1)
"""PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK: nanoseconds of CPU, which every kernel counts."""

FLAG_FD_CLOEXEC: Final = 8
INHERIT: Final = 1 << 1
"""Count threads and processes, too, that the process starts from now on."""
EXCLUDE_KERNEL: Final = 1 << 5
EXCLUDE_HV: Final = 1 << 6
ATTR_SIZE: Final = 64
"""Bytes of the first version of ``perf_event_attr``, which every kernel knows."""
READ_FORMAT: Final = 1 << 0 | 1 << 1
"""PERF_FORMAT_TOTAL_TIME_ENABLED and _RUNNING, after the count."""
READ: Final = struct.Struct("=QQQ")
SELF: Final = 0
"""The thread that asks."""


def attributes(event: Event) -> bytes:
    """Return a ``perf_event_attr`` that counts *event* in user mode."""
    return struct.pack(
        "=IIQQQQQ16x",
        event.type,
        ATTR_SIZE,
        event.config,
        0,  # sample_period
        0,  # sample_type
        READ_FORMAT,
        INHERIT | EXCLUDE_KERNEL | EXCLUDE_HV,
    )


def perf_event_open(attr: bytes, pid: int) -> int:
    """Open a counter of a thread, the first of a process, on any CPU; OSError if refused."""
    number = SYSCALL_NUMBERS.get(platform.machine())
    if number is None or platform.system() != "Linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    any_cpu, no_group = ctypes.c_int(-1), ctypes.c_int(-1)
    descriptor: int = syscall(
        ctypes.c_long(number), attr, ctypes.c_int(pid), any_cpu, no_group,
        ctypes.c_ulong(FLAG_FD_CLOEXEC),
    )  # fmt: skip
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return descriptor


class Counter:
    """Counts from when it is made until it is closed; also after the process has ended.

    Threads and processes count that are started later, and have ended or not.
    """

    def __init__(
        self,
        pid: int = SELF,
        *,
        event: Event = INSTRUCTIONS,
        open_counter: OpenSyscall = perf_event_open,
    ) -> None:
        """Raise OSError if the kernel refuses."""
        self._descriptor = open_counter(attributes(event), pid)

    def read(self) -> int:
        """Return the count; where others had the hardware for a part of the time, an estimate."""
        count, enabled, running = READ.unpack(os.read(self._descriptor, READ.size))
        return int(count) if running in (0, enabled) else int(count) * enabled // running

    def close(self) -> None:
        os.close(self._descriptor)


def counter_of(pid: int = SELF, *, open_counter: OpenSyscall = perf_event_open) -> Counter | None:
    """Return a counter of a process and what it starts from now on; None if the kernel refuses."""
    try:
        return Counter(pid, open_counter=open_counter)
    except OSError:
        return None


class InstructionClock(RealClock):
    """For benchmarks: :meth:`monotonic` is the number of instructions of this process."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def monotonic(self) -> float:
        return self._counter.read()


def why_not(*, open_counter: OpenSyscall = perf_event_open) -> str:
    """Say why instructions cannot be counted here; "" if they can."""
    try:
        Counter(open_counter=open_counter).close()
    except OSError as exc:
        name = errno.errorcode.get(exc.errno or 0, "error")
        return f"perf_event_open: {name}, {exc.strerror}"
    return ""
