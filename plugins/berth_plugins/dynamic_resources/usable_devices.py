"""Which devices of a pool can serve a request, as known from earlier searches (spec §5.17)."""

from collections.abc import Hashable, Sequence
from typing import Final

import msgspec

from berth_plugins.dynamic_resources.allocated_devices import AllocatedDevices
from berth_plugins.dynamic_resources.constraints import Typed, value_of
from berth_plugins.dynamic_resources.pools import Pool, PoolDevice, PoolId

MOST_KNOWN: Final = 100_000
"""So many pools are remembered, each for what was asked of it; pools and requests come and go."""

Numbered = tuple[int, PoolDevice]
"""A device and its position in the pool."""


class UsableDevices(msgspec.Struct, eq=False):
    """The devices of one pool that its other users leave to a request, which selects them."""

    pool: Pool
    version: int
    """Of the last change of a device of the pool."""
    devices: Sequence[Numbered]
    counting: Sequence[PoolDevice]
    """Those of them that take from the counters of the pool."""
    _values: dict[str, frozenset[Typed | None]] = msgspec.field(default_factory=dict)

    def have_value(self, attribute: str, value: Typed) -> bool:
        """Whether one of the devices has *value*."""
        values = self._values.get(attribute)
        if values is None:
            values = self._values[attribute] = frozenset(
                value_of(found.device, found.id.driver, attribute) for _, found in self.devices
            )
        return value in values


class KnownDevices:
    """What searches have found out about pools, by what a request asks of a device."""

    def __init__(self, in_use: AllocatedDevices) -> None:
        self._versions = in_use.pool_versions
        self._by_request: dict[Hashable, dict[PoolId, UsableDevices]] = {}
        self._count = 0

    def usable(self, asked: Hashable, pool: Pool) -> UsableDevices | None:
        """Return the usable devices, None if that is not known, or no more."""
        by_pool = self._by_request.get(asked)
        known = None if by_pool is None else by_pool.get(pool.id)
        if (
            known is None
            or known.pool is not pool
            or known.version != self._versions.get(pool.id, 0)
        ):
            return None
        return known

    def note(
        self,
        asked: Hashable,
        pool: Pool,
        devices: Sequence[Numbered],
        counting: Sequence[PoolDevice],
    ) -> None:
        if self._count >= MOST_KNOWN:
            self._by_request.clear()
            self._count = 0
        by_pool = self._by_request.setdefault(asked, {})
        self._count += pool.id not in by_pool
        version = self._versions.get(pool.id, 0)
        by_pool[pool.id] = UsableDevices(pool, version, devices, counting)
