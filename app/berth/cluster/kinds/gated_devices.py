"""Devices as a server has them with feature gates that are off by default."""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from berth.cel.features import LIST_TYPE_ATTRIBUTES
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import ResourceType
from berth.cluster.strategies import devices, resource_slices

GROUP: Final = "resource.k8s.io"

_STRATEGIES: Final = {
    "deviceclasses": devices.device_class,
    "resourceclaims": devices.resource_claim,
    "resourceclaimtemplates": devices.resource_claim_template,
    "resourceslices": resource_slices.resource_slice,
}


def device_kinds(features: Collection[str]) -> tuple[ResourceType, ...]:
    """Return the kinds that a server with *features* on has instead of its own, or beside them."""
    if LIST_TYPE_ATTRIBUTES not in features:
        return ()
    return tuple(
        replace(find(GROUP, "v1", plural), strategy=strategy(features))
        for plural, strategy in _STRATEGIES.items()
    )
