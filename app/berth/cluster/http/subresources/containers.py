"""The container of a pod that a request means."""

from collections.abc import Sequence

from berth.cluster import errors
from berth.cluster.resources import Object

FIELDS = ("containers", "initContainers", "ephemeralContainers")


def container_of(pod: Object, wanted: str) -> str:
    """Return the name of the container; the only one where none is *wanted*, else a 400."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    if wanted:
        if any(wanted in _names(spec, field) for field in FIELDS):
            return wanted
        raise errors.bad_request(f"container {wanted} is not valid for pod {name}")
    names, init = _names(spec, "containers"), _names(spec, "initContainers")
    if len(names) == 1:
        return names[0]
    why = f"a container name must be specified for pod {name}"
    if names:
        why += f", choose one of: {_listed(names)}"
    if init:
        why += f" or one of the init containers: {_listed(init)}"
    raise errors.bad_request(why)


def status_of(pod: Object, container: str) -> Object:
    """Return what the kubelet last said of a container; empty when it said nothing."""
    status = pod.get("status") or {}
    for field in FIELDS:
        for each in status.get(f"{field.removesuffix('s')}Statuses") or []:
            if each.get("name") == container:
                found: Object = each
                return found
    return {}


def _names(spec: Object, field: str) -> list[str]:
    return [each["name"] for each in spec.get(field) or []]


def _listed(names: Sequence[str]) -> str:
    return f"[{' '.join(names)}]"
