"""What `make run` does on a fresh machine, and how it ends."""

import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def planned(target: str, tmp_path: Path) -> str:
    """Return the commands of *target* where there is no environment yet."""
    return subprocess.run(
        ["make", "-n", target, f"VENV={tmp_path}/venv"],
        cwd=REPOSITORY, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip


@pytest.mark.parametrize(
    ("target", "locks"),
    [
        pytest.param("run", ["requirements.lock", "requirements-build.lock"], id="run"),
        pytest.param(
            "quick",
            ["requirements.lock", "requirements-build.lock", "requirements-dev.lock"],
            id="tests",
        ),
    ],
)
def test_what_is_installed(target: str, locks: list[str], tmp_path: Path) -> None:
    assert re.findall(r"-r (\S+)", planned(target, tmp_path)) == locks


def test_containers_without_an_engine_are_an_error(tmp_path: Path) -> None:
    stub = tmp_path / "bin/docker"
    stub.parent.mkdir()
    stub.write_text("#!/bin/sh\nexit 1\n")
    stub.chmod(0o755)
    for stamp in (".runnable", ".ready"):
        (tmp_path / stamp).touch()
    made = subprocess.run(
        ["make", "containers", f"VENV={tmp_path}"],
        cwd=REPOSITORY, capture_output=True, text=True,
        env={**os.environ, "PATH": f"{stub.parent}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert made.returncode != 0
    assert "needs a container engine" in made.stderr


@pytest.mark.parametrize("tool", ["playwright", "matplotlib", "pytest", "mypy", "sphinx"])
def test_what_only_tests_need_is_not_in_the_way_of_make_run(tool: str) -> None:
    text = "".join(
        (REPOSITORY / name).read_text("utf-8")
        for name in ("requirements.lock", "requirements-build.lock")
    )
    assert f"\n{tool}==" not in text


@pytest.mark.wall
@pytest.mark.parametrize(
    ("stub", "said", "status"),
    [
        pytest.param(
            "trap 'echo ended; exit 130' INT; echo waits; sleep 30 & wait",
            "ended",
            130,
            id="Ctrl-C",
        ),
        pytest.param("exit 7", "Error 7", 2, id="what goes wrong is still an error"),
    ],
)
def test_ctrl_c_is_no_error(tmp_path: Path, stub: str, said: str, status: int) -> None:
    """Of make, which a terminal interrupts together with berth."""
    program = tmp_path / "bin" / "berth"
    program.parent.mkdir()
    program.write_text(f"#!/bin/bash\n{stub}\n", encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / ".runnable").touch()
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp("make", ["make", "-C", os.fspath(REPOSITORY), "run", f"VENV={tmp_path}"])
    shown = b""
    interrupted = False
    while True:
        try:
            shown += os.read(terminal, 1_000)
        except OSError:  # it has ended
            break
        if b"waits\r\n" in shown and not interrupted:
            interrupted = True
            os.write(terminal, b"\x03")
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    text = shown.decode()
    assert said in text
    assert ("***" in text) == (status == 2), text
    assert ended in {-2, 130} if status == 130 else ended == 2
