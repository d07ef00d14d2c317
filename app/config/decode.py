"""Bytes of YAML or JSON to plain values, keeping what the usual parsers lose: duplicate fields.

Scalars mean what they mean to Kubernetes, whose YAML becomes JSON before it is decoded: no dates,
no base-60 numbers, keys are strings, and a whole float such as ``1e3`` is an integer.
"""

import json
import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import yaml

from app.config import errors
from app.config.errors import ConfigError

_SCALARS = {
    f"tag:yaml.org,2002:{name}": (re.compile(pattern), list(first))
    for name, pattern, first in [
        ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
        (
            "bool",
            r"^(?:true|True|TRUE|false|False|FALSE|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)$",
            "tTfFyYnNoO",
        ),
        ("int", r"^[-+]?(?:0b[01]+|0x[0-9a-fA-F]+|0(?:o?[0-7]+)?|[1-9][0-9]*)$", "-+0123456789"),
        (
            "float",
            r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
            r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
            "-+.0123456789",
        ),
        ("merge", r"^<<$", "<"),
    ]
}
_STRING = "tag:yaml.org,2002:str"
_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """Resolves plain scalars by :data:`_SCALARS` alone."""


_Loader.yaml_implicit_resolvers = {}
for _tag, (_pattern, _first) in _SCALARS.items():
    _Loader.add_implicit_resolver(_tag, _pattern, _first)


@dataclass(frozen=True, slots=True)
class Document:
    """One decoded document."""

    value: Any
    duplicates: tuple[str, ...]
    """One problem per field that the document has more than once."""


def document(text: str | bytes, *, source: str) -> Document:
    """Decode one YAML or JSON document; of duplicate fields the last one counts.

    Raises ConfigError when *text* is neither.
    """
    try:
        content = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        if content.lstrip().startswith("{"):
            try:
                return _from_json(content)
            except json.JSONDecodeError:
                pass  # YAML has mappings in braces too, and its parser's message is as good
        return _from_yaml(content)
    except UnicodeDecodeError as error:
        raise ConfigError(source, [f"not UTF-8: {error}"]) from error
    except yaml.YAMLError as error:
        raise ConfigError(source, [f"not YAML: {_one_line(error)}"]) from error
    except (ValueError, OverflowError) as error:  # characters and numbers beyond Python's
        raise ConfigError(source, [f"not YAML: {error}"]) from error
    except RecursionError as error:
        raise ConfigError(source, ["nested too deeply"]) from error


def _one_line(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return " ".join(str(error).split())


class _Fields(list[tuple[str, Any]]):
    """A JSON object before its names are made unique."""


def _from_json(content: str) -> Document:
    duplicates: list[str] = []

    def plain(value: Any, path: str) -> Any:
        if isinstance(value, _Fields):
            fields: dict[str, Any] = {}
            for name, field in value:
                where = errors.join(path, name)
                if name in fields:
                    duplicates.append(errors.duplicate_field(where))
                fields[name] = plain(field, where)
            return fields
        if isinstance(value, list):
            return [plain(item, errors.join(path, i)) for i, item in enumerate(value)]
        return value

    value = plain(json.loads(content, object_pairs_hook=_Fields), "")
    return Document(value, tuple(duplicates))


def _from_yaml(content: str) -> Document:
    loader = _Loader(content)
    try:
        root = loader.get_single_node()
        reader = _Reader(loader)
        value = None if root is None else reader.read(root, "")
    finally:
        loader.dispose()
    return Document(value, tuple(reader.duplicates))


class _Reader:
    """Turns the nodes of one document into values."""

    def __init__(self, loader: _Loader) -> None:
        self.duplicates: list[str] = []
        self._loader = loader
        self._done: dict[int, Any] = {}
        """Values by the identity of their nodes: an alias is the node of its anchor."""
        self._open: set[int] = set()

    def read(self, node: yaml.Node, path: str) -> Any:
        if id(node) in self._open:
            raise yaml.constructor.ConstructorError(
                None, None, "found an alias inside of what it stands for", node.start_mark
            )
        if id(node) not in self._done:
            self._open.add(id(node))
            self._done[id(node)] = self._value(node, path)
            self._open.remove(id(node))
        return self._done[id(node)]

    def _value(self, node: yaml.Node, path: str) -> Any:
        match node:
            case yaml.MappingNode(tag="tag:yaml.org,2002:map"):
                return self._mapping(node, path)
            case yaml.SequenceNode(tag="tag:yaml.org,2002:seq"):
                return [self.read(n, errors.join(path, i)) for i, n in enumerate(node.value)]
            case yaml.ScalarNode() if node.tag in _SCALARS or node.tag == _STRING:
                return self._scalar(node)
            case _:
                raise yaml.constructor.ConstructorError(
                    None, None, f"found a value of the type {node.tag!r}", node.start_mark
                )

    def _mapping(self, node: yaml.MappingNode, path: str) -> dict[str, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "found a field whose name is not a scalar", key.start_mark
                )
            if key.value in seen and key.tag != _MERGE:
                self.duplicates.append(errors.duplicate_field(errors.join(path, key.value)))
            seen.add(key.value)
        self._loader.flatten_mapping(node)  # puts the fields of merge keys before its own
        return {k.value: self.read(v, errors.join(path, k.value)) for k, v in node.value}

    def _scalar(self, node: yaml.ScalarNode) -> Hashable:
        if node.tag == _MERGE:
            return str(node.value)
        try:
            value: Hashable = self._loader.construct_object(node)
        except ValueError as error:  # a tag such as !!int before what is not one
            raise yaml.constructor.ConstructorError(
                None, None, str(error), node.start_mark
            ) from error
        return int(value) if isinstance(value, float) and value.is_integer() else value
