"""Creates the objects of manifests; rejected objects are reported and skipped."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from berth import manifests
from berth.client.api_client import ApiClient
from berth.client.discovery import Discovery, UnknownKindError
from berth.client.errors import ApiError

WORKLOADS: Final = frozenset(
    (
        "Pod", "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet",
        "Job", "CronJob",
    )
)  # fmt: skip
"""Kinds of pods, and of what makes pods."""


@dataclass(slots=True)
class Refused:
    """How much was not accepted."""

    objects: int = 0
    workloads: int = 0
    """Those of :data:`WORKLOADS` among them: their pods are missing."""
    files: int = 0
    """Files that could not be read to the end: it is not known what is missing."""

    @property
    def lacks_pods(self) -> bool:
        return bool(self.workloads or self.files)

    def lines(self) -> list[str]:
        """Tell it in lines for people."""
        lines = []
        if self.objects:
            lines.append(f"{self.objects} objects refused, {self.workloads} of them with pods")
        if self.files:
            lines.append(f"{self.files} files not read")
        return lines


class Loader:
    """Creates objects through *client*. *say* prints a line for people."""

    def __init__(self, client: ApiClient, *, say: Callable[[str], None]) -> None:
        self._client = client
        self._discovery = Discovery(client)
        self._say = say
        self.refused = Refused()

    async def load(self, path: Path) -> None:
        """Create what a file holds, one by one."""
        await self._create(lambda: manifests.read(path), source=str(path))

    async def load_text(self, text: str, *, source: str) -> None:
        """Create what *text* holds, one by one."""
        await self._create(lambda: manifests.parse(text, source=source), source=source)

    async def _create(
        self, read: Callable[[], Iterable[manifests.Manifest]], *, source: str
    ) -> None:
        try:
            objects = list(read())
        except manifests.ManifestError as exc:
            self.refused.files += 1
            self._say(f"not loaded: {exc}")
            return
        for obj in objects:
            try:
                path = await self._discovery.collection_of(obj)
                await self._client.request(
                    "POST",
                    path,
                    params={"fieldValidation": "Strict"},
                    body=msgspec.json.encode(obj),
                )
            except (UnknownKindError, ApiError) as exc:
                self.refused.objects += 1
                self.refused.workloads += obj["kind"] in WORKLOADS
                self._say(f"not loaded: {source}: {obj['kind']} {_name(obj)!r}: {_reason(exc)}")


def _name(obj: manifests.Manifest) -> Any:
    metadata = obj.get("metadata")
    return metadata.get("name", "") if isinstance(metadata, dict) else ""


def _reason(error: UnknownKindError | ApiError) -> str:
    return error.message if isinstance(error, ApiError) else str(error)
