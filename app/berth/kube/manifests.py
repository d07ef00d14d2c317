"""Plain manifests: multi-document YAML or JSON files, as ``kubectl apply -f`` takes them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from berth.kube import documents
from berth.runtime.errors import UserError

Manifest = dict[str, Any]


class ManifestError(UserError):
    """A manifest that cannot be used; names the file and the document."""


def read(path: Path) -> Iterator[Manifest]:
    """Yield the objects of one file in order, items of Lists one by one.

    Raises ManifestError when the file is not there, is no YAML, or a document is no object.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as exc:
        raise ManifestError(f"{path}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise ManifestError(f"{path}: not YAML: {exc}") from exc
    yield from parse(text, source=str(path))


def parse(text: str, *, source: str) -> Iterator[Manifest]:
    """Yield the objects of a YAML text; *source* names it in errors."""
    try:
        parsed = documents.load_all(text)
    except yaml.YAMLError as exc:
        raise ManifestError(f"{source}: not YAML: {' '.join(str(exc).split())}") from exc
    for number, document in enumerate(parsed, start=1):
        if document is None:
            continue
        yield from objects(document, source=f"{source}, document {number}")


def objects(document: Any, *, source: str) -> Iterator[Manifest]:
    """Yield the object that *document* is, or the items of a List; *source* names it in errors."""
    for obj in _items(document):
        yield _checked(obj, source)


def _items(document: Any) -> list[Any]:
    if isinstance(document, Mapping) and str(document.get("kind", "")).endswith("List"):
        items = document.get("items")
        if isinstance(items, list):
            return items
    return [document]


def _checked(obj: Any, where: str) -> Manifest:
    if not isinstance(obj, dict):
        raise ManifestError(f"{where}: an object is needed, got {type(obj).__name__} {obj!r:.40}")
    for name in ("apiVersion", "kind"):
        if not isinstance(obj.get(name), str) or not obj[name]:
            raise ManifestError(f"{where}: {name}: needed, got {obj.get(name)!r}")
    return obj
