"""What is not imported until it is needed, since it takes as long as a whole start."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

IN_PROCESS: Final = """
import sys
from berth import cli
print(cli.main(sys.argv[1:]), *sys.modules)
"""

SERVING: Final = (
    "aiohttp", "kubernetes_asyncio", "re2",
    "berth.insight.explain.explanation", "berth.insight.whatif", "berth.runtime.http_server",
    "berth.service.server.access",
    "cryptography", "fastapi", "starlette", "uvicorn",
)  # fmt: skip
COMMANDS: Final = ("berth.cluster", "berth.tools.up", "berth.runtime.tables", "httpx", "rich")


@pytest.mark.parametrize(
    ("command", "status", "module", "absent"),
    [
        pytest.param(
            ("run", "--write-config-to"), 0, "berth.service.scheduler_process",
            (*SERVING, *COMMANDS), id="a scheduler whose port nobody asks",
        ),
        pytest.param(
            ("up", "--stages"), 2, "berth.tools.up.up",
            ("fastapi", "berth.insight.explain.explanation"), id="an embedded cluster",
        ),
    ],
)  # fmt: skip
def test_what_a_command_does_not_import(
    command: tuple[str, ...], status: int, module: str, absent: tuple[str, ...], tmp_path: Path
) -> None:
    """The commands end before they begin: one writes a file, the other does not find it."""
    ended = subprocess.run(
        [sys.executable, "-c", IN_PROCESS, *command, str(tmp_path / "file.yaml")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found, *imported = ended.stdout.split()
    assert found == str(status)
    assert module in imported
    assert [name for name in absent if name in imported] == []


BEFORE_THE_LOOP: Final = """
import sys
from berth import cli
from berth.runtime import event_loop

def in_loop(work):
    work.close()
    print(*sys.modules)
    return 0

event_loop.in_loop = in_loop
cli.main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("flag", "is_imported"),
    [
        pytest.param("--secure-port=10259", True, id="with a port"),
        pytest.param("--secure-port=0", False, id="without one"),
    ],
)
def test_what_serves_http_is_imported_before_the_loop_runs(flag: str, *, is_imported: bool) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", BEFORE_THE_LOOP, "run", flag],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert ("berth.service.secure_port" in ended.stdout.split()) == is_imported


def test_who_only_asks_a_scheduler_has_nothing_of_one() -> None:
    modules = (
        "berth.service.running_scheduler", "berth.insight.explain.tables",
        "berth.insight.explain.groups.tables", "berth.insight.whatif.tables",
    )  # fmt: skip
    program = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    imported = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    absent = ("berth.scheduler.cycle", "berth.scheduler.framework.interface", "numpy")
    assert [name for name in absent if name in imported] == []
