"""LimitRanger: what containers of a namespace get that say nothing, and what nobody may ask for."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from berth.cluster.amounts import Amount, Amounts, amount, amounts
from berth.cluster.kinds.builtin import find
from berth.cluster.pod_amounts import limits_of, requests_of
from berth.cluster.reading import UNREADABLE
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import Store
from berth.cluster.strategies.shape import section
from berth.cluster.writes.admission.by_namespace import ByNamespace
from berth.cluster.writes.admission.refusals import forbidden
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step

ANNOTATION = "kubernetes.io/limit-ranger"
"""What of a pod was set, and where."""

LIMIT_RANGES = find("", "v1", "limitranges")
PODS = find("", "v1", "pods").storage_key
VOLUME_CLAIMS = find("", "v1", "persistentvolumeclaims").storage_key

Check: TypeAlias = Callable[[str, str, Amount, Amounts, Amounts], str]


class LimitRanger(Step):
    def __init__(self, store: Store) -> None:
        self._ranges = ByNamespace(store, LIMIT_RANGES, unreadable=True)

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        """Pods when they are created, as their resources stay, or are resized; claims always."""
        key = resource.storage_key
        if operation is Operation.CREATE:
            return not subresource and key in (PODS, VOLUME_CLAIMS)
        if operation is not Operation.UPDATE:
            return False
        return (key, subresource) in ((PODS, "resize"), (VOLUME_CLAIMS, ""))

    def admit(self, request: AdmissionRequest) -> None:
        """Give containers the defaults."""
        pod = request.object
        if pod is None or request.resource.storage_key != PODS or _is_deleted(request):
            return
        for each in self._ranges.get(request.namespace):
            with _readable(request, each):
                _set_defaults(pod, each.get("spec") or {})

    def validate(self, request: AdmissionRequest) -> None:
        obj = request.object
        if obj is None or _is_deleted(request):
            return
        is_pod = request.resource.storage_key == PODS
        for each in self._ranges.get(request.namespace):
            with _readable(request, each):
                offences = (_of_pod if is_pod else _of_claim)(each.get("spec") or {}, obj)
                found = dict.fromkeys(offences)
            if found:
                said = [*found]
                raise forbidden(request, said[0] if len(said) == 1 else f"[{', '.join(said)}]")


@contextmanager
def _readable(request: AdmissionRequest, limit_range: Object) -> Iterator[None]:
    """Refuse where limits cannot be read: what they would allow, nobody knows."""
    try:
        yield
    except UNREADABLE as exc:
        name = limit_range["metadata"]["name"]
        why = f"limit range {name} cannot be read: {type(exc).__name__}: {exc}"
        raise forbidden(request, why) from exc


def _is_deleted(request: AdmissionRequest) -> bool:
    old = request.old_object
    return old is not None and "deletionTimestamp" in old["metadata"]


def _set_defaults(pod: Object, limit_range: Object) -> None:
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for item in limit_range.get("limits") or ():
        if item.get("type") == "Container":
            requests |= item.get("defaultRequest") or {}
            limits |= item.get("default") or {}
    told: list[str] = []
    spec = section(pod, "spec")
    for field, kind in (("containers", "container"), ("initContainers", "init container")):
        for container in spec.get(field) or ():
            resources = section(container, "resources")
            for given, defaults, name in (
                ("requests", requests, "request"),
                ("limits", limits, "limit"),
            ):
                missing = sorted(defaults.keys() - (resources.get(given) or {}).keys())
                if missing:
                    added = {each: defaults[each] for each in missing}
                    resources[given] = {**(resources.get(given) or {}), **added}
                    told.append(f"{', '.join(missing)} {name} for {kind} {container.get('name')}")
    if told:
        annotations = section(pod, "metadata", "annotations")
        annotations[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(told)}"


def _of_pod(limit_range: Object, pod: Object) -> Iterator[str]:
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


def _of_claim(limit_range: Object, claim: Object) -> Iterator[str]:
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
