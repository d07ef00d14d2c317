"""A matching of requests and devices, before every combination of too few is tried."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from berth.kube.objects.devices import DeviceId


class Demand(NamedTuple):
    """So many devices, each another one, of those that would do."""

    needed: int
    devices: frozenset[DeviceId]


def are_enough(demands: Sequence[Demand], *, on_step: Callable[[], None]) -> bool:
    """Say whether all *demands* can be met at once, no device serving two.

    False is final; True says nothing of constraints and capacities. A matching by augmenting
    paths; *on_step* is called for each device that is looked at, and may raise.
    """
    total = sum(demand.needed for demand in demands)
    users: dict[DeviceId, frozenset[DeviceId]] = {}
    # Who has as many to choose from as there are wants in all is always served: leave him out.
    for needed, devices in (demand for demand in demands if len(demand.devices) < total):
        if len(devices) < needed or not all(_serve(devices, users, on_step) for _ in range(needed)):
            return False
    return True


def _serve(
    devices: frozenset[DeviceId],
    users: dict[DeviceId, frozenset[DeviceId]],
    on_step: Callable[[], None],
) -> bool:
    """Find a device for one more want, moving others to devices that serve them as well."""
    found_from: dict[DeviceId, DeviceId | None] = dict.fromkeys(devices)
    waiting = list(devices)
    for device in waiting:  # grows
        on_step()
        if device not in users:
            _move(device, found_from, users, devices)
            return True
        for other in users[device]:
            if other not in found_from:
                found_from[other] = device
                waiting.append(other)
    return False


def _move(
    free: DeviceId,
    found_from: dict[DeviceId, DeviceId | None],
    users: dict[DeviceId, frozenset[DeviceId]],
    newcomer: frozenset[DeviceId],
) -> None:
    """Let everybody on the way to *free* take the next device, and the newcomer the first."""
    while (before := found_from[free]) is not None:
        users[free] = users[before]
        free = before
    users[free] = newcomer
