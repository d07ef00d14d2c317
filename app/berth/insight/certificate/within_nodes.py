"""What pods take of a node, and what is left: resources, places, host ports, volumes, devices."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Final

from berth.kube.objects.devices import DeviceId
from berth.kube.objects.host_ports import ANY_IP, HostPort
from berth.scheduler.framework.device_demands import DeviceDemand, DeviceDemands
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo

PODS: Final = "pods"
NO_LIMIT: Final = 2**40
IMPLICIT_DEVICES: Final = "deviceclass.resource.kubernetes.io/"
"""The prefix of extended resources that DeviceClasses have without saying so."""

Needs = Mapping[str, int]
"""Amounts by name, above 0."""


class Rooms:
    """The nodes without their movable pods, and what pods need of them.

    *applies* says which filter plugins there are.
    """

    def __init__(
        self,
        table: NodeTable,
        listers: Listers,
        pods: Sequence[PodInfo],
        *,
        fixed: Iterable[PodInfo],
        devices: Mapping[str, DeviceDemands],
        applies: Callable[[str], bool],
    ) -> None:
        self._table, self._listers, self._applies = table, listers, applies
        self._made_of_devices = {
            device_class.spec.extended_resource_name
            for device_class in listers.device_classes
            if device_class.spec.extended_resource_name
        }
        self._users = Counter(claim for pod in pods for claim in _claims(pod))
        stays = list(fixed)
        self._users.update(claim for pod in stays for claim in _claims(pod))
        self._attached: dict[str, Counter[str]] = defaultdict(Counter)
        for pod in stays:
            self._attached[pod.node_name].update(self._attachments(pod))
        self._ports = _Ports(port for pod in pods for port in pod.template.host_ports)
        self._devices = _Devices(devices)

    def needs(self, pod: PodInfo) -> Needs:
        """Return what *pod* needs, by the rules that are applied."""
        needs: dict[str, int] = {}
        if self._applies("NodeResourcesFit"):
            amounts = pod.template.requested
            needs[PODS] = 1
            needs["cpu"], needs["memory"] = amounts.milli_cpu, amounts.memory
            needs["ephemeral-storage"] = amounts.ephemeral_storage
            needs |= {
                name: amount
                for name, amount in amounts.scalars.items()
                if name not in self._made_of_devices and not name.startswith(IMPLICIT_DEVICES)
            }
        if self._applies("NodePorts"):
            needs |= dict.fromkeys(self._ports.slots(pod.template.host_ports), 1)
        if self._applies("NodeVolumeLimits"):
            needs |= self._attachments(pod)
        needs |= self._devices.needs(pod)
        return {name: amount for name, amount in needs.items() if amount > 0}

    @property
    def can_count_devices(self) -> bool:
        """Whether there are enough devices where their numbers suffice."""
        return self._devices.are_nested

    def room(self, name: str, node: str) -> int:
        """Return how much of *name* is left on a node."""
        row = self._table.row_of[node]
        if name == PODS:
            return int(self._table.free[0, row])
        if name.startswith(_Ports.PREFIX):
            return 1  # who stays and has it has a part in the mask
        if name.startswith(_Devices.PREFIX):
            return self._devices.room(name, node)
        if name.startswith(_DRIVER):
            driver = name.removeprefix(_DRIVER)
            csi_node = self._listers.csi_nodes.get("", node)
            limit = csi_node.limits.get(driver) if csi_node is not None else None
            return NO_LIMIT if limit is None else limit - self._attached[node][name]
        columns = self._table.resource_rows(name)
        if columns is None:
            return 0
        allocatable, requested = columns
        return int(allocatable[row] - requested[row])

    def _attachments(self, pod: PodInfo) -> Counter[str]:
        """Count the volumes of *pod* by driver; not those that other pods use, too."""
        drivers: Counter[str] = Counter()
        for namespace, name in _claims(pod):
            claim = self._listers.persistent_volume_claims.get(namespace, name)
            if claim is None or self._users[namespace, name] > 1:
                continue
            volume = self._listers.persistent_volumes.get("", claim.spec.volume_name)
            if volume is not None and volume.spec.csi is not None:
                drivers[f"{_DRIVER}{volume.spec.csi.driver}"] += 1
            elif volume is None:
                class_ = self._listers.storage_classes.get("", claim.storage_class)
                if class_ is not None:
                    drivers[f"{_DRIVER}{class_.provisioner}"] += 1
        return drivers


_DRIVER: Final = "volumes of "


def _claims(pod: PodInfo) -> Iterator[tuple[str, str]]:
    for volume in pod.pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield pod.namespace, volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield pod.namespace, f"{pod.name}-{volume.name}"


class _Ports:
    """Host ports as resources of which each node has one.

    One for each address that is named, and pods of any address need them all.
    """

    PREFIX: Final = "port "

    def __init__(self, ports: Iterable[HostPort]) -> None:
        self._ips: dict[tuple[str, int], set[str]] = defaultdict(set)
        for ip, protocol, port in ports:
            self._ips[protocol, port].add(ip)

    def slots(self, ports: Iterable[HostPort]) -> Set[str]:
        return {
            f"{self.PREFIX}{protocol}/{port} {address}"
            for ip, protocol, port in ports
            for address in (self._ips[protocol, port] if ip == ANY_IP else {ip})
        }


class _Devices:
    """Devices as resources: one for each set of them that would do for some request.

    A pod takes one of each set that has all devices which would do for it. That is enough where of
    two sets with a common device one is a part of the other (Hall's theorem); else it may be that
    the devices do not suffice though their numbers do.
    """

    PREFIX: Final = "devices "

    def __init__(self, of_pods: Mapping[str, DeviceDemands]) -> None:
        self._of_pods = of_pods
        self._numbers: dict[frozenset[DeviceId], int] = {}
        self._free: list[Mapping[str, frozenset[DeviceId]]] = []
        for of_pod in of_pods.values():
            for demand in of_pod.demands:
                if self._numbers.setdefault(_all(demand), len(self._free)) == len(self._free):
                    self._free.append(demand.free)
        self._above = {
            devices: [number for others, number in self._numbers.items() if devices <= others]
            for devices in self._numbers
        }
        self.are_nested = all(
            one <= other or other <= one or one.isdisjoint(other)
            for one in self._numbers
            for other in self._numbers
        )

    def needs(self, pod: PodInfo) -> Counter[str]:
        amounts: Counter[str] = Counter()
        for demand in self._of_pods.get(pod.key, DeviceDemands()).demands:
            for number in self._above[_all(demand)]:
                amounts[f"{self.PREFIX}{number}"] += demand.needed
        return amounts

    def room(self, name: str, node: str) -> int:
        return len(self._free[int(name.removeprefix(self.PREFIX))].get(node, ()))


def _all(demand: DeviceDemand) -> frozenset[DeviceId]:
    return frozenset[DeviceId]().union(*demand.free.values())


def in_numbers(
    rooms: Rooms, nodes: Sequence[str], needs: Sequence[Needs], counts: Sequence[int]
) -> tuple[tuple[tuple[int, ...], ...], list[dict[int, int]]]:
    """Return rooms by node, and needs by group, with resources as numbers.

    *needs* is what a pod of each group needs, *counts* how many pods it has. What there is enough
    of everywhere is left out; amounts are divided by what all have in common.
    """
    total: Counter[str] = Counter()
    for of_group, count in zip(needs, counts, strict=True):
        total.update({name: amount * count for name, amount in of_group.items()})
    columns: list[list[int]] = []
    numbers: dict[str, tuple[int, int]] = {}
    for name in sorted(total):
        room = [rooms.room(name, node) for node in nodes]
        if min(room, default=0) < total[name]:
            unit = math.gcd(*(of_group[name] for of_group in needs if name in of_group))
            numbers[name] = len(columns), unit
            columns.append([min(has, total[name]) // unit for has in room])
    by_node = tuple(tuple(column[i] for column in columns) for i in range(len(nodes)))
    by_group = [
        {
            numbers[name][0]: amount // numbers[name][1]
            for name, amount in of_group.items()
            if name in numbers
        }
        for of_group in needs
    ]
    return by_node, by_group
