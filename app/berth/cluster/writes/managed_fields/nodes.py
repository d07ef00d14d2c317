"""Ownership of values by type: their fields, differences, merges, removals.

Each node stands for a type in a schema. Values are JSON; :data:`ABSENT` is one that is not there,
which is not the same as null. All methods leave their arguments alone and may share parts of them
in what they return. The rules are those of structured-merge-diff (package ``typed``).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

import msgspec

from berth.cluster.schemas.types import ABSENT
from berth.cluster.writes.managed_fields.field_sets import MEMBER, SELF, FieldSet

Value = Any


class UnidentifiedError(Exception):
    """An element of a list has none of the keys that would tell it apart from the others."""


class Difference:
    """What is not the same in two values: the fields that are new or other, and those that went."""

    __slots__ = ("changed", "removed")

    def __init__(self) -> None:
        self.changed: FieldSet = {}
        self.removed: FieldSet = {}

    def leaf(self, element: str, old: Value, new: Value) -> None:
        """Compare two values as wholes."""
        if new is ABSENT:
            self.removed[element] = MEMBER
        elif old is ABSENT or old != new:
            self.changed[element] = MEMBER

    def take(self, element: str, below: "Difference", old: Value, new: Value) -> None:
        """Add what is *below* an element, and the element itself if it came or went."""
        if below.changed:
            if old is ABSENT:
                below.changed[SELF] = MEMBER
            self.changed[element] = below.changed
        elif old is ABSENT:
            self.changed[element] = MEMBER
        if below.removed:
            if new is ABSENT:
                below.removed[SELF] = MEMBER
            self.removed[element] = below.removed
        elif new is ABSENT:
            self.removed[element] = MEMBER


class Node(Protocol):
    """The type of a value."""

    def fields(self, value: Value) -> FieldSet | None:
        """Return the fields that who applies *value* manages: below it, or
        :data:`~.field_sets.MEMBER` for itself. None: none."""
        ...

    def compare(self, element: str, old: Value, new: Value, found: Difference) -> None:
        """Add to *found* what is different in two values below *element*. One may be ABSENT."""
        ...

    def merge(self, live: Value, applied: Value) -> Value:
        """Return *live* with what *applied* says; ABSENT: nothing is left."""
        ...

    def remove(self, value: Value, gone: FieldSet) -> Value:
        """Return *value* without the fields below it that are in *gone*; ABSENT: none is left."""
        ...

    def with_named(self, fields: FieldSet) -> FieldSet:
        """Return *fields*, below a value of this type, with the named fields that they are in."""
        ...


class Leaf:
    """A scalar."""

    def __init__(self, kind: str = "") -> None:
        self.kind = kind
        """``string``, ``numeric``, ``boolean``; empty: any of them."""

    def fields(self, value: Value) -> FieldSet | None:
        return MEMBER

    def compare(self, element: str, old: Value, new: Value, found: Difference) -> None:
        # As Difference.leaf, which most of the time would be called from here.
        if new is ABSENT:
            found.removed[element] = MEMBER
        elif old is ABSENT or old != new:
            found.changed[element] = MEMBER

    def merge(self, live: Value, applied: Value) -> Value:
        return ABSENT if applied is None else applied

    def remove(self, value: Value, gone: FieldSet) -> Value:
        return value

    def with_named(self, fields: FieldSet) -> FieldSet:
        return fields


LEAF: Final = Leaf()


class Atomic(Leaf):
    """An object or map that has one owner as a whole; who removes something in it removes it."""

    def __init__(self, inner: Node | None = None) -> None:
        """*inner* is what else is known of it; None: it is any JSON."""
        super().__init__()
        self.inner = inner

    def remove(self, value: Value, gone: FieldSet) -> Value:
        return ABSENT


class AtomicList(Atomic):
    """A list that has one owner as a whole; *inner* is the type of its items."""


ANY_JSON: Final = Atomic()


class Struct:
    """An object with named fields, and perhaps others, of which :attr:`rest` is the type."""

    def __init__(self, *, rest: Node | None = None) -> None:
        self.known: dict[str, tuple[str, Node]] = {}
        """By name: the path element and the type. Filled in by who makes the node, as types may
        contain themselves."""
        self.zeros: Mapping[str, Value] = {}
        """What Go writes for fields that are not set: they are there even so."""
        self.rest = rest

    def _field(self, name: str) -> tuple[str, Node] | None:
        found = self.known.get(name)
        if found is None and self.rest is not None:
            return f"f:{name}", self.rest
        return found

    def fields(self, value: Value) -> FieldSet | None:
        if not value:
            return None
        found: FieldSet = {}
        for name, child in value.items():
            field = self._field(name)
            if field is None:
                continue
            element, node = field
            below = MEMBER if child is None or child == {} else node.fields(child)
            if below is None:
                below = None if name in self.known else MEMBER
            elif below and name not in self.known:
                below = {SELF: MEMBER, **below}
            if below is not None:
                found[element] = below
        return found or None

    def compare(self, element: str, old: Value, new: Value, found: Difference) -> None:
        if self._is_empty(old) and self._is_empty(new):
            found.leaf(element, old, new)
            return
        below = Difference()
        self.compare_fields(old, new, below)
        found.take(element, below, old, new)

    def _is_empty(self, value: Value) -> bool:
        return value is ABSENT or value is None or (not value and not self.zeros)

    def compare_fields(self, old: Value, new: Value, found: Difference) -> None:
        """Compare two objects; *found* is of what is below them."""
        known, zeros = self.known, self.zeros
        before, unset_before = (old, zeros) if isinstance(old, dict) else (NOTHING, NOTHING)
        after, unset_after = (new, zeros) if isinstance(new, dict) else (NOTHING, NOTHING)
        for name, child in after.items():
            was = before.get(name, ABSENT)
            if was is child or was == child:
                continue
            if was is ABSENT:
                was = unset_before.get(name, ABSENT)
            if field := known.get(name) or self._field(name):
                field[1].compare(field[0], was, child, found)
        if before.keys() != after.keys():
            for name, child in before.items():
                if name not in after and (field := self._field(name)):
                    field[1].compare(field[0], child, unset_after.get(name, ABSENT), found)
        if unset_before is not unset_after:  # one of the two objects is absent
            for name, zero in zeros.items():
                if name not in before and name not in after:
                    element, node = known[name]
                    there = bool(unset_before)
                    node.compare(
                        element, zero if there else ABSENT, ABSENT if there else zero, found
                    )

    def merge(self, live: Value, applied: Value) -> Value:
        if not isinstance(live, dict) or not live:
            live = {}
            if not applied:
                return ABSENT if applied is None else applied
        if not applied:
            return live
        merged = live.copy()
        for name, child in applied.items():
            field = self._field(name)
            if field is None:
                continue
            value = field[1].merge(live.get(name, ABSENT), child)
            if value is ABSENT:
                merged.pop(name, None)
            else:
                merged[name] = value
        return merged or ABSENT

    def remove(self, value: Value, gone: FieldSet) -> Value:
        if not isinstance(value, dict) or not value:
            return ABSENT
        left = {}
        for name, child in value.items():
            field = self._field(name)
            below = gone.get(f"f:{name}")
            if below is None or field is None:
                left[name] = child
            elif below and SELF not in below:
                rest = field[1].remove(child, below)
                if rest is not ABSENT:
                    left[name] = rest
        return left or ABSENT

    def with_named(self, fields: FieldSet) -> FieldSet:
        found: FieldSet = {}
        for element, below in fields.items():
            field = self._field(element[2:]) if below else None
            if field is None:
                found[element] = below
                continue
            inside = field[1].with_named(below)
            is_named = element[2:] in self.known
            found[element] = {SELF: MEMBER, **inside} if is_named else inside
        return found


class Map(Struct):
    """Any keys, with values of one type."""

    def __init__(self, value: Node) -> None:
        super().__init__(rest=value)


class Items:
    """A list in which each item has owners: by its *keys*, or by its value, when there are none."""

    def __init__(
        self, item: Node, keys: tuple[str, ...] = (), defaults: Mapping[str, Value] | None = None
    ) -> None:
        """*defaults* are what keys are where an item does not say them."""
        self.item = item
        self.keys = tuple(sorted(keys))
        self.defaults = defaults or {}
        self.key = keys[0] if len(keys) == 1 else ""
        self._known: dict[str, str] = {}
        """Path elements of items with one key that is a text, as most are."""

    def element_of(self, item: Value) -> str | None:
        """Return the path element of an item; None when it has none, as null has not.

        Raises UnidentifiedError for an object without any of the keys.
        """
        if not self.keys:
            if item is None or isinstance(item, dict | list):
                return None
            return "v:" + _json(item)
        if not isinstance(item, dict):
            return None
        text = item.get(self.key) if self.key else None
        if type(text) is not str:
            return self._element(item)
        element = self._known.get(text)
        if element is None:
            element = self._element(item)
            if len(self._known) < MOST_KNOWN and len(text) < LONGEST_KNOWN:
                self._known[text] = element
        return element

    def _element(self, item: Value) -> str:
        said = {key: item.get(key, self.defaults.get(key, ABSENT)) for key in self.keys}
        said = {key: value for key, value in said.items() if value is not ABSENT}
        if not said:
            raise UnidentifiedError
        return "k:" + _json(said)

    def elements(self, items: Value) -> Iterator[tuple[str, Value]]:
        """Yield the items that can be told apart, with their path elements."""
        for item in items or () if isinstance(items, list) else ():
            element = self.element_of(item)
            if element is not None:
                yield element, item

    def by_element(self, items: Value) -> dict[str, list[Value]]:
        """Return the items by element; what is already stored may have some twice."""
        found: dict[str, list[Value]] = {}
        for item in items if isinstance(items, list) else ():
            element = self.element_of(item)
            if element is None:
                continue
            if element in found:
                found[element].append(item)
            else:
                found[element] = [item]
        return found

    def fields(self, value: Value) -> FieldSet | None:
        found: FieldSet = {}
        for element, items in self.by_element(value).items():
            below = self.item.fields(items[0]) if len(items) == 1 else None
            found[element] = {SELF: MEMBER, **below} if below else MEMBER
        return found or None

    def compare(self, element: str, old: Value, new: Value, found: Difference) -> None:
        if (old is ABSENT or not old) and (new is ABSENT or not new):
            found.leaf(element, old, new)
            return
        below = Difference()
        before, after = self.by_element(old), self.by_element(new)
        for item, there in after.items():
            known = before.get(item, NO_ITEMS)
            if known == there:
                continue
            if len(known) > 1 or len(there) > 1:
                below.leaf(item, known or ABSENT, there)
            else:
                self.item.compare(item, known[0] if known else ABSENT, there[0], below)
        for item, known in before.items():
            if item in after:
                continue
            if len(known) > 1:
                below.leaf(item, known, ABSENT)
            else:
                self.item.compare(item, known[0], ABSENT, below)
        found.take(element, below, old, new)

    def merge(self, live: Value, applied: Value) -> Value:
        if not applied and (live is ABSENT or not live):
            return ABSENT if applied is None else applied
        known, said = self.by_element(live), self.by_element(applied)
        merged = [
            self._merged(known.get(element, NO_ITEMS), said.get(element), item)
            for element, item in self._order(live, applied)
        ]
        return [each for each in merged if each is not ABSENT] or ABSENT

    def _merged(self, known: list[Value], said: list[Value] | None, item: Value) -> Value:
        if said is None:
            return item
        if len(known) != 1:
            return said[0]
        return self.item.merge(known[0], said[0])

    def _order(self, live: Value, applied: Value) -> Iterator[tuple[str, Value]]:
        """Yield the items of both lists, each element once.

        The applied ones come in their order. The others come as early as they can, but not before
        an applied one that they follow in the live list.
        """
        mine, theirs = list(self.elements(applied)), list(self.elements(live))
        wanted, there = {each[0] for each in mine}, {their[0] for their in theirs}
        shared = iter([element for element, _ in mine if element in there])
        next_shared = next(shared, None)
        position = 0
        for element, item in mine:
            while position < len(theirs) and theirs[position][0] != next_shared:
                if theirs[position][0] not in wanted:
                    yield theirs[position]
                position += 1
            yield element, item
            if element == next_shared:
                next_shared = next(shared, None)
                position += 1
        yield from (their for their in theirs[position:] if their[0] not in wanted)

    def remove(self, value: Value, gone: FieldSet) -> Value:
        left = []
        for item in value if isinstance(value, list) else ():
            below = gone.get(self.element_of(item) or "")
            if below is None:
                left.append(item)
            elif below and SELF not in below:
                rest = self.item.remove(item, below)
                if rest is not ABSENT:
                    left.append(rest)
        return left or ABSENT

    def with_named(self, fields: FieldSet) -> FieldSet:
        return {
            element: self.item.with_named(below) if below else below
            for element, below in fields.items()
        }


MOST_KNOWN: Final = 1000
LONGEST_KNOWN: Final = 100
"""How many keys of items are remembered for each type, and of how many characters."""

NO_ITEMS: Final[list[Value]] = []


class Deduced:
    """A value without a schema: objects are maps of such values, all else has one owner."""

    def fields(self, value: Value) -> FieldSet | None:
        return self._node(value).fields(value)

    def compare(self, element: str, old: Value, new: Value, found: Difference) -> None:
        if isinstance(old, dict) is isinstance(new, dict) or old is ABSENT or new is ABSENT:
            self._node(new if old is ABSENT else old).compare(element, old, new, found)
            return
        found.changed[element] = MEMBER
        if isinstance(old, dict) and old:
            below = Difference()
            DEDUCED_MAP.compare_fields(old, ABSENT, below)
            found.removed[element] = below.removed
        elif isinstance(new, dict) and new:
            below = Difference()
            DEDUCED_MAP.compare_fields(ABSENT, new, below)
            found.changed[element] = {SELF: MEMBER, **below.changed}

    def merge(self, live: Value, applied: Value) -> Value:
        if isinstance(live, dict) and isinstance(applied, dict):
            return DEDUCED_MAP.merge(live, applied)
        return LEAF.merge(live, applied)

    def remove(self, value: Value, gone: FieldSet) -> Value:
        return self._node(value).remove(value, gone)

    def with_named(self, fields: FieldSet) -> FieldSet:
        return fields

    def _node(self, value: Value) -> Node:
        if isinstance(value, dict):
            return DEDUCED_MAP
        return ANY_JSON if isinstance(value, list) else LEAF


DEDUCED: Final = Deduced()
DEDUCED_MAP: Final = Map(DEDUCED)


NOTHING: Final[Mapping[str, Value]] = {}


def _json(value: Value) -> str:
    return msgspec.json.encode(value).decode()
