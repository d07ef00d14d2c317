"""Bytes of YAML or JSON to plain values, keeping what the usual parsers lose: duplicate fields.

Scalars mean what they mean to Kubernetes, whose YAML becomes JSON before it is decoded: no dates,
no base-60 numbers, keys are strings, and a whole float such as ``1e3`` is an integer.
"""

import json
import re
from collections.abc import Hashable, Iterator
from typing import Any, Final, TypeAlias

import msgspec
import yaml

from berth.kube.field_errors import join
from berth.scheduler.config import errors
from berth.scheduler.config.errors import ConfigError

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

MOST_VALUES: Final = 100_000
"""In a YAML document, each as often as aliases and merges repeat it."""
MOST_DUPLICATES: Final = 100
"""Duplicate fields that are reported."""


class _Loader(yaml.SafeLoader):
    """Resolves plain scalars by :data:`_SCALARS` alone."""


_Loader.yaml_implicit_resolvers = {}
for _tag, (_pattern, _first) in _SCALARS.items():
    _Loader.add_implicit_resolver(_tag, _pattern, _first)


class Document(msgspec.Struct, frozen=True):
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


Path: TypeAlias = tuple["Path", str | int] | None
"""Where a value is: its container's place and the step into it. Written out only for a problem,
for the names of fields may be long."""


class _Duplicates(list[str]):
    """One problem per duplicate field, up to :data:`MOST_DUPLICATES`."""

    def add(self, path: Path) -> None:
        if len(self) == MOST_DUPLICATES:
            return
        steps = []
        while path is not None:
            path, step = path
            steps.append(step)
        self.append(errors.duplicate_field(join("", *reversed(steps))))


def _from_json(content: str) -> Document:
    duplicates = _Duplicates()

    def plain(value: Any, path: Path) -> Any:
        if isinstance(value, _Fields):
            fields: dict[str, Any] = {}
            for name, field in value:
                if name in fields:
                    duplicates.add((path, name))
                fields[name] = plain(field, (path, name))
            return fields
        if isinstance(value, list):
            return [plain(item, (path, i)) for i, item in enumerate(value)]
        return value

    value = plain(json.loads(content, object_pairs_hook=_Fields), None)
    return Document(value, tuple(duplicates))


def _from_yaml(content: str) -> Document:
    loader = _Loader(content)
    try:
        root = loader.get_single_node()
        reader = _Reader(loader)
        value = None if root is None else reader.read(root, None)
    finally:
        loader.dispose()
    return Document(value, tuple(reader.duplicates))


class _Reader:
    """Turns the nodes of one document into values."""

    def __init__(self, loader: _Loader) -> None:
        self.duplicates = _Duplicates()
        self._loader = loader
        self._done: dict[int, tuple[Any, int]] = {}
        """Values, and how many are in each, by the identity of their nodes: an alias is the node of
        its anchor."""
        self._open: set[int] = set()
        self._count = 0

    def read(self, node: yaml.Node, path: Path) -> Any:
        if id(node) in self._open:
            raise _refusal("found an alias inside of what it stands for", node)
        if id(node) in self._done:
            value, size = self._done[id(node)]
            self._spend(size, node)
            return value
        before = self._count
        self._spend(1, node)
        self._open.add(id(node))
        value = self._value(node, path)
        self._open.remove(id(node))
        self._done[id(node)] = value, self._count - before
        return value

    def _spend(self, values: int, node: yaml.Node) -> None:
        self._count += values
        if self._count > MOST_VALUES:
            raise _refusal(f"found more than {MOST_VALUES} values, repeated ones included", node)

    def _value(self, node: yaml.Node, path: Path) -> Any:
        match node:
            case yaml.MappingNode(tag="tag:yaml.org,2002:map"):
                return self._mapping(node, path)
            case yaml.SequenceNode(tag="tag:yaml.org,2002:seq"):
                return [self.read(item, (path, i)) for i, item in enumerate(node.value)]
            case yaml.ScalarNode() if node.tag in _SCALARS or node.tag == _STRING:
                return self._scalar(node)
            case _:
                raise _refusal(f"found a value of the type {node.tag!r}", node)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        """Read a mapping. What merge keys bring comes before its own fields, which win."""
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _refusal("found a field whose name is not a scalar", key)
            if key.tag == _MERGE:
                for fields in self._merged(value, path):
                    self._spend(len(fields), value)
                    merged |= fields
                continue
            if key.value in own:
                self.duplicates.add((path, key.value))
            own[key.value] = self.read(value, (path, key.value))
        return merged | own

    def _merged(self, node: yaml.Node, path: Path) -> Iterator[dict[str, Any]]:
        """Yield the mappings that *node* has merged; of equal fields in a list the first wins."""
        several = isinstance(node, yaml.SequenceNode)
        for each in reversed(node.value) if several else (node,):
            if not isinstance(each, yaml.MappingNode):
                raise _refusal("found what is no mapping, to be merged", each)
            yield self.read(each, path)

    def _scalar(self, node: yaml.ScalarNode) -> Hashable:
        if node.tag == _MERGE:
            return str(node.value)
        try:
            value: Hashable = self._loader.construct_object(node)
        except ValueError as error:  # a tag such as !!int before what is not one
            raise _refusal(str(error), node) from error
        return int(value) if isinstance(value, float) and value.is_integer() else value


def _refusal(problem: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
