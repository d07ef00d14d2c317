"""Compatibility groups: devices that may take from one counter set together (1.37 spec N4.8)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from berth_plugins.dynamic_resources.allocated_devices import AllocatedDevices
from berth_plugins.dynamic_resources.pools import Pool, PoolDevice, PoolId


class _Intersection(NamedTuple):
    """Groups that all devices have that take from one counter set.

    As in kube-scheduler (KEP-5963) three devices need one in common, even if each two have one.
    """

    has_groups: bool
    """Whether the devices declare any; then ``groups`` may be empty only by contradiction."""
    groups: frozenset[str]

    def admits(self, groups: frozenset[str]) -> bool:
        """Whether a device with *groups* may be added; one without may be to those without."""
        return bool(self.groups & groups) if self.has_groups else not groups

    def with_device(self, groups: frozenset[str]) -> "_Intersection":
        return _Intersection(self.has_groups or bool(groups), self.groups & groups)


class CompatibilityGroups:
    """The devices that take from the counter sets of all pools, during one search."""

    def __init__(self, in_use: AllocatedDevices) -> None:
        self._in_use = in_use
        self._allocated: dict[PoolId, dict[str, _Intersection]] = {}
        """By counter set, of the devices that are allocated."""
        self._added: defaultdict[PoolId, defaultdict[str, list[_Intersection]]] = defaultdict(
            lambda: defaultdict(list)
        )
        """By counter set, of these and those that the search added, after each of the latter."""

    def would_admit(self, pool: Pool, device: PoolDevice) -> bool:
        """Whether *device* is compatible with those that are allocated."""
        return _admit(self._allocated_of(pool), device)

    def admit(self, pool: Pool, device: PoolDevice) -> bool:
        """Whether *device* is compatible with those that are allocated or added."""
        latest = {name: after[-1] for name, after in self._added[pool.id].items() if after}
        return _admit({**self._allocated_of(pool), **latest}, device)

    def add(self, pool: Pool, device: PoolDevice) -> None:
        """Count *device*, which was admitted."""
        allocated, added = self._allocated_of(pool), self._added[pool.id]
        for counter_set in _counter_sets(device):
            after = added[counter_set]
            before = after[-1] if after else allocated.get(counter_set)
            after.append(_extended(before, device.groups.get(counter_set, ())))

    def remove(self, pool: Pool, device: PoolDevice) -> None:
        """Undo the last :meth:`add`, of the same device."""
        for counter_set in _counter_sets(device):
            self._added[pool.id][counter_set].pop()

    def _allocated_of(self, pool: Pool) -> dict[str, _Intersection]:
        """Return those of allocated devices: what their claims say counts, not the slices.

        A guess about N4.8: of a claim that says nothing the slice counts. The API of 1.37 that is
        known has no such field in a claim's status, so that an API server drops it.
        """
        known = self._allocated.get(pool.id)
        if known is None:
            known = self._allocated[pool.id] = {}
            for device in pool.consumers:
                if self._in_use.is_allocated(device.id):
                    for groups in self._in_use.groups(device.id) or (device.groups,):
                        for counter_set in groups.keys() | _counter_sets(device):
                            before = known.get(counter_set)
                            known[counter_set] = _extended(before, groups.get(counter_set, ()))
        return known


def _extended(before: _Intersection | None, groups: Iterable[str]) -> _Intersection:
    own = frozenset(groups)
    return _Intersection(bool(own), own) if before is None else before.with_device(own)


def _admit(intersections: Mapping[str, _Intersection], device: PoolDevice) -> bool:
    return all(
        intersection.admits(frozenset(device.groups.get(counter_set, ())))
        for counter_set in _counter_sets(device)
        if (intersection := intersections.get(counter_set)) is not None
    )


def _counter_sets(device: PoolDevice) -> frozenset[str]:
    """Return the counter sets that a device takes from."""
    return frozenset(each.counter_set for each in device.device.consumes_counters)
