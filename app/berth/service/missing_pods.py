"""Reasons of controllers for pods that they cannot create.

Workloads and events are not watched: they are listed when somebody asks.
"""

import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from berth.insight.explain.workload import Workload, cron_job_of
from berth.kube.client.api import Api
from berth.kube.client.errors import ApiError
from berth.kube.objects.names import is_subdomain
from berth.runtime.errors import UNREADABLE

log = logging.getLogger(__name__)

PATHS: Final[Mapping[str, str]] = {
    "cronjob": "/apis/batch/v1/namespaces/{}/cronjobs",
    "daemonset": "/apis/apps/v1/namespaces/{}/daemonsets",
    "deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "job": "/apis/batch/v1/namespaces/{}/jobs",
    "replicaset": "/apis/apps/v1/namespaces/{}/replicasets",
    "replicationcontroller": "/api/v1/namespaces/{}/replicationcontrollers",
    "statefulset": "/apis/apps/v1/namespaces/{}/statefulsets",
}
"""Of workloads, by kind."""
EVENTS: Final = "/api/v1/namespaces/{}/events"
WARNINGS: Final = "type=Warning"
MOST_SECONDS: Final = 5.0
"""How long one list may take: without it there is an answer, too."""
MOST_EVENTS: Final = "500"
FAILED_CREATE: Final = "FailedCreate"
COMBINED: Final = "(combined from similar events): "
REPLICA_FAILURE: Final = "ReplicaFailure"
MAKERS: Final[Mapping[str, str]] = {"deployment": "ReplicaSet", "cronjob": "Job"}
"""Kinds whose pods another kind creates for them, which is called after them."""

Object = Mapping[str, Any]

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class MissingPods:
    """Asks one API server."""

    def __init__(self, client: Api) -> None:
        self._client = client

    async def why(self, namespace: str, workload: Workload, *, num_pods: int) -> str | None:
        """Say why *workload*, which has so many pods that have not finished, has no more.

        Empty if it wants no more, or nobody says why; None if no such workload is known.
        """
        if not (is_subdomain(namespace) and is_subdomain(workload.name)):
            return None
        fields = {"fieldSelector": f"metadata.name={workload.name}"}
        listed = await self._list(PATHS[workload.kind].format(namespace), fields)
        if not listed:
            return None
        workload_now = listed[0]
        if why := _wants_none(workload.kind, workload_now):
            return "" if num_pods else why
        if num_pods >= _wanted(workload.kind, workload_now):
            return ""
        return _condition(workload_now) or await self._event(namespace, workload)

    async def _event(self, namespace: str, workload: Workload) -> str:
        """Return the last complaint about pods or Jobs that could not be created."""
        params = {"fieldSelector": WARNINGS, "limit": MOST_EVENTS}
        events = await self._list(EVENTS.format(namespace), params)
        about = [event for event in events or () if _is_about(event, workload)]
        last = max(about, key=_time_of, default={})
        message = str(last.get("message") or "")
        return message.removeprefix(COMBINED).removeprefix("Error creating: ")

    async def _list(self, path: str, params: Mapping[str, str]) -> list[Object] | None:
        """Return the objects at *path*; None if they cannot be listed."""
        try:
            body = await self._client.request("GET", path, params=params, timeout=MOST_SECONDS)
            items = _decode(body).get("items") or []
        except (ApiError, *UNREADABLE) as exc:
            log.info("cannot be listed to explain", extra={"path": path, "error": str(exc)})
            return None
        return [item for item in items if isinstance(item, dict)]


def _wanted(kind: str, workload: Object) -> int:
    """Return how many pods are wanted at a time; of a CronJob, any."""
    spec, status = workload.get("spec") or {}, workload.get("status") or {}
    match kind:
        case "daemonset":
            return int(status.get("desiredNumberScheduled") or 0)
        case "cronjob":
            return 1
        case "job":
            left = spec.get("completions", 1) - (status.get("succeeded") or 0)
            return int(min(spec.get("parallelism", 1), max(left, 0)))
    return int(spec.get("replicas", 1))


def _wants_none(kind: str, workload: Object) -> str:
    """Say why no pods are wanted; empty if some are."""
    spec, status = workload.get("spec") or {}, workload.get("status") or {}
    if spec.get("suspend"):
        return "it is suspended"
    match kind:
        case "cronjob":
            return ""
        case "job":
            ends = {c.get("type") for c in _conditions(workload) if c.get("status") == "True"}
            return "it has finished" if ends & {"Complete", "Failed"} else ""
        case "daemonset":
            is_seen = "observedGeneration" in status
            return "" if _wanted(kind, workload) or not is_seen else "no node is to run it"
    return "" if _wanted(kind, workload) else "it is scaled to 0"


def _conditions(workload: Object) -> Iterator[Object]:
    for condition in (workload.get("status") or {}).get("conditions") or ():
        if isinstance(condition, dict):
            yield condition


def _condition(workload: Object) -> str:
    for condition in _conditions(workload):
        if condition.get("type") == REPLICA_FAILURE and condition.get("status") == "True":
            return str(condition.get("message") or "")
    return ""


def _is_about(event: Object, workload: Workload) -> bool:
    if event.get("reason") != FAILED_CREATE:
        return False
    about = event.get("involvedObject") or {}
    kind, name = str(about.get("kind") or ""), str(about.get("name") or "")
    if (kind.lower(), name) == (workload.kind, workload.name):
        return True
    if kind != MAKERS.get(workload.kind):
        return False
    owner = cron_job_of(name) if workload.kind == "cronjob" else name.rpartition("-")[0]
    return owner == workload.name


def _time_of(event: Object) -> str:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return str(next(filter(None, times), ""))
