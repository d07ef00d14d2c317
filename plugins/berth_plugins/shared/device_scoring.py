"""Devices that stand for extended resources, in scores of nodes (spec G15.6)."""

from collections.abc import Hashable, Iterable
from functools import partial
from typing import Protocol

import numpy as np

from berth.kube.objects.devices import DeviceClass
from berth.kube.objects.resources import Resources
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.verdict import Ints, Mask
from berth_plugins.shared.device_classes import device_classes, may_be_device
from berth_plugins.shared.resource_allocation import Amounts, DeviceCounts


class CountsDevices(Protocol):
    """Knows which devices there are, and which are allocated."""

    def counts(self, device_class: DeviceClass, nodes: NodeTable, where: Mask) -> tuple[Ints, Ints]:
        """Return how many devices of a class there are and how many are allocated, by row.

        On rows other than *where* there are none.
        """
        ...


class DeviceCounting:
    """Who counts devices: DynamicResources, once a profile has it; without, nobody takes any.

    All profiles share one, in ``Listers.shared``.
    """

    def __init__(self, _listers: Listers) -> None:
        self.by: CountsDevices | None = None


class DeviceScoring:
    """The devices that stand for the *resources* that a plugin scores by."""

    def __init__(self, handle: Handle, resources: Iterable[str]) -> None:
        self._counting = handle.listers.shared(DeviceCounting)
        self._classes = device_classes(handle)
        self._resources = tuple(filter(may_be_device, resources))

    def counts_for(self, requests: Resources, nodes: NodeTable) -> DeviceCounts | None:
        """Return what counts devices for a pod with *requests*; None if it asks for none."""
        by = self._counting.by
        asked = [name for name in self._resources if requests.amount(name)]
        if by is None or not any(self._classes.get_device_class(name) for name in asked):
            return None
        return partial(self._amounts, by, nodes)

    def follow_from(self, requests: Resources) -> Hashable | None:
        """Return what :meth:`Plugin.sign_pod` does for the scores of pods with *requests*."""
        return self._classes.stands_for_none(requests.scalars)

    def _amounts(
        self, by: CountsDevices, nodes: NodeTable, resource: str, known: Amounts | None
    ) -> Amounts | None:
        device_class = self._classes.get_device_class(resource)
        if device_class is None:
            return None
        nothing = np.zeros(nodes.size, np.int64)
        allocatable, used = known or (nothing, nothing)
        where = nodes.exists & (allocatable == 0)
        devices, allocated = by.counts(device_class, nodes, where)
        return np.where(where, devices, allocatable), np.where(where, allocated, used)
