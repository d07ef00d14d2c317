"""``kubectl get``'s tables: stored objects in, a ``meta.k8s.io/v1`` Table out.

What the columns say of an object is computed once per object: it is kept beside it, ages as times.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from berth.cluster import views
from berth.cluster.columns.cells import UNKNOWN, Since
from berth.cluster.reading import UNREADABLE
from berth.cluster.resources import Column, Object, ResourceType
from berth.cluster.storage.stored import Stored
from berth.cluster.times import seconds_of
from berth.runtime.duration import human_duration

GROUP_VERSION = "meta.k8s.io/v1"
"""What Tables are of; ``meta.k8s.io/v1beta1`` for clients that know no other."""

INCLUDE_OBJECT = ("Metadata", "Object", "None")
"""The values of the query parameter ``includeObject``; the first is the default."""

AGES: Final = 10_000
"""Ages in whole seconds whose text is remembered: objects are often made together."""


class Age(NamedTuple):
    """A cell that says how long ago something was."""

    since: float
    """Unix seconds."""
    text: str
    """With braces for the age."""

    def at(self, now: float) -> str:
        """Return the cell at *now*."""
        age = human_age(now - self.since)
        return age if self.text == "{}" else self.text.format(age)


def human_age(seconds: float) -> str:
    """Return an age as kubectl writes it, which counts whole seconds."""
    return _age_of(int(seconds) if seconds > 0 else max(seconds, -2))


_age_of = lru_cache(AGES)(human_duration)


def as_table(
    resource: ResourceType,
    rows: Sequence[bytes],
    *,
    list_meta: Object,
    with_columns: bool = True,
    group_version: str = GROUP_VERSION,
) -> Object:
    """Return a Table of :func:`row`\\ s, to be encoded as JSON.

    *list_meta* is the metadata of the list, or :func:`table_meta` when the table is one object. A
    watch says ``with_columns=False`` after its first event: the client remembers them.
    """
    columns = resource.columns
    return {
        "kind": "Table",
        "apiVersion": group_version,
        "metadata": list_meta,
        "columnDefinitions": [definition(column) for column in columns] if with_columns else None,
        "rows": [msgspec.Raw(each) for each in rows],
    }


def row(
    resource: ResourceType,
    stored: Stored,
    include_object: str,
    now: float,
    group_version: str = GROUP_VERSION,
) -> bytes:
    """Return the JSON of the row of one object.

    *include_object* is one of :data:`INCLUDE_OBJECT`, and *now* is in unix seconds.
    """
    cells = b"".join(
        [_encode(cell.at(now)) if type(cell) is Age else cell for cell in _cells(resource, stored)]
    )
    match include_object:
        case "None":
            shown = b"null"
        case "Object":
            shown = views.as_json(resource, stored)
        case _:
            shown = views.as_partial(resource, stored, group_version)
    return b'{"cells":[%b],"object":%b}' % (cells, shown)


def table_meta(stored: Stored) -> Object:
    """Return the metadata of a table that is not a list: the version of its one object."""
    return {"resourceVersion": str(stored.version)} if stored.version else {}


def definition(column: Column) -> Object:
    """Return the TableColumnDefinition."""
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _cells(resource: ResourceType, stored: Stored) -> Sequence[Any]:
    """Return the JSON of what the columns say, with an :class:`Age` where it depends on the time.

    Beside ages there are only bytes, with the commas.
    """
    known = stored.cells
    if known is None or known[0] is not resource.columns:
        obj = views.digest_of(resource, stored)
        cells = _joined([_value(column, obj) for column in resource.columns])
        known = stored.cells = resource.columns, cells
    return known[1]


def _value(column: Column, obj: Object) -> Any:
    try:
        return _cell(column.value(obj))
    except UNREADABLE:  # one such object must not hide the others of a list
        return UNKNOWN


def _joined(cells: Sequence[Any]) -> tuple[bytes | Age, ...]:
    """Encode what lies between the ages."""
    pieces: list[bytes | Age] = []
    gathered: list[Any] = []
    for cell in cells:
        if type(cell) is not Age:
            gathered.append(cell)
            continue
        before = b"," if pieces else b""
        if gathered:
            before += _encode(gathered)[1:-1] + b","
        if before:
            pieces.append(before)
        pieces.append(cell)
        gathered = []
    if gathered:
        pieces.append((b"," if pieces else b"") + _encode(gathered)[1:-1])
    return tuple(pieces)


_encode = msgspec.json.Encoder().encode


def _cell(value: Any) -> Any:
    if not isinstance(value, Since):
        return value
    if not value.timestamp:
        return value.text.format(UNKNOWN)
    return Age(seconds_of(value.timestamp), value.text)
