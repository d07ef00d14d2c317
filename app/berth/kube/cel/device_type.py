"""Types of variables that are declared, with the greatest sizes that the API lets through.

Here is that of ``device``; those of custom resources follow from their schemas.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from berth.kube.cel.sizes import Size

VARIABLE: Final = "device"

KEYS: Final = "@keys"
VALUES: Final = "@values"
ITEMS: Final = "@items"
INDICES: Final = "@indices"

Path = tuple[str, ...]
"""How an expression is reached from a variable: fields, or one of the four above."""

MAX_ATTRIBUTES: Final = 32
"""How many attributes and capacities a device may have (resource.k8s.io/v1)."""
MAX_VALUE_LENGTH: Final = 64
MAX_ATTRIBUTE_VALUES: Final = 48
"""How many values the lists of a device may have together."""
MAX_DOMAIN_LENGTH: Final = 63
MAX_ID_LENGTH: Final = 32
MAX_DRIVER_LENGTH: Final = 63


@dataclass(frozen=True, slots=True, eq=False)
class DeclaredType:
    """A kind as in :class:`~berth.kube.cel.ast.Type`, and at most how large its values are."""

    kind: str
    size: int = 0
    key: "DeclaredType | None" = None
    value: "DeclaredType | None" = None
    fields: "Mapping[str, DeclaredType]" = field(default_factory=dict)


def _map_of(value: DeclaredType, key_length: int) -> DeclaredType:
    return DeclaredType("map", MAX_ATTRIBUTES, DeclaredType("string", key_length), value)


ATTRIBUTE: Final = DeclaredType("dyn", MAX_VALUE_LENGTH)
"""A value, or a list of at most that many."""

DEVICE: Final = DeclaredType(
    "struct",
    fields={
        "driver": DeclaredType("string", MAX_DRIVER_LENGTH),
        "allowMultipleAllocations": DeclaredType("bool", 1),
        "attributes": _map_of(_map_of(ATTRIBUTE, MAX_ID_LENGTH), MAX_DOMAIN_LENGTH),
        "capacity": _map_of(_map_of(DeclaredType("quantity"), MAX_ID_LENGTH), MAX_DOMAIN_LENGTH),
    },
)


Variables = Mapping[str, DeclaredType]

OF_SELECTORS: Final[Variables] = {VARIABLE: DEVICE}


def declared_type(path: Path, variables: Variables = OF_SELECTORS) -> DeclaredType | None:
    """Return the type of what is found at *path*, None if that is of no variable."""
    return _follow(path, variables, any_name=True)


def declared_size(path: Path, variables: Variables = OF_SELECTORS) -> Size | None:
    """Return the size of what is found at *path*.

    As in 1.36 a capacity that is selected by name has none, and one that is looked up is 0.
    """
    declared = _follow(path, variables, any_name=False)
    return None if declared is None else Size(0, declared.size)


def _follow(path: Path, variables: Variables, *, any_name: bool) -> DeclaredType | None:
    if not path or path[0] not in variables:
        return None
    here: DeclaredType | None = variables[path[0]]
    for name in path[1:]:
        assert here is not None
        if name in (ITEMS, VALUES):
            here = here.value
        elif name == KEYS:
            here = here.key
        elif name in here.fields:
            here = here.fields[name]
        elif any_name or here.value is ATTRIBUTE:
            here = here.value
        else:
            return None
        if here is None:
            return None
    return here
