"""The kinds that a server of a release has, with feature gates as they are."""

from collections.abc import Collection, Iterator
from typing import Final

from berth.cluster.features import DEVICE_TAINT_RULES
from berth.cluster.kinds.builtin import resources
from berth.cluster.kinds.gated_devices import GROUP, changed_device_kinds, device_taint_rules
from berth.cluster.kinds.gated_groups import BETA, groups
from berth.cluster.kinds.gated_groups_alpha import alpha_groups
from berth.cluster.kinds.gates import GENERIC_WORKLOAD, SCHEDULING
from berth.cluster.resources import ResourceType
from berth.cluster.schemas import builtin
from berth.runtime.release import RELEASE

SWITCHED: Final = {(GROUP, "devicetaintrules"): DEVICE_TAINT_RULES}
"""Kinds that a release may serve by default, with the gate that takes them away."""


def served(features: Collection[str], release: str = RELEASE) -> tuple[ResourceType, ...]:
    """Return all kinds of a server of *release* with *features* on, in the order of discovery.

    Of two at the same URL the last counts.
    """
    off = {kind for kind, gate in SWITCHED.items() if gate not in features}
    usual = [kind for kind in resources(release) if (kind.group, kind.plural) not in off]
    return (*usual, *gated_kinds(features, release))


def gated_kinds(features: Collection[str], release: str = RELEASE) -> tuple[ResourceType, ...]:
    """Return the kinds that a server with *features* on has beside those by default, or instead."""
    return (*_groups(features, release), *_devices(features, release))


def _groups(features: Collection[str], release: str) -> Iterator[ResourceType]:
    if GENERIC_WORKLOAD not in features:
        return
    if builtin.schema_of(SCHEDULING, BETA, "PodGroup", release) is None:
        yield from alpha_groups(features)
    else:
        yield from groups(features, release)


def _devices(features: Collection[str], release: str) -> Iterator[ResourceType]:
    yield from changed_device_kinds(features, release)
    is_known = builtin.schema_of(GROUP, "v1", "DeviceTaintRule", release) is not None
    if DEVICE_TAINT_RULES in features and not is_known:
        yield device_taint_rules()
