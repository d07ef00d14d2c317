"""What holds for all tests."""

import gc
import logging
import os
import re
import signal
import sys
from collections.abc import Generator, Iterator
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

# httpx looks for sniffio up to five times in a request, through all folders of sys.path if there is
# no such module. To be told at once takes 1 µs instead of 80.
sys.modules.setdefault("sniffio", None)  # type: ignore[arg-type]

# kubectl and helm, which tests run hundreds of times, end before their garbage is worth collecting:
# it takes a quarter of their CPU time.
os.environ.setdefault("GOGC", "400")

# A shell has what it starts in the background ignore Ctrl-C; and so would berth, which tests start
# and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadlines: how fast an example runs says something about the machine, not about the code.
# Where nobody can look at a new failure at once, the examples are the same in every run.
settings.register_profile("berth", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("berth")

COLLECTED_SELDOM: Final = (20_000, 10, 10)
"""Thresholds of the garbage collector. By Python's own it takes a fifth of the time of the tests,
which build and drop whole clusters; by these a twentieth, and no more memory."""
MARKS_SLOW: Final = re.compile(r"mark\.slow\b|SLOW")
"""What a module with slow tests has in its text."""
ALL_SLOW: Final = re.compile(r"^pytestmark = (?:\[[^]]*)?\S*(?:mark\.slow\b|SLOW\b)", re.MULTILINE)
"""What a module has in its text whose tests are all slow."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep modules and tests, a million objects that stay, out of the garbage collector's view.

    Looking at them took a quarter of the time of the quick tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*COLLECTED_SELDOM)
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import only the modules with slow tests when only these run: a tenth of all; and none that
    has no others when these do not run: they import whole clients and a browser's driver."""
    if collection_path.suffix != ".py":
        return None
    match config.getoption("markexpr").split():
        case ["slow", *_]:
            is_other = not _has_slow_tests(collection_path)
        case ["not", "slow", *_]:
            is_other = ALL_SLOW.search(collection_path.read_text("utf-8")) is not None
        case _:
            is_other = False
    return True if is_other else None


@pytest.hookimpl(trylast=True)  # after those that are not asked for are gone
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that may take longest, so that no worker is left alone with one.

    ``--dist worksteal`` gives each worker an equal part of the list, so each part begins so.
    """
    for item in items:
        if item.get_closest_marker("slow") and not _has_slow_tests(item.path):
            raise pytest.UsageError(f"{item.nodeid} is slow: its module must say mark.slow or SLOW")
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    seconds = {item: _timeout(item) for item in items}
    long = sorted(filter(seconds.__getitem__, items), key=seconds.__getitem__, reverse=True)
    others = iter([item for item in items if not seconds[item]])
    parts = [long[worker::workers] for worker in range(workers)]
    for part in parts:
        part += islice(others, max(0, len(items) // workers - len(part)))
    items[:] = [*chain.from_iterable(parts), *others]


@cache
def _has_slow_tests(module: Path) -> bool:
    return MARKS_SLOW.search(module.read_text("utf-8")) is not None


def _timeout(item: pytest.Item) -> float:
    """Return the seconds that a test may take if it may take longer than others, else 0."""
    marker = item.get_closest_marker("timeout")
    return 0.0 if marker is None else float(marker.args[0])


@pytest.fixture(autouse=True)
def _level_as_before() -> Iterator[None]:
    """Commands set the level of the process that they run in."""
    root = logging.getLogger()
    level = root.level
    yield
    if root.level != level:  # setting it empties what all loggers have cached
        root.setLevel(level)


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    """Hand out the root logger without handlers, and put it back as it was."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    for handler in handlers:  # else basicConfig(force=True) would close pytest's
        root.removeHandler(handler)
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)
