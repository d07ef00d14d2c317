"""Commands of a release, and the environments that they run in."""

import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
DIST: Final = ROOT / "dist"


class ReleaseError(Exception):
    """An artifact cannot be made, or is not what it has to be."""


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    """Run *command*; return its output. Raises ReleaseError if it fails.

    Nothing of the checkout is on its Python path, unless *variables* put it there.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**environment, "NO_COLOR": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        line = " ".join(map(str, command))
        raise ReleaseError(f"{line}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def new_environment(folder: Path) -> Path:
    """Make an environment with nothing in it; return its Python."""
    venv.create(folder, with_pip=False)
    return folder / "bin" / "python"


def install(python: Path, *packages: str | Path) -> None:
    """Install into the environment of *python*, by the pip of this one."""
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "--python", python, "install", *packages)


def install_berth(python: Path, wheel: Path) -> None:
    """Install what is locked, and the wheel over it."""
    install(python, "--require-hashes", "-r", ROOT / "requirements.lock")
    install(python, "--no-deps", "--no-index", "--force-reinstall", wheel)
