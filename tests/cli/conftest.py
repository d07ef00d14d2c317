"""What tests of commands share: logging as it was before, and a recording."""

import asyncio
import logging
from pathlib import Path

import pytest
from tests.insight.recording.world import RecordedWorld

from berth.insight.recording.writer import RecordingWriter


@pytest.fixture(autouse=True)
def _logging_as_before(root_logger: logging.Logger) -> None:
    """Have the root logger restored: commands set up logging for the process that they run in."""


@pytest.fixture(scope="session")
def recorded() -> list[bytes]:
    """The lines of a recording of sixty attempts."""
    world = RecordedWorld(seed=5, plain=True)
    asyncio.run(world.live(attempts=60))
    return world.lines


@pytest.fixture
def file(recorded: list[bytes], tmp_path: Path) -> Path:
    """The same as a file."""
    writer = RecordingWriter(tmp_path / "day.json.gz")
    for line in recorded:
        writer.write(line)
    writer.close()
    return writer.path
