"""Help and wrong usage are told before anything is imported that takes long."""

import subprocess
import sys
from typing import Final

import pytest

from berth.cli import COMMANDS

HEAVY: Final = (
    "aiohttp", "berth.kube.client.api_client",
    "berth.kube.objects", "berth.scheduler.cycle", "berth.scheduler.framework",
    "berth.service.configuration", "berth.tools.up", "berth_plugins", "cryptography",
    "fastapi", "google", "httpx", "kubernetes_asyncio", "numpy", "ortools",
    "prometheus_client", "pydantic", "re2", "rich", "starlette", "uvicorn", "uvloop", "yaml",
)  # fmt: skip

IN_PROCESS: Final = """
import sys
from berth import cli
for flag in ("--help", "--no-such-flag"):
    try:
        cli.main([sys.argv[1], flag])
    except SystemExit as ended:
        assert ended.code == (0 if flag == "--help" else 2)
    else:
        raise AssertionError(flag)
print(*sys.modules, file=sys.stderr, end="")
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_not_imported_to_tell_about_flags(command: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", IN_PROCESS, command], capture_output=True, text=True, check=True
    )
    assert ended.stdout.startswith(f"usage: berth {command}")
    imported = ended.stderr.splitlines()[-1].split()
    assert f"berth.cli.{command}" in imported
    assert [name for name in HEAVY if name in imported] == []


def test_what_is_not_imported_before_a_command_is_known() -> None:
    program = "import sys; from berth import cli; cli.main(['--help']); print(*sys.modules)"
    said = subprocess.check_output([sys.executable, "-c", program], text=True)
    imported = said.splitlines()[-1].split()
    assert "berth.cli" in imported
    assert [name for name in (*HEAVY, "argcomplete", "asyncio") if name in imported] == []
