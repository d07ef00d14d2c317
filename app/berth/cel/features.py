"""What device selectors may use, by feature gate (``dynamic-resource-allocation/cel``)."""

from collections.abc import Collection
from typing import Final, NamedTuple

LIST_TYPE_ATTRIBUTES: Final = "DRAListTypeAttributes"


class Features(NamedTuple):
    """By default those that are on in 1.36."""

    list_type_attributes: bool = False
    """Attributes may be lists, and there is ``includes``."""

    @classmethod
    def of(cls, gates: Collection[str]) -> "Features":
        """Return what follows from the feature gates that are on."""
        return cls(list_type_attributes=LIST_TYPE_ATTRIBUTES in gates)


DEFAULT: Final = Features()
