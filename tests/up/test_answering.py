"""``berth up`` answers ``berth explain``, on another port if its own is taken."""

import re
import socket
from pathlib import Path

import pytest

from app.server.listening import LOOPBACK
from tests.up.test_up import run

pytestmark = pytest.mark.wall


async def test_a_taken_port_is_told_and_another_one_used(tmp_path: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as other:
        port = other.getsockname()[1]
        status, said = await run(tmp_path, debug_port=port)

    assert status == 0
    assert said[1].startswith(f"--debug-port {port}: Address already in use")
    assert said[1].endswith("; using another")
    assert re.fullmatch(
        r"scheduler at (http://127\.0\.0\.1:\d+); try: berth explain --server \1 POD", said[2]
    )
