"""YAML of others: parsed by libyaml where it is there, and refused when a small text stands for
much.

PyYAML shares what an alias stands for, but whoever writes the value out again writes it each time;
and its parsers recurse, libyaml's without a limit. So the events of a text are counted before
anything is made of them.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

import yaml

DEPTH_LIMIT: Final = 200
"""Objects and arrays inside each other. The API server takes 10,000; Python's encoders and decoders
give up at 1,000 frames, of which those that copy take two or three per level. No kind of Kubernetes
comes near it."""

ALIAS_BYTES: Final = 3 * 1024 * 1024
"""Characters of text that aliases may repeat: as much as a request may have."""

FEW_NODES, MANY_NODES = 400_000, 4_000_000
HIGH_SHARE, LOW_SHARE = 0.99, 0.10
"""Of all nodes, the share that may come from aliases: nearly all in small documents, few in large
ones. These and the next are go-yaml's, which the API server and kubectl read with."""
UNSUSPICIOUS_ALIASED, UNSUSPICIOUS_NODES = 100, 1_000

SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's, ten times as fast as PyYAML's own, which is used where PyYAML was built without."""

VALUE: Final = "tag:yaml.org,2002:value"
"""The tag of a plain ``=``."""


class _Loader(SafeLoader):  # type: ignore[misc]  # it depends on how PyYAML was built
    """YAML as Kubernetes reads it, to become JSON: times stay strings, and so does ``=``."""


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag not in ("tag:yaml.org,2002:timestamp", VALUE)
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_constructor(VALUE, yaml.SafeLoader.construct_yaml_str)


def load(text: str | bytes) -> Any:
    """Return the value of a text of one document; raises yaml.YAMLError when it cannot be read."""
    check(text)
    try:
        return yaml.load(text, Loader=_Loader)
    except (ValueError, OverflowError, AttributeError, RecursionError, TypeError) as exc:
        raise _unreadable(exc) from exc


def load_all(text: str | bytes) -> list[Any]:
    """Return the values of all documents of a text; raises yaml.YAMLError."""
    check(text)
    try:
        return list(yaml.load_all(text, Loader=_Loader))
    except (ValueError, OverflowError, AttributeError, RecursionError, TypeError) as exc:
        raise _unreadable(exc) from exc


def check(text: str | bytes) -> None:
    """Raise yaml.YAMLError when *text* is no YAML, too deep, or much larger than it looks."""
    counter = _Counter()
    try:
        for event in _events(text):
            counter.count(event)
    except UnicodeDecodeError as exc:
        raise _unreadable(exc) from exc


def repeated_keys(text: str | bytes) -> list[str]:
    """Return what go-yaml says of keys that an object in *text* has twice, with their lines.

    The text is one that :func:`load` could read.
    """
    return list(_repeated(yaml.compose(text, Loader=_Loader), set()))


def _repeated(node: yaml.Node | None, seen: set[int]) -> Iterator[str]:
    if id(node) in seen:  # by an alias
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated(item, seen)
    elif isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            yield from _repeated(value, seen)
            name = str(key.value)
            if name in keys:
                line = value.start_mark.line + 1
                yield f"line {line}: key {json.dumps(name)} already set in map"
            keys.add(name)


def depth_of(value: Any) -> int:
    """Return how many objects and arrays are inside each other; 0 for other values."""
    return depth_and_size(value)[0]


def depth_and_size(value: Any) -> tuple[int, int]:
    """Return how deep a value is, and how many values are in all its objects and arrays."""
    depth, size, level = 0, 0, [value] if isinstance(value, dict | list) else []
    while level:
        depth += 1
        size += sum(map(len, level))
        level = [
            child
            for value in level
            for child in (value.values() if isinstance(value, dict) else value)
            if isinstance(child, dict | list)
        ]
    return depth, size


def _events(text: str | bytes) -> Iterator[yaml.Event]:
    return iter(yaml.parse(text, Loader=SafeLoader))


def _unreadable(error: Exception) -> yaml.YAMLError:
    """A value that its tag does not fit, such as ``!!timestamp x``: PyYAML lets them out raw."""
    return yaml.constructor.ConstructorError(None, None, f"{type(error).__name__}: {error}")


class _Size:
    """How large a node is with its aliases written out."""

    __slots__ = ("aliased", "anchor", "characters", "depth", "nodes")

    def __init__(self, anchor: str | None = None) -> None:
        self.anchor = anchor
        self.nodes = 1
        self.aliased = 0
        """Of the nodes, those that stand in an alias."""
        self.characters = 0
        """Of text in aliases, and in what may become one."""
        self.depth = 0

    def add(self, child: "_Size") -> None:
        self.nodes += child.nodes
        self.aliased += child.aliased
        self.characters += child.characters
        self.depth = max(self.depth, child.depth + 1)


class _Counter:
    """Adds up the nodes of documents, event by event."""

    def __init__(self) -> None:
        self._open: list[_Size] = []
        self._anchors: dict[str, _Size] = {}
        self._repeated = 0

    def count(self, event: yaml.Event) -> None:
        match event:
            case yaml.DocumentStartEvent():
                self._anchors, self._repeated = {}, 0
            case yaml.AliasEvent():
                self._close(self._alias(event))
            case yaml.ScalarEvent():
                size = _Size(event.anchor)
                size.characters = len(event.value)
                self._close(size)
            case yaml.CollectionStartEvent():
                size = _Size(event.anchor)
                self._open.append(size)
                if len(self._open) > DEPTH_LIMIT:
                    raise _too_much(f"it is nested deeper than {DEPTH_LIMIT} levels", event)
            case yaml.CollectionEndEvent():
                self._close(self._open.pop())

    def _alias(self, event: yaml.AliasEvent) -> _Size:
        if any(mapping.anchor == event.anchor for mapping in self._open):
            raise _too_much(f"anchor {event.anchor!r} value contains itself", event)
        target = self._anchors.get(event.anchor or "")
        if target is None:
            raise _too_much(f"unknown anchor {event.anchor!r} referenced", event)
        self._repeated += target.characters
        size = _Size()
        size.nodes = size.aliased = target.nodes
        size.characters, size.depth = target.characters, target.depth
        if self._repeated > ALIAS_BYTES or len(self._open) + size.depth > DEPTH_LIMIT:
            raise _too_much("document contains excessive aliasing", event)
        return size

    def _close(self, size: _Size) -> None:
        if size.anchor is not None:
            self._anchors[size.anchor] = size
        if self._open:
            self._open[-1].add(size)
        suspicious = size.aliased > UNSUSPICIOUS_ALIASED and size.nodes > UNSUSPICIOUS_NODES
        if suspicious and size.aliased > size.nodes * _allowed_share(size.nodes):
            raise _too_much("document contains excessive aliasing", None)


def _allowed_share(nodes: int) -> float:
    if nodes <= FEW_NODES:
        return HIGH_SHARE
    if nodes >= MANY_NODES:
        return LOW_SHARE
    part = (nodes - FEW_NODES) / (MANY_NODES - FEW_NODES)
    return HIGH_SHARE - (HIGH_SHARE - LOW_SHARE) * part


def _too_much(problem: str, event: yaml.Event | None) -> yaml.YAMLError:
    mark: Any = None if event is None else event.start_mark
    return yaml.composer.ComposerError(None, None, problem, mark)
