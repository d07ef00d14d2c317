"""Sources of ``berth up --load``: files, folders, standard input."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from berth.kube import manifests
from berth.kube.manifests import Manifest, ManifestError

STDIN: Final = "-"

EXTENSIONS: Final = frozenset((".json", ".yaml", ".yml"))
"""Of the files of a folder that are read, as with ``kubectl apply -f``."""

BUILT: Final = {
    "Chart.yaml": "helm template {folder}",
    "Kustomization": "kubectl kustomize {folder}",
    "kustomization.yaml": "kubectl kustomize {folder}",
    "kustomization.yml": "kubectl kustomize {folder}",
}
"""Files of folders that manifests are built from, and what builds them."""


@dataclass(slots=True)
class Gathered:
    """What there is to load."""

    objects: list[tuple[str, Manifest]] = field(default_factory=list)
    """Each with the name of its source."""
    problems: list[str] = field(default_factory=list)
    """One for each source that could not be read to the end, of which nothing is loaded."""

    def add(self, name: str, read: Callable[[], Iterable[Manifest]]) -> None:
        """Add the objects of a source, or its problem."""
        try:
            self.objects += [(name, obj) for obj in read()]
        except ManifestError as exc:
            self.problems.append(str(exc))


def gather(sources: Sequence[str]) -> Gathered:
    """Read files, all manifests in folders, and standard input (``-``)."""
    gathered = Gathered()
    for source in sources:
        if source == STDIN:
            gathered.add("standard input", _read_stdin)
            continue
        try:
            paths = list(_files_in(source)) if Path(source).is_dir() else [Path(source)]
        except ManifestError as exc:
            gathered.problems.append(str(exc))
            continue
        for path in paths:
            gathered.add(str(path), partial(manifests.read, path))
    return gathered


def _files_in(source: str) -> Iterator[Path]:
    """Yield the manifests below a folder, by name.

    Raises ManifestError when there are none, or when they have to be built first.
    """
    found = False
    for folder, folders, names in os.walk(source):
        folders.sort()
        for name in sorted(names):
            if name in BUILT:
                command = BUILT[name].format(folder=folder)
                raise ManifestError(
                    f"{Path(folder, name)}: manifests are built from this folder;"
                    f" use `{command} | berth up --load -`"
                )
            if Path(name).suffix in EXTENSIONS:
                found = True
                yield Path(folder, name)
    if not found:
        raise ManifestError(f"{source}: there is no *.yaml, *.yml or *.json in this folder")


def _read_stdin() -> Iterable[Manifest]:
    try:
        text = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as exc:
        raise ManifestError(f"standard input: not YAML: {exc}") from exc
    return manifests.parse(text, source="standard input")
