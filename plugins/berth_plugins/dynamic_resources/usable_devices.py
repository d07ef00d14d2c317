"""Devices of a pool that can serve a request, as known from earlier searches (spec §5.17)."""

from collections.abc import Hashable, Sequence
from typing import Final

import msgspec

from berth_plugins.dynamic_resources.allocated_devices import AllocatedDevices
from berth_plugins.dynamic_resources.constraints import Typed, value_of
from berth_plugins.dynamic_resources.pools import Pool, PoolDevice, PoolId

MOST_NOTED: Final = 500_000
"""After so many pools and devices all are forgotten; pools and requests come and go."""

Numbered = tuple[int, PoolDevice]
"""A device and its position in the pool."""


class UsableDevices(msgspec.Struct, eq=False):
    """The devices of one pool that its other users leave to a request, which selects them."""

    pool: Pool
    devices: Sequence[Numbered]
    counting: Sequence[PoolDevice]
    """Those of them that take from the counters of the pool."""
    _values: dict[str, frozenset[Typed | None]] = msgspec.field(default_factory=dict)

    def have_value(self, attribute: str, value: Typed) -> bool:
        """Whether one of the devices has *value*."""
        values = self._values.get(attribute)
        if values is None:
            values = self._values[attribute] = frozenset(
                value_of(device.device, device.id.driver, attribute) for _, device in self.devices
            )
        return value in values


class _Known(msgspec.Struct, eq=False):
    """What is known for one request."""

    version: int
    """Of the last change of a device of any pool."""
    by_pool: dict[PoolId, UsableDevices]


class KnownDevices:
    """What searches have found out about pools, by what a request asks of a device."""

    def __init__(self, in_use: AllocatedDevices) -> None:
        self._changes = in_use.changes
        self._by_request: dict[Hashable, _Known] = {}
        self._noted = 0

    def by_pool(self, asked: Hashable) -> dict[PoolId, UsableDevices]:
        """Return what holds until devices come to somebody or become free.

        It is about the pool that it names: another one may have the same ID by now.
        """
        known, last = self._by_request.get(asked), self._changes.version
        if known is None:
            return {}
        if known.version != last:
            changed = self._changes.since(known.version)
            if changed is None:
                known.by_pool.clear()
            for driver, pool in changed or ():
                known.by_pool.pop(PoolId(driver, pool), None)
            known.version = last
        return known.by_pool

    def note(self, asked: Hashable, usable: UsableDevices) -> None:
        if self._noted >= MOST_NOTED:
            self._by_request.clear()
            self._noted = 0
        self._noted += 1 + len(usable.devices)
        if asked not in self._by_request:
            self._by_request[asked] = _Known(self._changes.version, {})
        self.by_pool(asked)[usable.pool.id] = usable
