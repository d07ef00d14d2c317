"""LimitRanges: what containers get that say nothing, and what nobody may ask for; all of JSON."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from berth.kube.objects.amounts import Amount, Amounts, amount, amounts
from berth.kube.objects.pod_amounts import limits_of, requests_of
from berth.kube.objects.pod_defaults import Object

ANNOTATION = "kubernetes.io/limit-ranger"
"""What of a pod was set, and where."""

Check: TypeAlias = Callable[[str, str, Amount, Amounts, Amounts], str]


def in_one(offences: Iterable[str]) -> str:
    """Write several offences as one error, as the API server does."""
    said = [*offences]
    return said[0] if len(said) == 1 else f"[{', '.join(said)}]"


def set_defaults(pod: Object, limit_range: Object) -> None:
    """Give the containers of *pod* what the spec *limit_range* says for those that are silent."""
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for item in limit_range.get("limits") or ():
        if item.get("type") == "Container":
            requests |= item.get("defaultRequest") or {}
            limits |= item.get("default") or {}
    told: list[str] = []
    spec: Object = pod.setdefault("spec", {})
    for field, kind in (("containers", "container"), ("initContainers", "init container")):
        for container in spec.get(field) or ():
            resources = container["resources"] = container.get("resources") or {}
            for given, defaults, name in (
                ("requests", requests, "request"),
                ("limits", limits, "limit"),
            ):
                missing = sorted(defaults.keys() - (resources.get(given) or {}).keys())
                if missing:
                    added = {name: defaults[name] for name in missing}
                    resources[given] = {**(resources.get(given) or {}), **added}
                    told.append(f"{', '.join(missing)} {name} for {kind} {container.get('name')}")
    if told:
        metadata: Object = pod.setdefault("metadata", {})
        annotations = metadata["annotations"] = metadata.get("annotations") or {}
        annotations[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(told)}"


def pod_offences(limit_range: Object, pod: Object) -> Iterator[str]:
    """Yield how a pod offends against a LimitRange."""
    spec = pod.get("spec") or {}
    for item in limit_range.get("limits") or ():
        if item.get("type") == "Container":
            for field in ("containers", "initContainers"):
                for container in spec.get(field) or ():
                    resources = container.get("resources") or {}
                    requests = amounts(resources.get("requests"))
                    yield from _offences(item, requests, amounts(resources.get("limits")))
        elif item.get("type") == "Pod":
            yield from _offences(item, requests_of(pod), limits_of(pod))


def claim_offences(limit_range: Object, claim: Object) -> Iterator[str]:
    """Yield how a PersistentVolumeClaim does."""
    spec = claim.get("spec") or {}
    requests = amounts((spec.get("resources") or {}).get("requests"))
    for item in limit_range.get("limits") or ():
        if item.get("type") == "PersistentVolumeClaim":
            yield from _each(_least, item, "min", requests, {})
            yield from _each(_most_requested, item, "max", requests, {})


def _offences(item: Object, requests: Amounts, limits: Amounts) -> Iterator[str]:
    yield from _each(_least, item, "min", requests, limits)
    yield from _each(_most, item, "max", requests, limits)
    yield from _each(_ratio, item, "maxLimitRequestRatio", requests, limits)


def _each(
    check: Check, item: Mapping[str, Any], field: str, requests: Amounts, limits: Amounts
) -> Iterator[str]:
    for name, quantity in (item.get(field) or {}).items():
        why = check(name, item["type"], amount(quantity), requests, limits)
        if why:
            yield why


def _least(name: str, kind: str, enforced: Amount, requests: Amounts, limits: Amounts) -> str:
    said = f"minimum {name} usage per {kind} is {enforced}"
    request, limit = requests.get(name), limits.get(name)
    if request is None:
        return f"{said}.  No request is specified"
    if request.nanos < enforced.nanos:
        return f"{said}, but request is {request}"
    if limit is not None and limit.nanos < enforced.nanos:
        return f"{said}, but limit is {limit}"
    return ""


def _most(name: str, kind: str, enforced: Amount, requests: Amounts, limits: Amounts) -> str:
    said = f"maximum {name} usage per {kind} is {enforced}"
    request, limit = requests.get(name), limits.get(name)
    if limit is None:
        return f"{said}.  No limit is specified"
    if limit.nanos > enforced.nanos:
        return f"{said}, but limit is {limit}"
    if request is not None and request.nanos > enforced.nanos:
        return f"{said}, but request is {request}"
    return ""


def _most_requested(
    name: str, kind: str, enforced: Amount, requests: Amounts, _limits: Amounts
) -> str:
    said = f"maximum {name} usage per {kind} is {enforced}"
    request = requests.get(name)
    if request is None:
        return f"{said}.  No request is specified"
    return f"{said}, but request is {request}" if request.nanos > enforced.nanos else ""


def _ratio(name: str, kind: str, enforced: Amount, requests: Amounts, limits: Amounts) -> str:
    said = f"{name} max limit to request ratio per {kind} is {enforced}, but"
    request, limit = requests.get(name), limits.get(name)
    if request is None or not request.nanos:
        return f"{said} no request is specified or request is 0"
    if limit is None or not limit.nanos:
        return f"{said} no limit is specified or limit is 0"
    if limit.nanos * 10**9 > enforced.nanos * request.nanos:
        return f"{said} provided ratio is {limit.nanos / request.nanos:f}"
    return ""
