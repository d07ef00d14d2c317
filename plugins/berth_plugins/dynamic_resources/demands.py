"""What pods want of devices, as far as numbers tell (spec §5.17)."""

from collections.abc import Hashable
from typing import NamedTuple

from berth.kube.objects.devices import DeviceId
from berth.scheduler.framework.device_demands import DeviceDemand, DeviceDemands
from berth.scheduler.framework.node_table import NodeTable
from berth_plugins.dynamic_resources.allocated_devices import AllocatedDevices
from berth_plugins.dynamic_resources.pools import PoolDevice, ResourcePools
from berth_plugins.dynamic_resources.requests import AllocationError, ClaimRequests, Request


class _Matching(NamedTuple):
    """The devices that would do for a request."""

    free: dict[str, frozenset[DeviceId]]
    """By node."""
    is_shared: bool
    """Whether several claims may have one of them."""
    is_all: bool
    """Whether to count them is all that there is to them."""


class DemandCounter:
    """Counts for one question; *pools* and *in_use* are as they are at that time."""

    def __init__(self, pools: ResourcePools, in_use: AllocatedDevices, nodes: NodeTable) -> None:
        self._devices: dict[str, list[PoolDevice]] = {}
        """Free ones by node."""
        seen: set[DeviceId] = set()
        self._on_several: set[DeviceId] = set()
        for node in nodes.nodes:
            if node is None:
                continue
            self._devices[node.name] = of_node = [
                device
                for pool in pools.pools_of(node)
                if not pool.is_broken
                for device in pool.devices
                if device.is_for(node) and not in_use.is_dedicated(device.id)
            ]
            ids = {device.id for device in of_node}
            self._on_several |= ids & seen
            seen |= ids
        self._known: dict[Hashable, _Matching] = {}

    def demands(self, claim: ClaimRequests) -> DeviceDemands:
        """Return what *claim* wants at least."""
        demands, is_all = [], not claim.claim.spec.devices.constraints
        for request, *others in claim.requests:
            if others or request.takes_all or request.has_admin_access:
                is_all = False
                continue
            matching = self._matching(request)
            is_all = is_all and matching.is_all and not matching.is_shared
            if not matching.is_shared:
                demands.append(DeviceDemand(request.written.count, matching.free))
        return DeviceDemands(tuple(demands), is_all)

    def _matching(self, request: Request) -> _Matching:
        if request.asked not in self._known:
            by_node = {
                name: [device for device in devices if _selects(request, device)]
                for name, devices in self._devices.items()
            }
            every = [device for devices in by_node.values() for device in devices]
            self._known[request.asked] = _Matching(
                {name: frozenset(device.id for device in of) for name, of in by_node.items() if of},
                any(device.device.allow_multiple_allocations for device in every),
                not any(
                    device.consumes or device.device.taints or device.id in self._on_several
                    for device in every
                ),
            )
        return self._known[request.asked]


def _selects(request: Request, device: PoolDevice) -> bool:
    try:
        return request.selects(device, lambda: None)
    except AllocationError:  # the search tells it
        return False
