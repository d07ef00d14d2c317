"""Plugins that a configuration names as ``module:Class`` instead of by their names.

Works on documents that are decoded but not checked yet.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from berth.kube.field_errors import join

_REFERENCE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*\Z")


class Reference(NamedTuple):
    """Where a configuration has one."""

    path: str
    entry: dict[str, Any]
    """What the reference is the ``name`` of."""

    @property
    def text(self) -> str:
        return str(self.entry["name"])


def references(document: object) -> Iterator[Reference]:
    """Yield what *document* has where plugins are enabled, disabled or given args."""
    for i, profile in enumerate(_items(document, "profiles")):
        plugins = profile.get("plugins") if isinstance(profile, Mapping) else None
        for point, plugin_set in plugins.items() if isinstance(plugins, Mapping) else ():
            for which in ("enabled", "disabled"):
                path = join("profiles", i, "plugins", str(point), which)
                yield from _in(_items(plugin_set, which), path)
        path = join("profiles", i, "pluginConfig")
        yield from _in(_items(profile, "pluginConfig"), path)


def replace_references(document: object, names: Mapping[str, str]) -> None:
    """Put the plugins' own names, by reference, into *document*; others stay as they are."""
    for reference in references(document):
        reference.entry["name"] = names.get(reference.text, reference.text)


def _in(entries: Collection[Any], path: str) -> Iterator[Reference]:
    for j, entry in enumerate(entries):
        name = entry.get("name") if isinstance(entry, dict) else None
        if isinstance(name, str) and _REFERENCE.match(name):
            yield Reference(join(path, j, "name"), entry)


def _items(value: object, field: str) -> Collection[Any]:
    items = value.get(field) if isinstance(value, Mapping) else None
    return items if isinstance(items, list) else ()
