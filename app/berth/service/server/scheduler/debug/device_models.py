"""The JSON of ``/debug/devices``."""

from typing import TypeAlias

from berth.insight.explain.explanation import ResponseModel
from berth.service.server.scheduler.debug.pagination import Page

AttributeValue: TypeAlias = str | int | bool | tuple[str | int | bool, ...] | None
"""None: of a type that is not known."""


class DeviceAllocation(ResponseModel):
    """A claim that has a device, or a share of it."""

    claim: str
    """As in namespace/name."""
    request: str
    """For which request of the claim."""
    admin_access: bool
    """Whether others may have it all the same."""
    share_id: str
    """Which share of the device; empty: the whole."""
    consumed_capacity: dict[str, str]
    """How much of the capacity the share is."""
    is_written: bool
    """Whether the API server knows; until then the scheduler only counts on it."""
    pods: tuple[str, ...]
    """The pods that the claim is reserved for, as in namespace/name."""


class PublishedDevice(ResponseModel):
    """A device of a ResourceSlice."""

    driver: str
    pool: str
    device: str
    resource_slice: str
    node: str
    """The only node that can use it; empty: several can, or none."""
    attributes: dict[str, AttributeValue]
    capacity: dict[str, str]
    taints: tuple[str, ...]
    """As in key=value:effect, those of DeviceTaintRules included."""
    allow_multiple_allocations: bool
    allocations: tuple[DeviceAllocation, ...]
    """Who has it; empty: it is free."""


class DeviceCounts(ResponseModel):
    """All there are, whatever is asked for."""

    slices: int
    devices: int
    allocated: int
    """Devices that a claim has, shares and administrators' access included."""


class PublishedDevices(Page):
    """Devices by driver, pool and name."""

    items: tuple[PublishedDevice, ...]
    counts: DeviceCounts
