"""The feature gates that decide how devices are found (spec G15, G17)."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from berth.cel import features as cel_features
from berth.cel.features import LIST_TYPE_ATTRIBUTES


@dataclass(frozen=True, slots=True)
class Features:
    """By default those that are on in 1.36."""

    device_taint_rules: bool = False
    """DeviceTaintRules taint devices."""
    list_type_attributes: bool = False
    """Attributes that are lists may be compared."""
    selectors: cel_features.Features = field(default=cel_features.DEFAULT)
    """What CEL selectors may use."""

    @classmethod
    def of(cls, gates: Collection[str]) -> "Features":
        """Return what follows from the feature gates that are on."""
        return cls(
            device_taint_rules="DRADeviceTaintRules" in gates,
            list_type_attributes=LIST_TYPE_ATTRIBUTES in gates,
            selectors=cel_features.Features.of(gates),
        )


DEFAULT: Final = Features()
