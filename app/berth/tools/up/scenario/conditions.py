"""Conditions of objects."""

from berth.cluster.resources import Object


def condition(obj: Object, kind: str, name: str) -> str:
    """Return the field *name* of an object's condition *kind*; "" if it has none."""
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition["type"] == kind:
            return str(condition.get(name) or "")
    return ""


def is_ready(obj: Object) -> bool:
    """Whether a pod or a node is ready."""
    return condition(obj, "Ready", "status") == "True"


def is_terminating(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def is_finished(pod: Object) -> bool:
    return phase_of(pod) in ("Succeeded", "Failed")


def phase_of(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def node_of(pod: Object) -> str:
    """Return the name of the node that a pod is bound to; "" if it is to none."""
    return str(pod["spec"].get("nodeName") or "")
