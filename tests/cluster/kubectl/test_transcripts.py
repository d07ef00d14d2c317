"""kubectl, unchanged, against ``berth up``: what it prints and how it ends."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.kubectl.transcripts import FOLDER, Command, read

pytestmark = [
    pytest.mark.wall,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl"),
]

CHAPTERS = sorted(FOLDER.glob("*.txt"))
COMMANDS_AT_LEAST = 280
START_SECONDS = 60
COMMAND_SECONDS = 60


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Start one cluster for all chapters; each has a namespace of its own."""
    folder = tmp_path_factory.mktemp("kubectl")
    kubeconfig = folder / "kubeconfig"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "berth", "up", "--nodes", "3", "--port", "0"),
            *("--debug-port", "0", "--kubeconfig-out", str(kubeconfig)),
        ],
        stdout=subprocess.DEVNULL,
    )
    found = {
        **os.environ,
        "KUBECONFIG": str(kubeconfig),
        "HOME": str(folder),
        "KUBE_EDITOR": "sed -i s/blue/green/",
        "NO_COLOR": "1",
    }
    try:
        _wait_for_nodes(found)
        yield found
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_for_nodes(environment: dict[str, str]) -> None:
    ready = "kubectl wait --for=condition=Ready node --all --timeout=10s"
    deadline = time.monotonic() + START_SECONDS
    while _run(Command(0, ready), environment, Path.cwd()).returncode != 0:
        assert time.monotonic() < deadline, "the cluster does not start"
        time.sleep(0.2)


def _run(
    command: Command, environment: dict[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command.text],
        input=command.stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        cwd=folder,
        timeout=COMMAND_SECONDS,
        check=False,
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_kubectl(chapter: Path, environment: dict[str, str], tmp_path: Path) -> None:
    namespace = f"kubectl-{chapter.stem}"
    kubeconfig = tmp_path / "kubeconfig"
    shutil.copy(environment["KUBECONFIG"], kubeconfig)
    own = {**environment, "KUBECONFIG": str(kubeconfig)}
    for setup in (
        f"kubectl create namespace {namespace}",
        f"kubectl config set-context --current --namespace={namespace}",
    ):
        assert _run(Command(0, setup), own, tmp_path).returncode == 0
    wrong = []
    for command in read(chapter):
        ended = _run(command, own, tmp_path)
        if ended.returncode != command.exit or not command.is_answered_by(ended.stdout):
            shown = "\n".join(command.printed)
            wrong.append(
                f"line {command.line}: {command.text}\n"
                f"expected (exit {command.exit}):\n{shown}\n"
                f"got (exit {ended.returncode}):\n{ended.stdout}"
            )
    assert not wrong, "\n\n".join(wrong)


def test_there_are_enough_commands() -> None:
    assert sum(len(read(each)) for each in CHAPTERS) >= COMMANDS_AT_LEAST
