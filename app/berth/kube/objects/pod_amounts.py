"""Requests and limits of a pod as a whole, of its JSON."""

from collections.abc import Iterator

import msgspec

from berth.kube.objects.amounts import Amount, Amounts
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_defaults import Object
from berth.kube.objects.quantity import is_binary
from berth.kube.objects.resources import pod_limits, pod_requests


def requests_of(obj: Object) -> Amounts:
    """Return what the pod requests: the most of its containers at once, with overhead."""
    return _amounts(
        obj, pod_requests(msgspec.convert(obj, Pod), use_status=True, pod_level=True), "requests"
    )


def limits_of(obj: Object) -> Amounts:
    """Return the limits of the pod, likewise."""
    return _amounts(obj, pod_limits(msgspec.convert(obj, Pod)), "limits")


def containers_of(spec: Object) -> Iterator[Object]:
    """Yield the containers, those that initialise after the others."""
    yield from spec.get("containers") or ()
    yield from spec.get("initContainers") or ()


def _amounts(obj: Object, nanos: dict[str, int], field: str) -> Amounts:
    """Write *nanos* as the first quantity of each name in the pod is written."""
    spec = obj.get("spec") or {}
    lists = [
        (container.get("resources") or {}).get(field) or {} for container in containers_of(spec)
    ]
    lists += [(spec.get("resources") or {}).get(field) or {}, spec.get("overhead") or {}]
    binary = {
        name: is_binary(quantity) for list_ in reversed(lists) for name, quantity in list_.items()
    }
    return {name: Amount(amount, binary.get(name, False)) for name, amount in nanos.items()}
