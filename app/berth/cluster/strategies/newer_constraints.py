"""Constraints of the fields that came with Kubernetes 1.37: a part of the constraint table.

Sources: the API types and ``changes-1.37``; where they give no words for an error, those of similar
rules are taken.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from berth.cluster.resources import Object
from berth.cluster.strategies import syntax
from berth.cluster.strategies.constraints import ITSELF, Table
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

Rule = Callable[[Any, str], Iterable[FieldError]]

NOT_NEGATIVE: Final = "must be greater than or equal to 0"
MOST_MODE: Final = 0o777
MOST_USER: Final = 2**31 - 1
BOTH_OPERATIONS: Final = "*"
PREPARE, UNPREPARE = "NodePrepareResources", "NodeUnprepareResources"


def _one_of(*supported: str) -> Rule:
    def rule(value: str | None, path: str) -> Iterator[FieldError]:
        if value and value not in supported:
            yield field_errors.not_supported(path, value, supported)

    return rule


def _set_of(most: int, *supported: str) -> Rule:
    """Evaluate a list of different texts; without *supported* they are any."""

    def rule(values: list[str] | None, path: str) -> Iterator[FieldError]:
        if values and len(values) > most:
            yield field_errors.too_many(path, len(values), most)
        seen: set[str] = set()
        for index, value in enumerate(values or ()):
            here = f"{path}[{index}]"
            if supported and value not in supported:
                yield field_errors.not_supported(here, value, supported)
            elif value in seen:
                yield field_errors.duplicate(here, value)
            seen.add(value)

    return rule


def _most(most: int) -> Rule:
    def rule(values: list[Any] | None, path: str) -> Iterator[FieldError]:
        if values and len(values) > most:
            yield field_errors.too_many(path, len(values), most)

    return rule


def _required(value: Any, path: str) -> Iterator[FieldError]:
    if value in (None, ""):
        yield field_errors.required(path)


def _said(check: syntax.Rule) -> Rule:
    def rule(value: str | None, path: str) -> Iterator[FieldError]:
        for problem in check(value) if value else ():
            yield field_errors.invalid(path, value, problem)

    return rule


def _within(most: int, detail: str) -> Rule:
    def rule(value: int | None, path: str) -> Iterator[FieldError]:
        if value is not None and not 0 <= value <= most:
            yield field_errors.invalid(path, value, detail)

    return rule


_USER: Final = (_within(MOST_USER, f"must be between 0 and {MOST_USER}, inclusive"),)
_OPERATIONS: Final = _set_of(3, BOTH_OPERATIONS, PREPARE, UNPREPARE)


def _responders_or_group(spec: Object, path: str) -> Iterator[FieldError]:
    """A pod of a group cannot have responders (1.37 spec N7.3)."""
    if spec.get("evictionResponders") and spec.get("schedulingGroup"):
        where = f"{path}.evictionResponders"
        yield field_errors.forbidden(where, "may not be set together with `schedulingGroup`")


def _skipped_operations(values: list[str] | None, path: str) -> Iterator[FieldError]:
    """Preparing may be skipped only with what undoes it (1.37 spec N4.10)."""
    yield from _OPERATIONS(values, path)
    if values and PREPARE in values and UNPREPARE not in values and BOTH_OPERATIONS not in values:
        why = f"`{PREPARE}` requires `{UNPREPARE}`"
        yield field_errors.invalid(path, values, why)


def _mapping(mapping: Object, path: str) -> Iterator[FieldError]:
    """What a device takes of its node, by a capacity of it or as a whole (1.37 spec N4.11)."""
    given = [name for name in ("capacityKey", "capacityMultiplier") if name in mapping]
    if len(given) == 1:
        missing = ({"capacityKey", "capacityMultiplier"} - {*given}).pop()
        yield field_errors.required(f"{path}.{missing}", f"must be set with `{given[0]}`")
    if bool(given) is ("deviceMultiplier" in mapping):
        why = "must specify exactly one of: `capacityMultiplier`, `deviceMultiplier`"
        yield field_errors.invalid(path, "", why)


def _allocatable(of_node: dict[str, Object] | None, path: str) -> Iterator[FieldError]:
    for resource, taken in (of_node or {}).items():
        here = f"{path}[{resource}]"
        if resource not in ("cpu", "memory", "ephemeral-storage") and not resource.startswith(
            "hugepages-"
        ):
            why = "must be the name of a node-allocatable resource that is not an extended resource"
            yield field_errors.invalid(here, resource, why)
        if not (taken or {}).get("mapping") and not (taken or {}).get("overhead"):
            yield field_errors.required(here, "must specify one of: `mapping`, `overhead`")


DERIVED: Final = {"derivedAttributes": (_most(32),)}
TABLE: Final[Table] = {
    "core.v1.PodSpec": {"evictionResponders": (_most(10),), ITSELF: (_responders_or_group,)},
    "core.v1.EvictionResponder": {"name": (_required, _said(syntax.qualified_name))},
    "core.v1.VolumeMount": {"bindMountOptions": (_set_of(3, "nodev", "noexec", "nosuid"),)},
    "core.v1.HTTPGetAction": {"protocol": (_one_of("HTTP1", "HTTP2"),)},
    "core.v1.GRPCAction": {"mode": (_one_of("Plaintext", "TLS"),)},
    "core.v1.EmptyDirVolumeSource": {
        "mode": (_within(MOST_MODE, "must be a number between 0 and 0777 (octal), both inclusive"),)
    },
    "core.v1.SecretVolumeSource": {"defaultUser": _USER},
    "core.v1.ConfigMapVolumeSource": {"defaultUser": _USER},
    "core.v1.ProjectedVolumeSource": {"defaultUser": _USER},
    "core.v1.DownwardAPIVolumeSource": {"defaultUser": _USER},
    "core.v1.KeyToPath": {"user": _USER},
    "core.v1.ServiceAccountTokenProjection": {"user": _USER},
    "core.v1.DownwardAPIVolumeFile": {"user": _USER},
    "core.v1.ClusterTrustBundleProjection": {"user": _USER},
    "core.v1.PodCertificateProjection": {"user": _USER},
    "core.v1.NodePodPreemptionPolicy": {"disableResizePreemption": (_set_of(20),)},
    "resource.v1.ResourceSliceSpec": {
        "partitionTypeAttribute": (_said(syntax.qualified_name),),
        "skipNodeOperations": (_skipped_operations,),
    },
    "resource.v1.DeviceCounterConsumption": {"compatibilityGroups": (_set_of(2),)},
    "resource.v1.Device": {"nodeAllocatableResources": (_allocatable,)},
    "resource.v1.NodeAllocatableMapping": {ITSELF: (_mapping,)},
    "resource.v1.ExactDeviceRequest": DERIVED,
    "resource.v1.DeviceSubRequest": DERIVED,
    "resource.v1.DeviceDerivedAttribute": {"name": (_required,), "expression": (_required,)},
}


def combined(*tables: Table) -> Table:
    """Return one table; of an object type that several have, each has its fields."""
    found: dict[str, dict[str, tuple[Rule, ...]]] = {}
    for table in tables:
        for name, fields in table.items():
            known = found.setdefault(name, {})
            for field, rules in fields.items():
                known[field] = (*known.get(field, ()), *rules)
    return found
