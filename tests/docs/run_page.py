"""Does what a page tells its reader: ``python -m tests.docs.run_page PAGE``, in a new folder.

Ends with status 1 and says where a command did not do what the page says. ``python -m`` so that a
test can have it run in a network of its own, where no port is taken.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.docs.pages import DOCS, ROOT, Block, Command, Page

SHARED: Final = ("compose", "examples", "helm")
"""Folders of the tree that pages refer to."""
SECONDS: Final = 60.0
"""For a command to end, and for one in the background to say that it is ready."""
LOOK_SECONDS: Final = 0.1

_KEEPING: Final = """\
set -a
. {state}
{command}
status=$?
{{ export -p; printf 'cd %q\\n' "$PWD"; }} > {state}
exit $status
"""


class PageError(Exception):
    """A command did not do what the page says."""


class Reader:
    """Somebody who follows a page to the letter, in *folder*."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._state = folder / ".state"
        self._state.touch()
        self._running: list[subprocess.Popen[bytes]] = []
        for name in SHARED:
            if (ROOT / name).exists():
                (folder / name).symlink_to(ROOT / name)

    def follow(self, page: Page) -> int:
        """Do all that *page* says; return how many commands were run. Raises PageError."""
        done = 0
        try:
            for block in page.blocks():
                if block.file is not None:
                    path = self._folder / block.file
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(block.text, encoding="utf-8")
                elif block.language == "console" and "no-run" not in block.options:
                    done += self._do(block)
        finally:
            self._stop()
        return done

    def _do(self, block: Block) -> int:
        commands = block.commands()
        if "background" in block.options:
            self._start(block, commands)
            return len(commands)
        for command in commands:
            is_last = command is commands[-1]
            wanted = int(block.options.get("status", "0")) if is_last else 0
            found = subprocess.run(
                self._shell(command.line),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=SECONDS,
                check=False,
            )
            said = found.stdout.decode(errors="replace")
            if found.returncode != wanted:
                ending = f"status {found.returncode}, not {wanted}"
                raise PageError(f"{block.where}: {command.line}: {ending}\n{said}")
            check_output(block, command, said)
        return len(commands)

    def _start(self, block: Block, commands: Sequence[Command]) -> None:
        """Start the one command of *block*, and wait until it has said its words."""
        if "instead" in block.options:
            self._stop()
        (command,) = commands
        log = self._folder / f".background-{block.line}"
        with log.open("wb") as output:
            process = subprocess.Popen(
                self._shell(f"exec env {command.line}"),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._running.append(process)
        words, deadline = block.options["until"], time.monotonic() + SECONDS
        while words not in (said := log.read_text("utf-8", errors="replace")):
            if process.poll() is not None or time.monotonic() > deadline:
                raise PageError(f"{block.where}: {command.line}: never said {words!r}\n{said}")
            time.sleep(LOOK_SECONDS)
        check_output(block, command, said)

    def _stop(self) -> None:
        """End what runs in the background, as Ctrl-C would."""
        running, self._running = self._running, []
        for process in reversed(running):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        for process in running:
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _shell(self, command: str) -> list[str]:
        state = shlex.quote(str(self._state))
        return ["bash", "-o", "pipefail", "-c", _KEEPING.format(state=state, command=command)]


def check_output(block: Block, command: Command, said: str) -> None:
    """Raise PageError unless *said* has the lines that the page shows, in their order."""
    lines = iter(_squeezed(line) for line in said.splitlines())
    for shown in filter(str.strip, command.output):
        pattern = ".*".join(map(re.escape, _squeezed(shown).split("...")))
        if not any(re.fullmatch(pattern, line) for line in lines):
            raise PageError(f"{block.where}: {command.line}: does not say {shown!r} but\n{said}")


def _squeezed(line: str) -> str:
    """Return *line* with single spaces: how wide columns are depends on what is in them."""
    return " ".join(line.split())


def main(argv: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder
        os.environ.pop("KUBECONFIG", None)
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        try:
            done = Reader(Path(folder)).follow(Page(DOCS / argv[0]))
        except PageError as wrong:
            sys.stderr.write(f"{wrong}\n")
            return 1
    sys.stdout.write(f"{argv[0]}: {done} commands did what it says\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
