"""The feature gates that decide how devices are found (spec G15, G17)."""

from collections.abc import Container
from typing import Final

import msgspec

from berth.kube.cel import features as cel_features
from berth.kube.cel.features import CONSUMABLE_CAPACITY, LIST_TYPE_ATTRIBUTES

BINDING_CONDITIONS: Final = "DRADeviceBindingConditions"
DEVICE_STATUS: Final = "DRAResourceClaimDeviceStatus"
FILTER_TIMEOUT: Final = "DRASchedulerFilterTimeout"


class Features(msgspec.Struct, frozen=True):
    """By default those that are on in 1.36."""

    binding_conditions: bool = True
    """Devices may have to get ready first, and drivers say in the claim whether they are."""
    consumable_capacity: bool = True
    """Devices may be shared by capacity."""
    device_status: bool = True
    """Claims have what drivers say of their devices."""
    device_taints: bool = True
    """Taints keep devices from requests that do not tolerate them."""
    partitionable_devices: bool = True
    """Devices may take from counters that they share, and say for which nodes they are."""
    prioritized_list: bool = True
    """Requests may have alternatives."""
    device_taint_rules: bool = False
    """DeviceTaintRules taint devices."""
    list_type_attributes: bool = False
    """Attributes that are lists may be compared."""
    selectors: cel_features.Features = msgspec.field(default=cel_features.DEFAULT)
    """What CEL selectors may use."""

    @classmethod
    def of(cls, gates: Container[str]) -> "Features":
        """Return what follows from the feature gates that are on."""
        has_status = DEVICE_STATUS in gates
        return cls(
            binding_conditions=has_status and BINDING_CONDITIONS in gates,
            consumable_capacity=CONSUMABLE_CAPACITY in gates,
            device_status=has_status,
            device_taints="DRADeviceTaints" in gates,
            partitionable_devices="DRAPartitionableDevices" in gates,
            prioritized_list="DRAPrioritizedList" in gates,
            device_taint_rules="DRADeviceTaintRules" in gates,
            list_type_attributes=LIST_TYPE_ATTRIBUTES in gates,
            selectors=cel_features.Features.of(gates),
        )


DEFAULT: Final = Features()
