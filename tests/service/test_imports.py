"""What is not imported until it is needed, since it takes as long as a whole start."""

import subprocess
import sys
from typing import Final

import pytest

SERVING: Final = (
    "berth.insight.explain.explanation", "berth.insight.whatif", "berth.runtime.http_server",
    "berth.service.server.access",
    "cryptography", "fastapi", "starlette", "uvicorn",
)  # fmt: skip
COMMANDS: Final = ("berth.cluster", "berth.tools.up", "berth.runtime.tables", "httpx", "rich")


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        pytest.param(
            "berth.cli.commands.run", (*SERVING, *COMMANDS), id="a scheduler whose port nobody asks"
        ),
        pytest.param(
            "berth.cli.commands.up",
            ("fastapi", "berth.insight.explain.explanation"),
            id="an embedded cluster",
        ),
    ],
)
def test_what_a_command_does_not_import(module: str, absent: tuple[str, ...]) -> None:
    program = f"import sys, {module}; print(*sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    imported = ended.stdout.split()
    assert module in imported
    assert [name for name in absent if name in imported] == []
