"""What pods want of devices, counted: for who has to know how many pods a node can have."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from berth.kube.objects.devices import DeviceId
from berth.scheduler.framework.interface import Plugin
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo


class DeviceDemand(NamedTuple):
    """A number of devices, each another one, of those that are free and would do."""

    needed: int
    free: Mapping[str, frozenset[DeviceId]]
    """By the name of each node that sees any."""


class DeviceDemands(NamedTuple):
    """What one pod wants: at least this, and nothing else if it *is_all*."""

    demands: tuple[DeviceDemand, ...] = ()
    is_all: bool = True


class CountsDevices(Plugin):
    """A Filter plugin that gives devices to pods."""

    @abstractmethod
    def device_demands(
        self, pods: Sequence[PodInfo], nodes: NodeTable
    ) -> Mapping[str, DeviceDemands]:
        """Return what pods want that have no devices yet, by key; without those that want none.

        Demands of several pods, and of one, are for different devices.
        """
