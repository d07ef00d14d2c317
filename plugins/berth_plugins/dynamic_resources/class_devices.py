"""Devices of a class by node, and how many of them are allocated (spec G15.6)."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from berth.kube.cel.selector_error import SelectorError
from berth.kube.objects.devices import DeviceClass, DeviceId
from berth.kube.objects.node import Node
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.verdict import Ints, Mask
from berth_plugins.dynamic_resources.claim_tracker import ResourceClaimTracker
from berth_plugins.dynamic_resources.features import Features
from berth_plugins.dynamic_resources.pools import PoolDevice, shared_pools

_MOST_KNOWN: Final = 100_000
"""So many answers are kept; classes and nodes come and go."""


class _Known(NamedTuple):
    """The devices of a class on one node, and what that depends on."""

    node: Node
    pools_version: int
    device_class: DeviceClass
    devices: tuple[DeviceId, ...]


class ClassDevices:
    """Counts devices as kube-scheduler does to score: of every slice that reaches a node.

    A device that others share counts as one, and as allocated once somebody has a share. What it is
    tainted with, which generation its pool has and whether the pool is complete do not matter.
    kube-scheduler keeps what selectors said of a device for ever; here the answer goes with the
    slice.
    """

    def __init__(self, handle: Handle) -> None:
        self._features = Features.of(handle.features)
        self._claims = handle.listers.shared(ResourceClaimTracker)
        self._pools = shared_pools(handle.listers, self._features)
        self._known: dict[tuple[str, str], _Known] = {}

    def on_node(self, device_class: DeviceClass, node: Node) -> tuple[DeviceId, ...]:
        """Return the devices of the class that *node* sees.

        None at all when one of the selectors fails on a device.
        """
        key = (device_class.metadata.name, node.metadata.name)
        known = self._known.get(key)
        if (
            known is None
            or known.node is not node
            or known.pools_version != self._pools.changes.version
            or known.device_class is not device_class
        ):
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            devices = tuple(self._matching(device_class, node))
            known = self._known[key] = _Known(
                node, self._pools.changes.version, device_class, devices
            )
        return known.devices

    def _matching(self, device_class: DeviceClass, node: Node) -> Iterator[DeviceId]:
        matching: list[PoolDevice] = []
        for device in self._pools.published_for(node):
            try:
                if self._selects(device_class, device):
                    matching.append(device)
            except SelectorError:
                return
        yield from dict.fromkeys(device.id for device in matching)

    def _selects(self, device_class: DeviceClass, device: PoolDevice) -> bool:
        """Ask the selectors of the class; raises SelectorError."""
        from berth.kube.cel.selectors import compile_expression  # takes long to load

        for selector in device_class.spec.selectors:
            if selector.cel is None:
                raise SelectorError("unsupported selector type")
            expression = compile_expression(selector.cel.expression, self._features.selectors)
            if isinstance(expression, SelectorError):
                raise expression
            if not device.matches(expression):
                return False
        return True

    def is_allocated(self, device: DeviceId) -> bool:
        return self._claims.in_use.is_allocated(device)

    def counts(self, device_class: DeviceClass, nodes: NodeTable, where: Mask) -> tuple[Ints, Ints]:
        """Return how many devices there are and how many of them are allocated, by row.

        On rows other than *where* there are none.
        """
        all_, allocated = np.zeros(nodes.size, np.int64), np.zeros(nodes.size, np.int64)
        for row in np.flatnonzero(where).tolist():
            node = nodes.nodes[row]
            if node is not None:
                devices = self.on_node(device_class, node)
                all_[row] = len(devices)
                allocated[row] = sum(map(self.is_allocated, devices))
        return all_, allocated
