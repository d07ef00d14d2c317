"""Runs the search on one node and puts what was found into words."""

from collections.abc import Callable, Sequence

from berth.kube.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from berth.kube.objects.node import Node
from berth.runtime.release import EffectiveVersion
from berth.scheduler.config.feature_gates import enabled_features
from berth_plugins.dynamic_resources.allocator import allocate
from berth_plugins.dynamic_resources.claim_tracker import ResourceClaimTracker
from berth_plugins.dynamic_resources.features import DEFAULT, Features
from berth_plugins.dynamic_resources.pools import shared_pools
from berth_plugins.dynamic_resources.requests import requests_of
from berth_plugins.dynamic_resources.search_result import ClaimPicks
from berth_plugins.shared.device_classes import DeviceClassResolver
from tests.builders import node
from tests.device_builders import device_class, listers

N1 = node("n1")

AS_1_36 = Features.of(enabled_features({}, EffectiveVersion.of("1.36")))
"""What 1.36.2 does by default."""


def picks(
    claims: Sequence[ResourceClaim],
    slices: Sequence[ResourceSlice],
    *,
    classes: Sequence[DeviceClass] = (device_class(),),
    others: Sequence[ResourceClaim] = (),
    on: Node = N1,
    is_late: Callable[[], bool] = lambda: False,
    features: Features = DEFAULT,
) -> tuple[ClaimPicks, ...] | None:
    """Search devices for *claims* while *others* have theirs."""
    known = DeviceClassResolver(listers(*classes))
    return allocate(
        [requests_of(claim, known, features) for claim in claims],
        on,
        shared_pools(listers(*slices), features).pools_of(on),
        ResourceClaimTracker(listers(*others)).in_use,
        is_late=is_late,
        features=features,
    )


def found(
    claims: ResourceClaim | Sequence[ResourceClaim],
    slices: ResourceSlice | Sequence[ResourceSlice],
    *,
    classes: Sequence[DeviceClass] = (device_class(),),
    others: Sequence[ResourceClaim] = (),
    on: Node = N1,
    features: Features = DEFAULT,
) -> list[str] | None:
    """Tell what was found as ``request=device``, of all claims; None if nothing was."""
    all_found = picks(
        [claims] if isinstance(claims, ResourceClaim) else claims,
        [slices] if isinstance(slices, ResourceSlice) else slices,
        classes=classes,
        others=others,
        on=on,
        features=features,
    )
    if all_found is None:
        return None
    return [f"{pick.request.name}={pick.found.id.device}" for of in all_found for pick in of.picks]
