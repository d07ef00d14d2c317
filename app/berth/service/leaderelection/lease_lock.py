"""The Lease on the API server: read, created, updated, with events about it (spec §10.1)."""

from typing import Any, Final

import msgspec

from berth.kube.client.api import Api
from berth.kube.client.errors import ApiError, NotFoundError
from berth.kube.objects.cluster import LeaseSpec
from berth.kube.objects.event import event_name
from berth.runtime.clock import Clock, rfc3339
from berth.runtime.duration import Duration
from berth.runtime.errors import UNREADABLE
from berth.service.leaderelection.candidate import Lease

API_VERSION: Final = "coordination.k8s.io/v1"


class LeaseLock:
    """One Lease. All methods raise :class:`~berth.kube.client.errors.ApiError`.

    A *timeout* of a request is in seconds, and told to the API server as client-go does. A late
    answer is waited for for *wait* seconds, by default as long. Events are recorded in the name of
    *component*.
    """

    def __init__(
        self,
        client: Api,
        *,
        namespace: str,
        name: str,
        component: str,
        clock: Clock,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._component = component
        self._clock = clock
        self._collection = f"/apis/{API_VERSION}/namespaces/{namespace}/leases"

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self._namespace}/{self._name}"

    async def get(self, *, timeout: float, wait: float | None = None) -> Lease | None:
        """Return the Lease, None when there is none."""
        try:
            path = f"{self._collection}/{self._name}"
            return await self._request("GET", path, timeout=timeout, wait=wait)
        except NotFoundError:
            return None

    async def create(self, spec: LeaseSpec, *, timeout: float, wait: float | None = None) -> Lease:
        """Create the Lease; AlreadyExistsError when somebody was quicker."""
        metadata = {"name": self._name, "namespace": self._namespace}
        body = {"kind": "Lease", "apiVersion": API_VERSION, "metadata": metadata, "spec": spec}
        return await self._request("POST", self._collection, body, timeout=timeout, wait=wait)

    async def update(
        self, lease: Lease, spec: LeaseSpec, *, timeout: float, wait: float | None = None
    ) -> Lease:
        """Replace the spec of *lease*; ConflictError when it changed since it was read.

        Everything else of the object stays as it was read.
        """
        path = f"{self._collection}/{self._name}"
        body = lease.with_spec(spec)
        return await self._request("PUT", path, body, timeout=timeout, wait=wait)

    async def event(self, lease: Lease, message: str, *, timeout: float) -> None:
        """Record a Normal ``LeaderElection`` event on *lease*: core/v1, as client-go does."""
        metadata = lease.raw.get("metadata", {})
        now = self._clock.now()
        body = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {
                "name": event_name(self._name, int(now * 1e9)),
                "namespace": self._namespace,
            },
            "involvedObject": {
                "kind": "Lease",
                "namespace": self._namespace,
                "name": self._name,
                "uid": metadata.get("uid", ""),
                "apiVersion": API_VERSION,
                "resourceVersion": metadata.get("resourceVersion", ""),
            },
            "reason": "LeaderElection",
            "message": message,
            "source": {"component": self._component},
            "firstTimestamp": rfc3339(now),
            "lastTimestamp": rfc3339(now),
            "count": 1,
            "type": "Normal",
            "eventTime": None,
            "reportingComponent": self._component,
            "reportingInstance": "",
        }
        await self._client.request(
            "POST",
            f"/api/v1/namespaces/{self._namespace}/events",
            body=msgspec.json.encode(body),
            timeout=timeout,
        )

    async def _request(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        timeout: float,
        wait: float | None,
    ) -> Lease:
        answer = await self._client.request(
            method,
            path,
            # so that the server gives up, too
            params={"timeout": str(Duration.of(timeout))},
            body=None if body is None else msgspec.json.encode(body),
            timeout=timeout if wait is None else wait,
        )
        return decode(answer)


def decode(answer: bytes) -> Lease:
    """Read a Lease. Anything else raises ApiError: it says no more than no answer."""
    try:
        raw = msgspec.json.decode(answer, type=dict[str, Any])
        return Lease(raw, spec=msgspec.convert(raw.get("spec") or {}, LeaseSpec))
    except UNREADABLE as exc:
        raise ApiError(0, "Malformed", f"not a Lease: {exc}") from exc
