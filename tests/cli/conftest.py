"""Commands set up logging for the process that they run in; tests want theirs back."""

import logging

import pytest


@pytest.fixture(autouse=True)
def _logging_as_before(root_logger: logging.Logger) -> None:
    """Have the root logger restored."""
