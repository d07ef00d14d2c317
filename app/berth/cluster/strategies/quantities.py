"""Resource lists: names, quantities, requests against limits."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas.checks import MALFORMED
from berth.cluster.schemas.quantities import unreadable
from berth.cluster.strategies import syntax
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.quantity import NANO, Quantity, parse

CONTAINER_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
PREFIXES: Final = ("requests.", "limits.")
WHOLE_RESOURCES: Final = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    }
)
"""What is counted."""
QUOTA_RESOURCES: Final = WHOLE_RESOURCES | {
    *(f"{prefix}{name}" for prefix in ("", *PREFIXES) for name in CONTAINER_RESOURCES),
    "requests.storage",
}
STANDARD_RESOURCES: Final = QUOTA_RESOURCES | {"storage"}

Names = Callable[[str, str], list[FieldError]]


def is_extended(name: str) -> bool:
    """Whether *name* is a resource of somebody's domain, such as ``example.com/gpu``."""
    return "/" in name and not name.partition("/")[0].endswith("kubernetes.io")


def overcommits(name: str) -> bool:
    """Whether containers may be promised more of a resource than they ask for."""
    return not is_extended(name) and not name.startswith("hugepages-")


def validate_quantity(quantity: Quantity, path: str) -> list[FieldError]:
    """Evaluate one amount: readable and not negative."""
    nanos = parse_or_none(quantity)
    if nanos is None:
        return [field_errors.invalid(path, quantity, MALFORMED)]
    if nanos < 0:
        return [field_errors.invalid(path, quantity, "must be greater than or equal to 0")]
    return []


def validate_amount(name: str, quantity: Quantity, path: str) -> list[FieldError]:
    """Evaluate an amount of a resource; there is no half of what is counted."""
    errors = validate_quantity(quantity, path)
    is_counted = name in WHOLE_RESOURCES or is_extended(name)
    if is_counted and (parse_or_none(quantity) or 0) % NANO:
        errors.append(field_errors.invalid(path, quantity, "must be an integer"))
    return errors


def parse_or_none(quantity: Quantity) -> int | None:
    """Return an amount in billionths; None: it is none."""
    try:
        return parse(quantity)
    except ValueError:
        return None


def errors(resource: ResourceType, new: Object, old: Object | None) -> list[FieldError]:
    """Evaluate what no rule of a kind does: that each quantity is one, unless it is *old*."""
    if resource.structural is not None:
        return []
    if old is not None:
        new = {key: part for key, part in new.items() if part != old.get(key)}
    found = unreadable(resource.schema, new)
    before = unreadable(resource.schema, old) if found and old is not None else []
    return [field_errors.invalid(*each, MALFORMED) for each in found if each not in before]


def amounts(quantities: Mapping[str, Quantity] | None, path: str) -> Iterator[FieldError]:
    """Evaluate the capacity of a node, whose resources may have any names."""
    for name, quantity in (quantities or {}).items():
        yield from validate_amount(name, quantity, f"{path}.{name}")


def container_resources(resources: Object, path: str) -> Iterator[FieldError]:
    """Evaluate a container's or a pod's ``resources``: each list, requests against limits."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for field, given in (("limits", limits), ("requests", requests)):
        for name, quantity in given.items():
            here = f"{path}.{field}[{name}]"
            yield from container_name(name, here)
            yield from validate_amount(name, quantity, here)
            if field == "requests":
                yield from _against_limit(name, quantity, limits, path)


def _against_limit(
    name: str, quantity: Quantity, limits: Mapping[str, Quantity], path: str
) -> Iterator[FieldError]:
    if name not in limits:
        if not overcommits(name):
            detail = "Limit must be set for non overcommitable resources"
            yield field_errors.required(f"{path}.limits", detail)
        return
    requested, limit = parse_or_none(quantity), parse_or_none(limits[name])
    if requested is None or limit is None:
        return
    here, most = f"{path}.requests", f"{name} limit of {limits[name]}"
    if requested != limit and not overcommits(name):
        yield field_errors.invalid(here, str(quantity), f"must be equal to {most}")
    elif requested > limit:
        yield field_errors.invalid(here, str(quantity), f"must be less than or equal to {most}")


def resource_name(name: str, path: str) -> list[FieldError]:
    """Evaluate the name of any resource."""
    errors = [field_errors.invalid(path, name, why) for why in syntax.qualified_name(name)]
    if not errors and "/" not in name and not _is_standard(name, STANDARD_RESOURCES):
        detail = "must be a standard resource type or fully qualified"
        errors.append(field_errors.invalid(path, name, detail))
    return errors


def container_name(name: str, path: str) -> list[FieldError]:
    """Evaluate the name of a resource that containers have."""
    errors = resource_name(name, path)
    if "/" not in name and not name.startswith("hugepages-") and name not in CONTAINER_RESOURCES:
        detail = "must be a standard resource for containers"
        errors.append(field_errors.invalid(path, name, detail))
    elif "/" in name and "kubernetes.io/" not in name and not _is_extended_well(name):
        detail = "doesn't follow extended resource name standard"
        errors.append(field_errors.invalid(path, name, detail))
    return errors


def quota_name(name: str, path: str) -> list[FieldError]:
    """Evaluate the name of what a quota limits."""
    errors = resource_name(name, path)
    if "/" not in name and not _is_standard(name, QUOTA_RESOURCES):
        errors.append(field_errors.invalid(path, name, "must be a standard resource for quota"))
    return errors


def _is_standard(name: str, names: frozenset[str]) -> bool:
    return name in names or name.startswith(("hugepages-", "requests.hugepages-"))


def _is_extended_well(name: str) -> bool:
    return not name.startswith("requests.") and not syntax.qualified_name(f"requests.{name}")
