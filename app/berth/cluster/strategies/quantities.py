"""Resource lists: names, quantities, requests against limits."""

from collections.abc import Mapping

from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas.checks import MALFORMED
from berth.cluster.schemas.quantities import unreadable
from berth.cluster.strategies import syntax
from berth.cluster.strategies.shape import Shape
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.quantity import NANO, Quantities, Quantity, parse

CONTAINER_RESOURCES = ("cpu", "memory", "ephemeral-storage")
STANDARD_RESOURCES = (*CONTAINER_RESOURCES, "storage", "pods")
FRACTIONAL_RESOURCES = (*CONTAINER_RESOURCES, "storage")
"""Of the standard resources and hugepages, those that need not be whole numbers."""


class ResourceRequirements(Shape, frozen=True):
    requests: Quantities | None = None
    limits: Quantities | None = None


def is_extended(name: str) -> bool:
    """Whether *name* is a resource of somebody's domain, such as ``example.com/gpu``."""
    return "/" in name and not name.partition("/")[0].endswith("kubernetes.io")


def validate_quantity(quantity: Quantity, path: str) -> list[FieldError]:
    """Evaluate one amount: readable and not negative."""
    try:
        nanos = parse(quantity)
    except ValueError:
        return [field_errors.invalid(path, quantity, MALFORMED)]
    if nanos < 0:
        return [field_errors.invalid(path, quantity, "must be greater than or equal to 0")]
    return []


def errors(resource: ResourceType, new: Object, old: Object | None) -> list[FieldError]:
    """Evaluate what no rule of a kind does: that each quantity is one, unless it is *old*."""
    if resource.structural is not None:
        return []
    if old is not None:
        new = {key: part for key, part in new.items() if part != old.get(key)}
    found = unreadable(resource.schema, new)
    before = unreadable(resource.schema, old) if found and old is not None else []
    return [field_errors.invalid(*each, MALFORMED) for each in found if each not in before]


def validate_capacity(amounts: Quantities | None, path: str) -> list[FieldError]:
    """Evaluate a node's capacity or allocatable."""
    errors = []
    for name, quantity in (amounts or {}).items():
        here = f"{path}.{name}"
        errors += _validate_name(name, here)
        errors += validate_quantity(quantity, here) or _validate_whole(name, quantity, here)
    return errors


def validate_requirements(resources: ResourceRequirements | None, path: str) -> list[FieldError]:
    """Evaluate a container's or a pod's ``resources``: each list, then requests against limits."""
    if resources is None:
        return []
    limits, requests = resources.limits or {}, resources.requests or {}
    errors = _validate_container_list(limits, f"{path}.limits")
    errors += _validate_container_list(requests, f"{path}.requests")
    if not errors:
        errors = _validate_request_against_limit(requests, limits, f"{path}.requests", path)
    return errors


def _validate_container_list(amounts: Mapping[str, Quantity], path: str) -> list[FieldError]:
    errors = []
    for name, quantity in amounts.items():
        here = f"{path}.{name}"
        complaints = _validate_name(name, here)
        if not complaints and not _is_container_resource(name):
            complaints = [
                field_errors.invalid(here, name, "must be a standard resource for containers")
            ]
        errors += complaints
        errors += validate_quantity(quantity, here) or _validate_whole(name, quantity, here)
    return errors


def _validate_request_against_limit(
    requests: Mapping[str, Quantity],
    limits: Mapping[str, Quantity],
    requests_path: str,
    path: str,
) -> list[FieldError]:
    errors = []
    for name, quantity in requests.items():
        overcommits = not (is_extended(name) or name.startswith("hugepages-"))
        if name not in limits:
            if not overcommits:
                detail = "Limit must be set for non overcommitable resources"
                errors.append(field_errors.required(f"{path}.limits", detail))
            continue
        requested, limit = parse(quantity), parse(limits[name])
        if not overcommits and requested != limit:
            detail = f"must be equal to {name} limit of {limits[name]}"
        elif requested > limit:
            detail = f"must be less than or equal to {name} limit of {limits[name]}"
        else:
            continue
        errors.append(field_errors.invalid(requests_path, str(quantity), detail))
    return errors


def _validate_name(name: str, path: str) -> list[FieldError]:
    errors = [field_errors.invalid(path, name, text) for text in syntax.qualified_name(name)]
    if not errors and "/" not in name and not _is_standard(name):
        detail = "must be a standard resource type or fully qualified"
        errors.append(field_errors.invalid(path, name, detail))
    return errors


def _validate_whole(name: str, quantity: Quantity, path: str) -> list[FieldError]:
    if name in FRACTIONAL_RESOURCES or parse(quantity) % NANO == 0:
        return []
    return [field_errors.invalid(path, quantity, "must be an integer")]


def _is_standard(name: str) -> bool:
    return name in STANDARD_RESOURCES or name.startswith(("hugepages-", "attachable-volumes-"))


def _is_container_resource(name: str) -> bool:
    return "/" in name or name in CONTAINER_RESOURCES or name.startswith("hugepages-")
