"""The docker command line."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

COMMAND_SECONDS = 60
BUILD_SECONDS = 900
"""How long a command may take, and the build of an image."""


class DockerError(Exception):
    """A command failed; the message is what it wrote."""


def docker(*arguments: str, text: str | None = None, seconds: float = COMMAND_SECONDS) -> str:
    """Return what ``docker`` writes, with *text* as its standard input. Raises DockerError."""
    return run("docker", *arguments, text=text, seconds=seconds)


def run(
    *command: str,
    text: str | None = None,
    seconds: float = COMMAND_SECONDS,
    env: Mapping[str, str] | None = None,
) -> str:
    """Return what *command* writes. Raises DockerError."""
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=seconds, env=env
    )
    if done.returncode:
        raise DockerError(f"{' '.join(command)}: {done.stderr or done.stdout}")
    return done.stdout.strip()


def succeeds(*arguments: str) -> bool:
    """Return whether a command of ``docker`` can be run, and ends with 0."""
    try:
        docker(*arguments)
    except (DockerError, OSError, subprocess.TimeoutExpired):
        return False
    return True


def inspect(name: str) -> dict[str, Any]:
    """Return what the engine knows of a container or an image. Raises DockerError."""
    (answer,) = json.loads(docker("inspect", name))
    found: dict[str, Any] = answer
    return found


@contextmanager
def container(*arguments: str) -> Iterator[str]:
    """Run a container in the background and yield its id; remove it at the end."""
    name = docker("run", "--detach", *arguments)
    try:
        yield name
    finally:
        docker("rm", "--force", "--volumes", name)
