"""Equal parts of objects, kept once.

Pods of a workload have the same containers, tolerations and labels, and those that started in the
same second have the same conditions: of 5 kB that a decoded pod takes, its own are two.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)

MOST: Final = 5_000
"""Values remembered of each field, before all of them are forgotten."""

POD_PARTS: Final[Mapping[str, Sequence[str]]] = {
    "metadata": ("namespace", "labels", "creation_timestamp", "owner_references"),
    "spec": (
        "node_name",
        "containers",
        "init_containers",
        "node_selector",
        "affinity",
        "tolerations",
        "topology_spread_constraints",
    ),
    "status": ("conditions", "start_time", "container_statuses", "init_container_statuses"),
}
"""What many pods have in common."""

NODE_PARTS: Final[Mapping[str, Sequence[str]]] = {
    "metadata": ("labels", "annotations"),
    "status": ("images",),
}
"""What seldom changes from one version of a node to the next, and is large."""

_encode = msgspec.json.Encoder().encode


def sharing(
    decode: Callable[[bytes], T], parts: Mapping[str, Sequence[str]]
) -> Callable[[bytes], T]:
    """Return a *decode* that makes equal objects, whose equal *parts* are the same.

    *parts* are fields, by the field of the object that has the struct that has them. They are
    texts, or values of structs, whose equality is that of their JSON. They must not be changed.
    """
    shared = [
        (holder, [(field, dict[Any, Any]()) for field in fields])
        for holder, fields in parts.items()
    ]

    def decode_shared(data: bytes) -> T:
        obj = decode(data)
        for holder_field, fields in shared:
            holder = getattr(obj, holder_field)
            for field, known in fields:
                value = getattr(holder, field)
                if not value:
                    continue  # also of a struct that is a default: it has nothing to replace
                key = value if type(value) is str else _encode(value)
                one = known.get(key)
                if one is not None:
                    msgspec.structs.force_setattr(holder, field, one)
                    continue
                if len(known) >= MOST:
                    known.clear()
                known[key] = value
        return obj

    return decode_shared


def share(known: T, other: T, parts: Mapping[str, Sequence[str]]) -> None:
    """Have *other* hold those *parts* of *known* that are equal to its own."""
    for holder_field, fields in parts.items():
        before, after = getattr(known, holder_field), getattr(other, holder_field)
        for field in fields:
            old, new = getattr(before, field), getattr(after, field)
            if old is not new and old == new:
                msgspec.structs.force_setattr(after, field, old)
