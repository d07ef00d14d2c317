"""What holds for all tests."""

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# No deadlines: how fast an example runs says something about the machine, not about the code.
# Where nobody can look at a new failure at once, the examples are the same in every run.
settings.register_profile("berth", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("berth")


@pytest.fixture(autouse=True)
def _level_as_before() -> Iterator[None]:
    """Commands set the level of the process that they run in."""
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    """Hand out the root logger without handlers, and put it back as it was."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    for each in handlers:  # else basicConfig(force=True) would close pytest's
        root.removeHandler(each)
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)
