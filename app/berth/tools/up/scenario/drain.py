"""``kubectl drain``: cordon a node, evict its pods, try again what a budget forbids."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec

from berth.cluster.actions import STRATEGIC_MERGE, Patch, perform
from berth.cluster.resources import Object
from berth.kube.client.api import Api
from berth.kube.client.errors import NotFoundError, TooManyRequestsError
from berth.runtime.clock import Clock

RETRY_SECONDS: Final = 5.0
"""Between two evictions of a pod that a budget protects: kubectl's."""
LOOK_SECONDS: Final = 1.0
"""Between two looks whether a pod is gone: kubectl's."""

MIRROR: Final = "kubernetes.io/config.mirror"


class Drainer:
    """Drains nodes through *api*. *say* is told what happens, as kubectl prints it."""

    def __init__(self, api: Api, *, clock: Clock, say: Callable[[str], None]) -> None:
        self._api = api
        self._clock = clock
        self._say = say

    async def drain(self, node: str, *, grace_seconds: int | None = None) -> None:
        """Return when the node has no pods but those of DaemonSets and static ones.

        As with ``--force --ignore-daemonsets --delete-emptydir-data``. It may take for ever.
        """
        await cordon(self._api, node)
        self._say(f"node/{node} cordoned")
        params = {"fieldSelector": f"spec.nodeName={node}"}
        listed = await self._api.request("GET", "/api/v1/pods", params=params)
        pods = [pod for pod in msgspec.json.decode(listed)["items"] if _is_to_go(pod)]
        async with asyncio.TaskGroup() as tasks:
            for pod in pods:
                name = f"evict {pod['metadata']['name']}"
                tasks.create_task(self._evict(pod, grace_seconds), name=name)
        self._say(f"node/{node} drained")

    async def _evict(self, pod: Object, grace_seconds: int | None) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        self._say(f"evicting pod {namespace}/{name}")
        while True:
            try:
                await evict(self._api, namespace, name, grace_seconds=grace_seconds)
            except TooManyRequestsError as exc:
                self._say(
                    f'error when evicting pods/"{name}" -n "{namespace}"'
                    f" (will retry after 5s): {exc.message}"
                )
                await self._clock.sleep(RETRY_SECONDS)
                continue
            except NotFoundError:
                return
            break
        while await self._has(namespace, name, pod["metadata"]["uid"]):
            await self._clock.sleep(LOOK_SECONDS)
        self._say(f"pod/{name} evicted")

    async def _has(self, namespace: str, name: str, uid: str) -> bool:
        try:
            current = await self._api.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
        except NotFoundError:
            return False
        return bool(msgspec.json.decode(current)["metadata"]["uid"] == uid)


async def cordon(api: Api, node: str, *, unschedulable: bool = True) -> None:
    """Make a node unschedulable, or schedulable again. Raises ApiError."""
    spec = {"unschedulable": True if unschedulable else None}
    await perform(api, Patch(f"/api/v1/nodes/{node}", {"spec": spec}, STRATEGIC_MERGE))


async def evict(api: Api, namespace: str, name: str, *, grace_seconds: int | None) -> None:
    """Evict a pod. Raises TooManyRequestsError when a budget forbids it, and other ApiErrors."""
    body: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
    }
    if grace_seconds is not None:
        body["deleteOptions"] = {"gracePeriodSeconds": grace_seconds}
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    await api.request("POST", path, body=msgspec.json.encode(body))


def _is_to_go(pod: Object) -> bool:
    """Whether a drain evicts the pod: kubectl leaves static pods and those of DaemonSets."""
    metadata = pod["metadata"]
    if MIRROR in (metadata.get("annotations") or {}):
        return False
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return True
    owners = metadata.get("ownerReferences") or ()
    return not any(owner.get("controller") and owner["kind"] == "DaemonSet" for owner in owners)
