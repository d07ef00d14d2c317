"""ResourceSlices: the devices of a driver and their attributes (``resource.k8s.io/v1``).

What a real server checks of device names and counters is not checked here.
"""

from collections.abc import Collection, Iterator
from typing import Any, Final

from berth.cluster.resources import Object, Strategy, section
from berth.cluster.schemas import builtin
from berth.cluster.strategies.by_schema import of_schema
from berth.cluster.strategies.device_constraints import check_allocatable
from berth.kube import field_errors
from berth.kube.cel.features import LIST_TYPE_ATTRIBUTES
from berth.kube.cel.semver import parse_version
from berth.kube.field_errors import FieldError
from berth.kube.objects.quantity import parse
from berth.runtime.release import RELEASE

NODE_ALLOCATABLE_RESOURCES: Final = "DRANodeAllocatableResources"

MAX_VALUE_LENGTH: Final = 64
"""Bytes of a string or version."""
MAX_LIST_VALUES: Final = 48
"""Of all lists of a device."""

_MAPPINGS: Final = "nodeAllocatableResourceMappings"
_VALUES: Final = ("bool", "int", "string", "version")
_LISTS: Final = ("bools", "ints", "strings", "versions")
_ONE: Final = "exactly one value must be specified"


def resource_slice(features: Collection[str] = (), release: str = RELEASE) -> Strategy:
    """Return the strategy of a server of *release* with the feature gates *features* on."""
    disabled = [find for gate, find in _BEHIND_GATES.items() if gate not in features]

    def prepare(new: Object, old: Object | None) -> None:
        for find in disabled:
            if old is None or not any(find(old)):
                for owner, name in list(find(new)):
                    del owner[name]

    schema = builtin.schema("io.k8s.api.resource.v1.ResourceSlice", release)
    return of_schema(schema, namespaced=False, prepare=prepare, check=_check, generation=True)


def _lists(resource_slice: Object) -> Iterator[tuple[Object, str]]:
    """Yield the attributes that are lists, each with the name of its field."""
    for device in section(resource_slice, "spec").get("devices") or ():
        for attribute in (device.get("attributes") or {}).values():
            yield from ((attribute, name) for name in _LISTS if name in (attribute or {}))


def _mappings(resource_slice: Object) -> Iterator[tuple[Object, str]]:
    """Yield the devices that stand for resources of the node, with the name of that field."""
    for device in section(resource_slice, "spec").get("devices") or ():
        if _MAPPINGS in device:
            yield device, _MAPPINGS


_BEHIND_GATES: Final = {LIST_TYPE_ATTRIBUTES: _lists, NODE_ALLOCATABLE_RESOURCES: _mappings}
"""By feature gate, what finds the fields that are dropped without it, each with what has it."""


def _check(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = [field_errors.required("spec.driver")] if not spec.get("driver") else []
    if not (spec.get("pool") or {}).get("name"):
        errors.append(field_errors.required("spec.pool.name"))
    for index, device in enumerate(spec.get("devices") or ()):
        errors += _check_attributes(device.get("attributes") or {}, f"spec.devices[{index}]")
        errors += _check_mappings(device, f"spec.devices[{index}].{_MAPPINGS}")
    return errors


def _check_mappings(device: Object, path: str) -> Iterator[FieldError]:
    """Evaluate what a device takes of its node (spec G15.3). The wording is a guess."""
    for resource, written in (device.get(_MAPPINGS) or {}).items():
        here, mapping = f"{path}[{resource}]", written or {}
        yield from check_allocatable(resource, here)
        key, multiplier = mapping.get("capacityKey"), mapping.get("allocationMultiplier")
        if key is None and multiplier is None:
            why = "at least one of `capacityKey` and `allocationMultiplier` must be specified"
            yield field_errors.required(here, why)
        if key is not None and key not in (device.get("capacity") or {}):
            yield field_errors.not_found(f"{here}.capacityKey", key)
        if multiplier is not None and parse(multiplier) <= 0:
            why = "must be greater than 0"
            yield field_errors.invalid(f"{here}.allocationMultiplier", multiplier, why)


def _check_attributes(attributes: Object, path: str) -> Iterator[FieldError]:
    count = 0
    for name, attribute in attributes.items():
        yield from _check_attribute(attribute or {}, f"{path}.attributes[{name}]")
        count += sum(len(attribute.get(field) or ()) for field in _LISTS)
    if count > MAX_LIST_VALUES:
        # The wording is a guess: 1.36 bounds the number, and its text is not at hand.
        detail = f"the total number of values in lists must not exceed {MAX_LIST_VALUES}"
        yield field_errors.invalid(f"{path}.attributes", count, detail)


def _check_attribute(attribute: Object, path: str) -> Iterator[FieldError]:
    given = [name for name in (*_VALUES, *_LISTS) if attribute.get(name) is not None]
    if len(given) != 1:
        yield field_errors.invalid(path, attribute if given else "", _ONE)
    for name in given:
        values: list[Any] = attribute[name] if name in _LISTS else [attribute[name]]
        if not values:
            yield field_errors.required(f"{path}.{name}")
        for index, value in enumerate(values):
            here = f"{path}.{name}[{index}]" if name in _LISTS else f"{path}.{name}"
            if name.startswith("version") and not _is_version(value):
                detail = "must be a string compatible with semver.org spec 2.0.0"
                yield field_errors.invalid(here, value, detail)
            if isinstance(value, str) and len(value.encode(errors="replace")) > MAX_VALUE_LENGTH:
                yield field_errors.too_long(here, MAX_VALUE_LENGTH)


def _is_version(text: str) -> bool:
    try:
        parse_version(text)
    except ValueError:
        return False
    return True
