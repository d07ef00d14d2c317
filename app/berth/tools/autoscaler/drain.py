"""Removes a node: its taint, the evictions of its pods, and the node itself."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from berth.cluster.actions import MERGE
from berth.cluster.events.correlator import Reference
from berth.cluster.events.recorder import EventRecorder
from berth.kube.client.api import Api
from berth.kube.client.errors import ApiError, ConflictError, NotFoundError
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock
from berth.tools.autoscaler.actions import RemoveNode
from berth.tools.autoscaler.drainability import DEFAULT_GRACE_SECONDS
from berth.tools.autoscaler.options import AutoscalingOptions
from berth.tools.autoscaler.scale_down import DELETION_CANDIDATE, TO_BE_DELETED

log = logging.getLogger(__name__)

EVICTION_RETRY_SECONDS: Final = 10.0
POLL_SECONDS: Final = 5.0
HEADROOM_SECONDS: Final = 30.0
"""That a pod may take longer than its grace period to be gone."""
CONFLICTS: Final = 5
"""Writes of a node that are tried again because it has changed meanwhile."""

GracePeriod = Callable[[Pod], int | None]
"""Returns ``terminationGracePeriodSeconds`` of a pod, None if it is not known."""


class DrainError(Exception):
    """A node whose pods do not leave it."""


class Drainer:
    """Carries out removals through the API."""

    def __init__(
        self,
        client: Api,
        options: AutoscalingOptions,
        *,
        events: EventRecorder,
        grace_period: GracePeriod,
        clock: Clock,
    ) -> None:
        self._client = client
        self._options = options
        self._events = events
        self._grace_period = grace_period
        self._clock = clock

    async def drain(self, removal: RemoveNode) -> None:
        """Have the pods leave a node that has its taint. Raises DrainError."""
        daemons = [self._evict_somehow(pod) for pod in removal.daemon_pods]
        until = self._clock.monotonic() + self._options.max_pod_eviction_time.seconds
        results = await asyncio.gather(
            *(self._evict(pod, until=until) for pod in removal.pods), *daemons
        )
        failures = [result for result in results if result]
        if failures:
            raise DrainError(
                f"Failed to drain node /{removal.node}, due to following errors:"
                f" [{' '.join(failures)}]"
            )
        await self._wait_until_gone(removal)

    async def taint(self, node: str, key: str, *, effect: str, value: str = "") -> None:
        """Add a taint to *node*, unless it has one of this *key*. Raises ApiError."""

        def change(taints: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
            if any(taint["key"] == key for taint in taints):
                return list(taints)
            return [*taints, {"key": key, "value": value, "effect": effect}]

        await self._change_taints(node, change)

    async def untaint(self, node: str, *keys: str) -> None:
        """Take the taints with these *keys* from *node*. Raises ApiError."""
        await self._change_taints(
            node, lambda taints: [taint for taint in taints if taint["key"] not in keys]
        )

    async def clean(self, node: str) -> None:
        """Take all of the autoscaler's taints from *node*. Raises ApiError."""
        await self.untaint(node, TO_BE_DELETED, DELETION_CANDIDATE)

    async def _change_taints(
        self, node: str, change: Callable[[Sequence[dict[str, Any]]], list[dict[str, Any]]]
    ) -> None:
        path = f"/api/v1/nodes/{node}"
        for attempt in range(CONFLICTS):
            found = msgspec.json.decode(await self._client.request("GET", path))
            taints = found["spec"].get("taints") or []
            changed = change(taints)
            if changed == taints:
                return
            version = found["metadata"]["resourceVersion"]
            body = {"metadata": {"resourceVersion": version}, "spec": {"taints": changed or None}}
            try:
                await self._client.request(
                    "PATCH", path, body=msgspec.json.encode(body), content_type=MERGE
                )
            except ConflictError:
                if attempt == CONFLICTS - 1:
                    raise
            else:
                return

    async def _evict(self, pod: Pod, *, until: float) -> str:
        """Evict *pod*, again and again until it works; return what is wrong if it never does."""
        about = reference(pod)
        self._events.event(about, reason="ScaleDown", message="deleting pod for node scale down")
        while True:
            error = await self._try_to_evict(pod)
            if error is None:
                return ""
            if self._clock.monotonic() >= until:
                break
            await self._clock.sleep(EVICTION_RETRY_SECONDS)
        message = "failed to delete pod for ScaleDown"
        self._events.event(about, type="Warning", reason="ScaleDownFailed", message=message)
        return f"failed to evict pod {pod.key} within allowed timeout (last error: {error})"

    async def _evict_somehow(self, pod: Pod) -> str:
        """Evict a pod of a DaemonSet, which does not matter."""
        await self._try_to_evict(pod)
        return ""

    async def _try_to_evict(self, pod: Pod) -> ApiError | None:
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.metadata.name, "namespace": pod.metadata.namespace},
            "deleteOptions": {"gracePeriodSeconds": self._seconds_to_stop(pod)},
        }
        try:
            await self._client.request(
                "POST", f"{path_of(pod)}/eviction", body=msgspec.json.encode(eviction)
            )
        except NotFoundError:
            return None
        except ApiError as exc:
            return exc
        return None

    def _seconds_to_stop(self, pod: Pod) -> int:
        seconds = self._grace_period(pod)
        seconds = DEFAULT_GRACE_SECONDS if seconds is None else seconds
        return min(seconds, self._options.max_graceful_termination_sec)

    async def _wait_until_gone(self, removal: RemoveNode) -> None:
        if not removal.pods:
            return
        longest = max(self._seconds_to_stop(pod) for pod in removal.pods)
        until = self._clock.monotonic() + longest + HEADROOM_SECONDS
        while not await self._are_gone(removal):
            if self._clock.monotonic() >= until:
                raise DrainError(
                    f"Failed to drain node /{removal.node}: pods remaining after timeout"
                )
            await self._clock.sleep(POLL_SECONDS)

    async def _are_gone(self, removal: RemoveNode) -> bool:
        for pod in removal.pods:
            try:
                current = msgspec.json.decode(await self._client.request("GET", path_of(pod)))
            except NotFoundError:
                continue
            except ApiError as exc:
                log.debug("cannot look for pod", extra={"pod": pod.key, "error": str(exc)})
                return False
            is_same = current["metadata"]["uid"] == pod.metadata.uid
            if is_same and current["spec"].get("nodeName") == removal.node:
                return False
        return True


def path_of(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"


def reference(pod: Pod) -> Reference:
    """Return what an event about *pod* refers to."""
    meta = pod.metadata
    return Reference("v1", "Pod", meta.namespace, meta.name, meta.uid, meta.resource_version)
