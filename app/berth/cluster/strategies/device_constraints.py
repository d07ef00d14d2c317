"""Constraints of devices, claims of them and taints on them: a part of the constraint table.

Those of fields that came with Kubernetes 1.37 are by the API types; where nothing gives the words
of an error, those of similar rules are taken.
"""

from collections.abc import Iterator
from typing import Final

from berth.cluster.resources import Object
from berth.cluster.strategies import syntax
from berth.cluster.strategies.constraints import (
    ITSELF,
    Owners,
    Rules,
    Table,
    Within,
    at_most,
    distinct,
    enumerated,
    named,
    of_each,
    one_of,
    required,
    said,
    spelled,
    text,
)
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.quantity import parse

Errors = Iterator[FieldError]

MAX_DRIVER_LENGTH: Final = 63
MAX_POOL_LENGTH: Final = 253
MAX_CONDITIONS: Final = 8
ALLOCATABLE: Final = ("cpu", "memory", "ephemeral-storage")
"""Resources of nodes that devices may take, besides huge pages."""
PREPARE, UNPREPARE, BOTH = "NodePrepareResources", "NodeUnprepareResources", "*"


def check_allocatable(resource: str, path: str) -> Errors:
    """Evaluate the name of a resource that a device takes of its node. The wording is a guess."""
    if resource not in ALLOCATABLE and not resource.startswith("hugepages-"):
        why = "must be the name of a node-allocatable resource that is not an extended resource"
        yield field_errors.invalid(path, resource, why)


def _device_constraint(constraint: Object, path: str) -> Errors:
    """Refuse none, and both, with upstream's words, which are those for both."""
    fields = ("matchAttribute", "distinctAttribute")
    if sum(constraint.get(field) is not None for field in fields) != 1:
        why = 'exactly one of "matchAttribute" or "distinctAttribute" is required'
        yield field_errors.required(path, f"{why}, but multiple fields are set")


def _device_request(request: Object, path: str) -> Errors:
    if not request.get("exactly") and not request.get("firstAvailable"):
        detail = "exactly one of `exactly` or `firstAvailable` is required"
        yield field_errors.required(path, detail)


def _skipped_operations(operations: list[str] | None, path: str) -> Errors:
    """Preparing may be skipped only with what undoes it (1.37 spec N4.10)."""
    if operations and PREPARE in operations and not {UNPREPARE, BOTH} & {*operations}:
        yield field_errors.invalid(path, operations, f"`{PREPARE}` requires `{UNPREPARE}`")


def _allocatable(of_node: dict[str, Object] | None, path: str) -> Errors:
    for resource, taken in (of_node or {}).items():
        here = f"{path}[{resource}]"
        yield from check_allocatable(resource, here)
        if not (taken or {}).get("mapping") and not (taken or {}).get("overhead"):
            yield field_errors.required(here, "must specify one of: `mapping`, `overhead`")


def _mapping(mapping: Object, path: str, owners: Owners) -> Errors:
    """What a device takes of its node, by a capacity of it or as a whole (1.37 spec N4.11)."""
    device = owners[-3] if len(owners) > 2 else {}
    key = mapping.get("capacityKey")
    if key is not None and key not in (device.get("capacity") or {}):
        yield field_errors.not_found(f"{path}.capacityKey", key)
    by_capacity = ("capacityKey", "capacityMultiplier")
    missing = [name for name in by_capacity if name not in mapping]
    if len(missing) == 1:
        given = next(name for name in by_capacity if name in mapping)
        yield field_errors.required(f"{path}.{missing[0]}", f"must be set with `{given}`")
    if (len(missing) < len(by_capacity)) is ("deviceMultiplier" in mapping):
        why = "must specify exactly one of: `capacityMultiplier`, `deviceMultiplier`"
        yield field_errors.invalid(path, "", why)


def _positive(multiplier: str | int | None, path: str) -> Errors:
    if multiplier is not None and parse(multiplier) <= 0:
        yield field_errors.invalid(path, multiplier, "must be greater than 0")


def _attribute(name: str) -> list[str]:
    """Evaluate ``gpu.example.com/model``. The words about the domain are a guess."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        return ["must include a domain"]
    return [*syntax.dns1123_subdomain(domain), *syntax.c_identifier(identifier)]


def _driver(name: str) -> list[str]:
    if len(name.encode(errors="replace")) > MAX_DRIVER_LENGTH:
        return [f"must be no more than {MAX_DRIVER_LENGTH} bytes"]
    return syntax.dns1123_subdomain(name)


def _pool(name: str) -> list[str]:
    """One or more subdomains, with slashes between."""
    if len(name.encode(errors="replace")) > MAX_POOL_LENGTH:
        return [f"must be no more than {MAX_POOL_LENGTH} bytes"]
    return [complaint for part in name.split("/") for complaint in syntax.dns1123_subdomain(part)]


def _taint_rules(version: str) -> Table:
    """Return the constraints of DeviceTaintRules (spec G15.1), which releases have in versions."""
    types = f"resource.{version}."
    return {
        f"{types}DeviceTaintRuleSpec": {"deviceSelector": (), "taint": ()},
        f"{types}DeviceTaintSelector": {
            "driver": (said(_driver),),
            "pool": (said(_pool),),
            "device": (said(syntax.dns1123_label),),
        },
        f"{types}DeviceTaint": {
            "key": (spelled(syntax.qualified_name),),
            "value": (said(syntax.label_value),),
            "effect": (required(), enumerated("NoExecute", "NoSchedule", "None")),
        },
        f"{types}DeviceTaintRuleStatus": {"conditions": (at_most(MAX_CONDITIONS),)},
    }


_DERIVED: Final[Rules] = (at_most(32),)

DEVICE_TABLE: Final[Table] = {
    **_taint_rules("v1"),
    **_taint_rules("v1beta2"),
    "resource.v1.DeviceClaimConfiguration": {"opaque": (required(),)},
    "resource.v1.DeviceClassConfiguration": {"opaque": (required(),)},
    "resource.v1.DeviceClaim": {"requests": (distinct("name"),)},
    "resource.v1.ExactDeviceRequest": {
        "deviceClassName": (named(syntax.dns1123_subdomain),),
        "derivedAttributes": _DERIVED,
    },
    "resource.v1.DeviceSubRequest": {"derivedAttributes": _DERIVED},
    "resource.v1.DeviceDerivedAttribute": {
        "name": (named(_attribute),),
        "expression": (required(),),
    },
    "resource.v1.DeviceConstraint": {
        "requests": (distinct(),),
        ITSELF: (_device_constraint,),
    },
    "resource.v1.DeviceRequest": {
        "name": (spelled(syntax.dns1123_label),),
        ITSELF: (_device_request,),
    },
    "resource.v1.ResourceSliceSpec": {
        "partitionTypeAttribute": (text(_attribute),),
        "skipNodeOperations": (
            at_most(3),
            of_each(one_of(BOTH, PREPARE, UNPREPARE)),
            distinct(),
            _skipped_operations,
        ),
    },
    "resource.v1.Device": {"nodeAllocatableResources": (_allocatable,)},
    "resource.v1.DeviceCounterConsumption": {"compatibilityGroups": (at_most(2), distinct())},
    "resource.v1.NodeAllocatableMapping": {
        ITSELF: (Within(_mapping),),
        "capacityMultiplier": (_positive,),
        "deviceMultiplier": (_positive,),
    },
}
