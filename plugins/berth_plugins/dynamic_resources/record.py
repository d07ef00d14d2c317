"""Devices as the record of a decision shows them."""

from typing import Any

from berth_plugins.dynamic_resources.capacity import canonical
from berth_plugins.dynamic_resources.search_result import Pick
from berth_plugins.dynamic_resources.state import NodeFind


def recorded(find: NodeFind) -> dict[str, list[dict[str, Any]]]:
    """Return what was found on one node, by name of the claim."""
    return {
        claim.name: [_device(pick) for pick in picks.picks]
        for claim, picks in zip(find.claims, find.picks, strict=True)
    }


def _device(pick: Pick) -> dict[str, Any]:
    id_ = pick.found.id
    device: dict[str, Any] = {
        "request": str(pick.request.name),
        "driver": id_.driver,
        "pool": id_.pool,
        "device": id_.device,
    }
    if pick.request.has_admin_access:
        device["adminAccess"] = True
    if pick.share:
        device["consumedCapacity"] = {name: canonical(pick.share[name]) for name in pick.share}
    return device
