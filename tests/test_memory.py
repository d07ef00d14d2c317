"""How much memory there is."""

import sys
from pathlib import Path

import pytest

from berth.memory import room_in_container


@pytest.mark.parametrize(
    ("limit", "taken", "room"),
    [
        pytest.param("1000\n", "300\n", 700, id="a limit"),
        pytest.param("1000\n", "1200\n", 0, id="a limit that was lowered"),
        pytest.param("max\n", "300\n", sys.maxsize, id="no limit"),
        pytest.param(None, None, sys.maxsize, id="no control group"),
    ],
)
def test_room_in_container(tmp_path: Path, limit: str | None, taken: str, room: int) -> None:
    if limit is not None:
        (tmp_path / "memory.max").write_text(limit)
        (tmp_path / "memory.current").write_text(taken)
    assert room_in_container(tmp_path) == room
