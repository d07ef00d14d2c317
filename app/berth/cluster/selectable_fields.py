"""Fields of each kind for ``fieldSelector``, beyond name and namespace.

The lists are the API server's: a selector on any other field is refused.
"""

from collections.abc import Callable

from berth.cluster.columns.cells import dig
from berth.cluster.events_view import NEW_NAMES
from berth.cluster.resources import Object

Field = Callable[[Object], str]


def text_at(path: str) -> Field:
    """Return the text at the dotted *path*, "" when unset."""
    return lambda obj: str(dig(obj, path) or "")


def flag_at(path: str) -> Field:
    """Return ``true`` or ``false``; what is not set is false."""
    return lambda obj: "true" if dig(obj, path) else "false"


def pod_ips(pod: Object) -> str:
    """Return all addresses of the pod, separated by commas."""
    return ",".join(each.get("ip", "") for each in dig(pod, "status.podIPs") or ())


def event_source(event: Object) -> str:
    """Return the component that reported the event, by either API's field."""
    return str(dig(event, "source.component") or event.get("reportingComponent") or "")


CERTIFICATE_SIGNING_REQUEST: dict[str, Field] = {"spec.signerName": text_at("spec.signerName")}

NAMESPACE: dict[str, Field] = {"status.phase": text_at("status.phase")}

JOB: dict[str, Field] = {"status.successful": lambda job: str(dig(job, "status.succeeded") or 0)}

NODE: dict[str, Field] = {"spec.unschedulable": flag_at("spec.unschedulable")}

POD: dict[str, Field] = {
    path: text_at(path)
    for path in (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    )
} | {"spec.hostNetwork": flag_at("spec.hostNetwork"), "status.podIPs": pod_ips}

REPLICATION_CONTROLLER: dict[str, Field] = {
    "status.replicas": lambda controller: str(dig(controller, "status.replicas") or 0)
}

SERVICE: dict[str, Field] = {path: text_at(path) for path in ("spec.clusterIP", "spec.type")}

RESOURCE_SLICE: dict[str, Field] = {
    path: text_at(path) for path in ("spec.driver", "spec.nodeName")
}

POOL_OF_SLICE: dict[str, Field] = {"spec.pool.name": text_at("spec.pool.name")}

OBJECT_FIELDS = (
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath",
)

EVENT: dict[str, Field] = {
    **{f"involvedObject.{field}": text_at(f"involvedObject.{field}") for field in OBJECT_FIELDS},
    **{path: text_at(path) for path in ("reason", "reportingComponent", "type")},
    "source": event_source,
}

EVENTS_K8S_IO_EVENT: dict[str, Field] = {
    **{f"regarding.{field}": text_at(f"regarding.{field}") for field in OBJECT_FIELDS},
    **{path: text_at(path) for path in ("reason", NEW_NAMES["reportingComponent"], "type")},
}

SECRET: dict[str, Field] = {"type": text_at("type")}
