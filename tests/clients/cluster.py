"""A ``berth up`` in a process of its own."""

import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

RUNNING: Final = ("no pods", " running")
"""What ``berth up`` prints when all of it runs."""
START_SECONDS: Final = 60
LOOK_SECONDS: Final = 0.1


@contextmanager
def running_cluster(folder: Path, *flags: str) -> Iterator[tuple[Path, Path]]:
    """Yield the kubeconfig of a cluster of three hollow nodes with a scheduler, and its output."""
    kubeconfig, output = folder / "kubeconfig", folder / "output"
    command = [
        *(sys.executable, "-m", "berth", "up", "--nodes=3", "--port=0", "--debug-port=0"),
        *(f"--kubeconfig-out={kubeconfig}", *flags),
    ]
    with (
        output.open("wb") as out,
        subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process,
    ):

        def lacks() -> list[str]:
            text = output.read_text()
            assert process.poll() is None, text
            return [] if any(word in text for word in RUNNING) else [text]

        try:
            until_nothing(lacks)
            yield kubeconfig, output
        finally:
            process.terminate()


def until_nothing(lacks: Callable[[], Collection[str]]) -> None:
    """Look until nothing *lacks* any more; raise TimeoutError with what does."""
    deadline = time.monotonic() + START_SECONDS
    while lacking := lacks():
        if time.monotonic() > deadline:
            raise TimeoutError(lacking)
        time.sleep(LOOK_SECONDS)


def kubectl(
    kubeconfig: Path, *args: str, statuses: tuple[int, ...] = (0,)
) -> subprocess.CompletedProcess[str]:
    """Run kubectl; it must end with one of *statuses*."""
    ran = subprocess.run(
        ["kubectl", f"--kubeconfig={kubeconfig}", *args],
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    assert ran.returncode in statuses, f"{args}: {ran.stdout}{ran.stderr}"
    return ran
