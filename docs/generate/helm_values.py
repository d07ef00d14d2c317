"""``docs/reference/helm-values.md``: the chart's values, from ``values.yaml`` and its schema.

A value is described by the comment above it, which begins with ``# --``. Its default is the one in
the file; its type is the schema's.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from docs.generate import markdown

CHART: Final = Path(__file__).parents[2] / "helm" / "berth"
INTRODUCTION = """\
The chart is in `helm/berth`; `helm/berth/README.md` explains how to use it. Helm checks all values
against `helm/berth/values.schema.json` and rejects unknown names."""

_KEY: Final = re.compile(r"^( *)([A-Za-z]\w*):")
_NOTE: Final = re.compile(r"^ *# ?(-- ?)?(.*)$")


class Value(NamedTuple):
    path: str
    type: str
    default: str
    text: str


def page() -> str:
    return markdown.page(
        "Helm values",
        INTRODUCTION,
        markdown.table(
            ("Value", "Type", "Default", "Meaning"),
            [
                (
                    markdown.code(value.path),
                    markdown.plain(value.type),
                    markdown.code(value.default),
                    markdown.plain(value.text),
                )
                for value in values()
            ],
        ),
        source="helm/berth/values.yaml",
    )


def values() -> Iterator[Value]:
    """Yield every value that has a description."""
    text = (CHART / "values.yaml").read_text("utf-8")
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    defaults = yaml.safe_load(text)
    for path, description in _described(text):
        steps = path.split(".")
        default = defaults
        for step in steps:
            default = default[step]
        yield Value(path, _type(schema, steps), json.dumps(default), description)


def _described(text: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each value below a ``# --`` comment, with that comment."""
    stack: list[tuple[int, str]] = []
    note: list[str] = []
    for line in text.splitlines():
        key = _KEY.match(line)
        if key:
            depth = len(key[1])
            stack = [(at, name) for at, name in stack if at < depth] + [(depth, key[2])]
            if note:
                yield ".".join(name for _, name in stack), " ".join(note)
            note = []
        elif found := _NOTE.match(line):
            if found[1]:
                note = [found[2]]
            elif note:
                note.append(found[2].strip())


def _type(schema: dict[str, Any], steps: list[str]) -> str:
    node = schema
    for step in steps:
        node = _resolved(schema, node["properties"][step])
    if "enum" in node:
        return ", ".join(json.dumps(each).strip('"') or '""' for each in node["enum"])
    kind = node.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _resolved(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        found: Any = schema
        for step in node["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        node = found
    return node
