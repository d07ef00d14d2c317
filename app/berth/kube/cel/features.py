"""Features of device selectors by feature gate (``dynamic-resource-allocation/cel``)."""

from collections.abc import Container
from typing import Final, NamedTuple

CONSUMABLE_CAPACITY: Final = "DRAConsumableCapacity"
LIST_TYPE_ATTRIBUTES: Final = "DRAListTypeAttributes"


class Features(NamedTuple):
    """By default those that are on in 1.36."""

    consumable_capacity: bool = True
    """There is ``device.allowMultipleAllocations``."""
    list_type_attributes: bool = False
    """Attributes may be lists, and there is ``includes``."""

    @classmethod
    def of(cls, gates: Container[str]) -> "Features":
        """Return what follows from the feature gates that are on."""
        return cls(CONSUMABLE_CAPACITY in gates, LIST_TYPE_ATTRIBUTES in gates)


DEFAULT: Final = Features()
