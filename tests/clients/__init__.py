"""Client libraries and operators as their users install them, against ``berth up``."""

from typing import Final

import pytest

FOREIGN_AND_SLOW: Final = [
    pytest.mark.wall,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
"""Marks of tests with clients that do not close all that they open."""
