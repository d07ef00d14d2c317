"""Counters of a pool that one search has set aside (spec §5.17)."""

from collections import defaultdict
from collections.abc import Sequence

from berth_plugins.dynamic_resources.allocated_devices import AllocatedDevices
from berth_plugins.dynamic_resources.compatibility_groups import CompatibilityGroups
from berth_plugins.dynamic_resources.counters import CounterName
from berth_plugins.dynamic_resources.pools import Pool, PoolDevice, PoolId


class SetAside:
    """Counters of all pools, in nano units."""

    def __init__(self, in_use: AllocatedDevices, groups: CompatibilityGroups | None = None) -> None:
        """With *groups* devices that take from one counter set must be compatible."""
        self._in_use = in_use
        self._groups = groups
        self._left: dict[PoolId, dict[CounterName, int]] = {}
        self._taken: defaultdict[PoolId, dict[CounterName, int]] = defaultdict(dict)
        self._put_off: defaultdict[PoolId, list[Sequence[PoolDevice]]] = defaultdict(list)

    def could_take(self, pool: Pool, device: PoolDevice) -> bool:
        """Whether what allocated devices leave is enough for the device."""
        if self._groups is not None and not self._groups.would_admit(pool, device):
            return False
        taken = device.consumes
        return all(taken.get(name, 0) <= amount for name, amount in self._left_of(pool).items())

    def take(self, pool: Pool, device: PoolDevice) -> bool:
        """Count what the device takes; False, and nothing changes, if that is not left."""
        for devices in self._put_off.pop(pool.id, ()):
            for earlier in devices:
                self._take(pool, earlier)
        return self._take(pool, device)

    def put_off(self, pool: Pool, devices: Sequence[PoolDevice]) -> None:
        """Have each of *devices* taken, as far as that goes, before the next one of the pool."""
        self._put_off[pool.id].append(devices)

    def put_back(self, pool: Pool, device: PoolDevice) -> None:
        """Undo :meth:`take`."""
        self._count(pool, device, -1)
        if self._groups is not None:
            self._groups.remove(pool, device)

    def _take(self, pool: Pool, device: PoolDevice) -> bool:
        if self._groups is not None and not self._groups.admit(pool, device):
            return False
        taken = self._taken[pool.id]
        for name, amount in self._left_of(pool).items():
            if taken.get(name, 0) + device.consumes.get(name, 0) > amount:
                return False
        self._count(pool, device, 1)
        if self._groups is not None:
            self._groups.add(pool, device)
        return True

    def _left_of(self, pool: Pool) -> dict[CounterName, int]:
        left = self._left.get(pool.id)
        if left is None:
            left = self._left[pool.id] = dict(pool.counters)
            for other in pool.consumers:
                if self._in_use.is_allocated(other.id):
                    for name, amount in other.consumes.items():
                        left[name] -= amount
        return left

    def _count(self, pool: Pool, device: PoolDevice, sign: int) -> None:
        taken = self._taken[pool.id]
        for name, amount in device.consumes.items():
            taken[name] = taken.get(name, 0) + sign * amount
