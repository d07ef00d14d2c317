"""Captures what berth prints on a terminal: ``python -m docs.generate.capture``.

It runs a sample cluster and writes ``docs/pictures/terminal/``. Run it when output has changed,
then ``make reference`` for the pictures. ``snapshot.json.gz`` is the cluster that ``simulate`` asks
about, so that a test can repeat that capture.
"""

import contextlib
import gzip
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from typing import Final

from docs.generate.terminal import CAPTURES, COLUMNS

LINES: Final = 24
BERTH: Final = (sys.executable, "-m", "berth")
SNAPSHOT: Final = CAPTURES / "snapshot.json.gz"
UPGRADE: Final = Path(__file__).parents[2] / "examples" / "upgrade" / "workload.yaml"
BIG: Final = """\
apiVersion: v1
kind: Pod
metadata:
  name: big
spec:
  containers:
    - name: main
      image: registry.example.com/big:1
      resources:
        requests: {cpu: "3", memory: 1Gi}
"""
SETTLED_SECONDS: Final = 12.0
"""After this time all pods of the sample run, and the view shows it."""

_FRAME: Final = re.compile(r"(?:\x1b\[1A|\x1b\[2K|\r)+")


def main() -> None:
    with tempfile.TemporaryDirectory() as name, sample_cluster(Path(name)) as screen:
        folder = Path(name)
        config = ("--kubeconfig", "berth.kubeconfig", "--server", _server(screen()))
        explain = ("explain", "shop/too-large", "--nodes", "4")
        write("explain", "berth explain shop/too-large --nodes 4", run(folder, *explain, *config))
        snapshot = _snapshot(folder, config[3])
        with SNAPSHOT.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as file:
            file.write(snapshot)
        write("up", "berth up --sample", _last_frame(screen()))
    with tempfile.TemporaryDirectory() as name:
        write("simulate", "berth simulate --template big.yaml --replicas 40", simulate(Path(name)))
        write("plugin-list", "berth plugin list", run(Path(name), "plugin", "list"))
        write("upgrade", "berth replay day.json.gz --emulated-version 1.37", upgrade(Path(name)))


def simulate(folder: Path) -> str:
    """Return what ``berth simulate`` says about the captured cluster."""
    (folder / "big.yaml").write_text(BIG, encoding="utf-8")
    question = ("--template", "big.yaml", "--replicas", "40")
    return run(folder, "simulate", "--snapshot", str(SNAPSHOT), *question, statuses=(1,))


def upgrade(folder: Path) -> str:
    """Return what ``berth replay`` says of a day of 1.36 that it decides again as 1.37."""
    record = ("--emulated-version", "1.36", "--record", "day.json.gz", "--exit-when-idle")
    ports = ("--port", "0", "--debug-port", "0")
    run(folder, "up", "--nodes", "2", "--load", str(UPGRADE), *record, *ports)
    return run(folder, "replay", "day.json.gz", "--emulated-version", "1.37", statuses=(1,))


def run(folder: Path, *command: str, statuses: Sequence[int] = (0,)) -> str:
    """Run berth as on a terminal with colours; return what it prints."""
    done = subprocess.run(
        [*BERTH, *command],
        cwd=folder,
        env={**os.environ, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "TERM": "xterm-256color"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode not in statuses:
        raise RuntimeError(f"{command}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def write(name: str, command: str, output: str) -> None:
    text = "\n".join([command, *(line.rstrip() for line in output.splitlines())])
    (CAPTURES / f"{name}.ansi").write_text(f"{text.rstrip()}\n", encoding="utf-8")


@contextlib.contextmanager
def sample_cluster(folder: Path) -> Iterator["Screen"]:
    """Run ``berth up --sample`` on a terminal of its own; yield what the terminal has shown."""
    leader, follower = pty.openpty()
    ioctl(follower, TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [*BERTH, "up", "--sample", "--debug-port", "0"],
        cwd=folder,
        env={**os.environ, "TERM": "xterm-256color"},
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    screen = Screen(leader)
    try:
        time.sleep(SETTLED_SECONDS)
        yield screen
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)
        os.close(follower)


class Screen:
    """All that was written to a pseudo terminal. It is read all the time: nobody waits for us."""

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self._written = b""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # when the other end is closed
            while part := os.read(self._leader, 65536):
                self._written += part

    def __call__(self) -> str:
        return self._written.decode(errors="replace")


def _server(shown: str) -> str:
    found = re.search(r"scheduler at (https://[\d.:]+)", shown)
    assert found, shown
    return found[1]


def _last_frame(shown: str) -> str:
    """Return what is on the screen: what follows the last time that the cursor went up."""
    return _FRAME.split(shown.replace("\r\n", "\n").replace("\x1b[?25l", ""))[-1]


def _snapshot(folder: Path, server: str) -> bytes:
    token = subprocess.run(
        ["kubectl", "--kubeconfig", "berth.kubeconfig", "config", "view", "--raw", "--minify",
         "-o", "jsonpath={.users[0].user.token}"],
        cwd=folder,
        capture_output=True,
        check=True,
        text=True,
    ).stdout  # fmt: skip
    return subprocess.run(
        ["curl", "-sfk", "-K", "-", f"{server}/snapshot"],
        input=f'header = "Authorization: Bearer {token}"'.encode(),
        capture_output=True,
        check=True,
    ).stdout


if __name__ == "__main__":
    main()
