"""``kubectl berth``: the command as a plugin of kubectl."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = f"#!{sys.executable}\nfrom berth.__main__ import main\nmain()\n"
"""What pip makes of a console script."""


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    script = tmp_path / "kubectl-berth"
    script.write_text(SCRIPT, encoding="utf-8")
    script.chmod(0o755)
    return script


def run(*command: str | Path, path: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_it_calls_itself_what_it_was_called(plugin: Path) -> None:
    answered = run(plugin, "--help", path=plugin.parent)
    assert answered.stdout.startswith("usage: kubectl berth COMMAND [flags]\n")
    assert "`kubectl berth COMMAND --help`" in answered.stdout

    wrong = run(plugin, "explian", path=plugin.parent)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("kubectl berth: 'explian' is not a command")
    assert "did you mean `kubectl berth explain`?" in wrong.stderr


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
@pytest.mark.parametrize("command", ["explain", "up"])
def test_kubectl_finds_it(command: str, plugin: Path) -> None:
    answered = run("kubectl", "berth", command, "--help", path=plugin.parent)
    assert answered.stdout.startswith(f"usage: kubectl berth {command} ")
