"""The compose file with the compose and the engine of this machine, and what these cannot read."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.containers.docker import DockerError, docker, run, succeeds

START_INTERVAL_API = (1, 44)
"""The engine's API, of release 25, from which on health checks have a `start_interval`."""

Version = tuple[int, ...]


class Compose(NamedTuple):
    """A compose command and its version."""

    command: tuple[str, ...]
    version: Version


def installed() -> Compose | None:
    """Return the plugin of ``docker``, else the program of its own, if there is one."""
    for command in (("docker", "compose"), ("docker-compose",)):
        try:
            said = run(*command, "version", "--short")
        except (DockerError, OSError):
            continue
        return Compose(command, numbers(said))
    return None


def numbers(version: str) -> Version:
    """Return the numbers at the beginning of a version, as ``(2, 26, 1)``."""
    return tuple(map(int, re.findall(r"\d+", version.partition("-")[0])))


def readable(file: Mapping[str, Any], *, compose: Version, api: Version) -> dict[str, Any]:
    """Return *file* without what an older *compose*, or an engine of an older *api*, refuses.

    ``start_interval`` needs engine 25; the file's name and ``depends_on.restart`` need Compose 2.
    """
    made: dict[str, Any] = yaml.safe_load(yaml.safe_dump(dict(file)))
    for service in made["services"].values():
        if api < START_INTERVAL_API or compose < (2,):
            service.get("healthcheck", {}).pop("start_interval", None)
        if compose < (2,):
            for needed in service.get("depends_on", {}).values():
                needed.pop("restart", None)
    if compose < (2,):
        made.pop("name", None)
    return made


class Project:
    """A compose file in *folder*, as a project of its own. Everything of it goes with ``down``."""

    def __init__(self, compose: Compose, folder: Path, *, name: str) -> None:
        self.name = name
        self._compose = compose
        self._folder = folder
        self._api = numbers(docker("version", "--format", "{{.Server.APIVersion}}"))
        self._file = folder / "docker-compose.yml"
        self.untouched = self._file.read_text("utf-8")

    def use(self, *, image: str = "") -> None:
        """Write the file as it can be read here, with *image* in place of berth's, if given."""
        made = readable(
            yaml.safe_load(self.untouched), compose=self._compose.version, api=self._api
        )
        for service in made["services"].values():
            if image and "build" in service:
                service["image"] = image
        self._file.write_text(yaml.safe_dump(made), encoding="utf-8")

    def __call__(self, *arguments: str) -> str:
        """Run a command of compose. Raises DockerError."""
        project = (f"--project-name={self.name}", f"--project-directory={self._folder}")
        return run(*self._compose.command, f"--file={self._file}", *project, *arguments)

    def container(self, service: str) -> str:
        """Return the id of the container of *service*, also while it restarts.

        Raises DockerError if there is none.
        """
        found = self("ps", "--all", "--quiet", service)
        if not found:
            raise DockerError(f"{service} has no container")
        return found

    def ended(self) -> bool:
        """Return whether the engine has nothing of this project any more."""
        label = f"label=com.docker.compose.project={self.name}"
        kinds = ("container", "network", "volume")
        return not any(docker(kind, "ls", "--quiet", "--filter", label) for kind in kinds) and (
            succeeds("version")
        )
