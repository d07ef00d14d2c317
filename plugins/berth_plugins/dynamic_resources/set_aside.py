"""Counters of a pool that one search has set aside (spec §5.17; 1.37 spec N4.8)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from berth_plugins.dynamic_resources.allocated_devices import AllocatedDevices
from berth_plugins.dynamic_resources.counters import CounterName
from berth_plugins.dynamic_resources.pools import Pool, PoolDevice, PoolId


class _Company(NamedTuple):
    """Devices that take from one counter set."""

    has_groups: bool
    common: frozenset[str]
    """The compatibility groups that all have. kube-scheduler keeps the same (KEP-5963), so that
    three devices need one in common even if each two have."""

    def admits(self, groups: frozenset[str]) -> bool:
        """Whether a device with *groups* may come to them; without, to those without."""
        return bool(self.common & groups) if self.has_groups else not groups

    def with_(self, groups: frozenset[str]) -> "_Company":
        return _Company(self.has_groups or bool(groups), self.common & groups)


class SetAside:
    """Counters of all pools, in nano units."""

    def __init__(self, in_use: AllocatedDevices, *, has_groups: bool = False) -> None:
        """With *has_groups* devices that take from one counter set must be compatible."""
        self._in_use = in_use
        self._has_groups = has_groups
        self._companies: dict[PoolId, dict[str, list[_Company]]] = {}
        """By counter set, with those that are allocated and after each device that was taken."""
        self._in_use_companies: dict[PoolId, dict[str, _Company]] = {}
        """By counter set, those that are allocated."""
        self._left: dict[PoolId, dict[CounterName, int]] = {}
        self._taken: defaultdict[PoolId, dict[CounterName, int]] = defaultdict(dict)
        self._put_off: defaultdict[PoolId, list[Sequence[PoolDevice]]] = defaultdict(list)

    def could_take(self, pool: Pool, found: PoolDevice) -> bool:
        """Whether what allocated devices leave is enough for the device."""
        if self._has_groups:
            self._companies_of(pool)
            if not _are_compatible(found, self._in_use_companies[pool.id]):
                return False
        taken = found.consumes
        return all(taken.get(name, 0) <= amount for name, amount in self._left_of(pool).items())

    def take(self, pool: Pool, found: PoolDevice) -> bool:
        """Count what the device takes; False, and nothing changes, if that is not left."""
        for devices in self._put_off.pop(pool.id, ()):
            for device in devices:
                self._take(pool, device)
        return self._take(pool, found)

    def put_off(self, pool: Pool, devices: Sequence[PoolDevice]) -> None:
        """Have each of *devices* taken, as far as that goes, before the next one of the pool."""
        self._put_off[pool.id].append(devices)

    def put_back(self, pool: Pool, found: PoolDevice) -> None:
        """Undo :meth:`take`."""
        self._count(pool, found, -1)
        if self._has_groups:
            for counter_set in _sets(found):
                self._companies_of(pool)[counter_set].pop()

    def _take(self, pool: Pool, found: PoolDevice) -> bool:
        if self._has_groups:
            companies = self._companies_of(pool)
            latest = {name: members[-1] for name, members in companies.items() if members}
            if not _are_compatible(found, latest):
                return False
        taken = self._taken[pool.id]
        for name, amount in self._left_of(pool).items():
            if taken.get(name, 0) + found.consumes.get(name, 0) > amount:
                return False
        self._count(pool, found, 1)
        if self._has_groups:
            for counter_set in _sets(found):
                self._join(pool, counter_set, found.groups.get(counter_set, ()))
        return True

    # Compatibility groups.

    def _join(self, pool: Pool, counter_set: str, groups: Iterable[str]) -> None:
        companies, own = self._companies_of(pool)[counter_set], frozenset(groups)
        companies.append(companies[-1].with_(own) if companies else _Company(bool(own), own))

    def _companies_of(self, pool: Pool) -> dict[str, list[_Company]]:
        """Return those of a pool, at first of the devices in use as they were when allocated."""
        companies = self._companies.get(pool.id)
        if companies is None:
            companies = self._companies[pool.id] = defaultdict(list)
            for other in pool.consumers:
                if self._in_use.is_allocated(other.id):
                    for groups in self._in_use.groups(other.id) or ({},):
                        for counter_set in groups.keys() | _sets(other):
                            self._join(pool, counter_set, groups.get(counter_set, ()))
            self._in_use_companies[pool.id] = {
                name: members[-1] for name, members in companies.items()
            }
        return companies

    # Counters.

    def _left_of(self, pool: Pool) -> dict[CounterName, int]:
        left = self._left.get(pool.id)
        if left is None:
            left = self._left[pool.id] = dict(pool.counters)
            for other in pool.consumers:
                if self._in_use.is_allocated(other.id):
                    for name, amount in other.consumes.items():
                        left[name] -= amount
        return left

    def _count(self, pool: Pool, found: PoolDevice, sign: int) -> None:
        taken = self._taken[pool.id]
        for name, amount in found.consumes.items():
            taken[name] = taken.get(name, 0) + sign * amount


def _sets(found: PoolDevice) -> frozenset[str]:
    """Return the counter sets that a device takes from."""
    return frozenset(each.counter_set for each in found.device.consumes_counters)


def _are_compatible(found: PoolDevice, companies: Mapping[str, _Company]) -> bool:
    """Whether the device may come to those that take from its counter sets."""
    return all(
        company.admits(frozenset(found.groups.get(counter_set, ())))
        for counter_set in _sets(found)
        if (company := companies.get(counter_set)) is not None
    )
