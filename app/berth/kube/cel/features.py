"""Features of device selectors by feature gate (``dynamic-resource-allocation/cel``)."""

from collections.abc import Container
from typing import Final, NamedTuple

from berth.runtime.release import Behaviour

CONSUMABLE_CAPACITY: Final = "DRAConsumableCapacity"
LIST_TYPE_ATTRIBUTES: Final = "DRAListTypeAttributes"

EVALUATES_LISTS: Final = Behaviour(
    "1.37",
    "N4.4",
    "CEL selectors that are stored may use attributes that are lists, whatever the feature gate"
    " DRAListTypeAttributes says.",
)


class Features(NamedTuple):
    """By default what a new expression may use."""

    consumable_capacity: bool = True
    """There is ``device.allowMultipleAllocations``."""
    list_type_attributes: bool = False
    """Attributes may be lists, and there is ``includes``."""

    @classmethod
    def of(cls, gates: Container[str]) -> "Features":
        """Return what a new expression may use with the feature gates that are on."""
        return cls(CONSUMABLE_CAPACITY in gates, LIST_TYPE_ATTRIBUTES in gates)


DEFAULT: Final = Features()
