"""What decides how devices are found: feature gates and releases (spec G15, G17; 1.37 spec N4)."""

from collections.abc import Container
from typing import Final

import msgspec

from berth.kube.cel import features as cel_features
from berth.kube.cel.features import CONSUMABLE_CAPACITY, EVALUATES_LISTS, LIST_TYPE_ATTRIBUTES
from berth.runtime.release import Behaviour

BINDING_CONDITIONS: Final = "DRADeviceBindingConditions"
DEVICE_STATUS: Final = "DRAResourceClaimDeviceStatus"
FILTER_TIMEOUT: Final = "DRASchedulerFilterTimeout"
FRACTIONAL_CAPACITY: Final = "DRAFractionalCapacityRange"

COMPATIBILITY_GROUPS: Final = "DRADeviceCompatibilityGroups"
DERIVED_ATTRIBUTES: Final = "DRADerivedAttributes"
OPTIONAL_NODE_OPERATIONS: Final = "DRAOptionalNodeOperations"

GROUPS_NEED_GATE: Final = Behaviour(
    "1.37",
    "N4.8",
    "Devices with compatibilityGroups are given to nobody unless the feature gate"
    " DRADeviceCompatibilityGroups is on.",
)
SKIPPING_NEEDS_GATE: Final = Behaviour(
    "1.37",
    "N4.10",
    "Devices of slices with skipNodeOperations are given to nobody unless the feature gate"
    " DRAOptionalNodeOperations is on.",
)
SEARCHES_EXACTLY: Final = Behaviour(
    "1.37",
    "N4.3",
    "A search for devices gives back the shared counters of every candidate that it gives up and"
    " charges those of a shared device once; distinctAttribute compares every device; mode All"
    " needs room on every matching device; more of a capacity than can be counted is not had.",
)
COUNTERS_BY_NODE: Final = Behaviour(
    "1.37",
    "N4.3",
    "A ResourceSlice with shared counters matters to the nodes that see devices of its pool only.",
)
NAMES_DEVICE: Final = Behaviour(
    "1.37", "N4.4", "The error of a CEL selector names the device, and may say how to avoid it."
)
SHORT_CONFIG: Final = Behaviour(
    "1.37",
    "N4.5",
    "The configuration of an allocated claim says each thing once, and for which requests only if"
    " it is not for all.",
)


class Features(msgspec.Struct, frozen=True):
    """What searches go by: gates, and below them the behaviours above; by default the latest."""

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
    device_taint_rules: bool = True
    """DeviceTaintRules taint devices."""
    list_type_attributes: bool = False
    """Attributes that are lists may be compared."""
    fractional_capacity: bool = False
    """Ranges of capacity that have fractions are counted in thousandths."""
    compatibility_groups: bool = False
    """Devices that take from the same counters must have a group in common."""
    derived_attributes: bool = False
    """Requests may give attributes to devices, for constraints."""
    optional_node_operations: bool = False
    """Kubelets that say so skip what drivers need not do."""
    groups_need_gate: bool = True
    skipping_needs_gate: bool = True
    searches_exactly: bool = True
    counters_by_node: bool = True
    names_device: bool = True
    short_config: bool = True
    selectors: cel_features.Features = cel_features.Features(list_type_attributes=True)
    """What CEL selectors may use."""

    @classmethod
    def of(cls, on: Container[object]) -> "Features":
        """Return what follows from the feature gates and behaviours that are *on*."""
        has_status = DEVICE_STATUS in on
        return cls(
            binding_conditions=has_status and BINDING_CONDITIONS in on,
            consumable_capacity=CONSUMABLE_CAPACITY in on,
            device_status=has_status,
            device_taints="DRADeviceTaints" in on,
            partitionable_devices="DRAPartitionableDevices" in on,
            prioritized_list="DRAPrioritizedList" in on,
            device_taint_rules="DRADeviceTaintRules" in on,
            list_type_attributes=LIST_TYPE_ATTRIBUTES in on,
            fractional_capacity=FRACTIONAL_CAPACITY in on,
            compatibility_groups=COMPATIBILITY_GROUPS in on,
            derived_attributes=DERIVED_ATTRIBUTES in on,
            optional_node_operations=OPTIONAL_NODE_OPERATIONS in on,
            groups_need_gate=GROUPS_NEED_GATE in on,
            skipping_needs_gate=SKIPPING_NEEDS_GATE in on,
            searches_exactly=SEARCHES_EXACTLY in on,
            counters_by_node=COUNTERS_BY_NODE in on,
            names_device=NAMES_DEVICE in on,
            short_config=SHORT_CONFIG in on,
            selectors=cel_features.Features(
                consumable_capacity=CONSUMABLE_CAPACITY in on,
                list_type_attributes=LIST_TYPE_ATTRIBUTES in on or EVALUATES_LISTS in on,
            ),
        )


DEFAULT: Final = Features()
