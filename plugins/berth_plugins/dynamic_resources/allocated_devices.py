"""Allocated devices, from all allocations together."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from berth.kube.objects.devices import AllocationResult, DeviceId
from berth.kube.objects.quantity import parse
from berth_plugins.dynamic_resources.capacity import Consumed
from berth_plugins.dynamic_resources.changes import Changes

_NOTHING: Final[Consumed] = {}

Groups = Mapping[str, tuple[str, ...]]
"""Compatibility groups of a device by counter set."""


class AllocatedDevices:
    """Devices in use, counted; admin access does not count (spec §5.17)."""

    def __init__(self) -> None:
        self.changes: Changes[tuple[str, str]] = Changes()
        """Driver and pool of each device that came or went."""
        self.pool_versions: dict[tuple[str, str], int] = {}
        """Driver and pool to the version of the last change."""
        self._dedicated: Counter[DeviceId] = Counter()
        self._shares: Counter[DeviceId] = Counter()
        self._consumed: dict[DeviceId, dict[str, int]] = {}
        self._groups: dict[DeviceId, list[Groups]] = {}

    def is_dedicated(self, id_: DeviceId) -> bool:
        """Whether somebody has the device alone."""
        return id_ in self._dedicated

    def is_allocated(self, id_: DeviceId) -> bool:
        """Whether somebody has the device or a share of it."""
        return id_ in self._dedicated or id_ in self._shares

    def is_consumed(self, id_: DeviceId) -> bool:
        """Whether somebody has a share of the device's capacity."""
        return id_ in self._consumed

    def consumed(self, id_: DeviceId) -> Consumed:
        """Return how much of each capacity is taken."""
        return self._consumed.get(id_, _NOTHING)

    def groups(self, id_: DeviceId) -> Sequence[Groups]:
        """Return what groups the device had each time it was allocated, where it had any."""
        return self._groups.get(id_, ())

    def add(self, allocation: AllocationResult) -> None:
        self._count(allocation, 1)

    def remove(self, allocation: AllocationResult) -> None:
        """Undo :meth:`add` of the same allocation."""
        self._count(allocation, -1)

    def _count(self, allocation: AllocationResult, sign: int) -> None:
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            counter = self._dedicated if result.share_id is None else self._shares
            counter[result.id] += sign
            users = counter[result.id]
            if result.compatibility_groups:
                self._note_groups(result.id, sign, result.compatibility_groups)
            if not users:
                del counter[result.id]
            if result.share_id is not None or users == max(sign, 0):  # else it was and is in use
                self.changes.add((result.driver, result.pool))
                self.pool_versions[result.driver, result.pool] = self.changes.version
            if result.share_id is not None and result.consumed_capacity:
                self._consume(result.id, sign, {**result.consumed_capacity})

    def _note_groups(self, id_: DeviceId, sign: int, groups: Groups) -> None:
        known = self._groups.setdefault(id_, [])
        if sign > 0:
            known.append(groups)
        else:
            known.remove(groups)
        if not known:
            del self._groups[id_]

    def _consume(self, id_: DeviceId, sign: int, amounts: dict[str, str | int | float]) -> None:
        consumed = self._consumed.setdefault(id_, {})
        for name, amount in amounts.items():
            consumed[name] = consumed.get(name, 0) + sign * parse(amount)
        if id_ not in self._shares:
            del self._consumed[id_]
