"""The story of the recorded writes, told to ``berth run``, and what it then asks of the API server.

Two nodes of 4 CPU. ``plain`` is bound; ``toolarge`` fits nowhere; ``gated`` waits and is released
at the end; ``low-a``, ``low-b`` fill both nodes; ``high`` preempts ``low-b``; ``withclaim`` gets a
device; ``withpvc`` asks for a WaitForFirstConsumer volume that nobody provisions.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from tests.e2e.replicas import PODS, Cluster, Proxy, berth, cluster, until

Object = dict[str, Any]

SETTING: dict[str, list[Object]] = {
    "/apis/scheduling.k8s.io/v1/priorityclasses": [
        {"metadata": {"name": "high"}, "value": 1000},
        {"metadata": {"name": "low"}, "value": 1},  # so that it is low-b that has to go
    ],
    "/apis/storage.k8s.io/v1/storageclasses": [
        {
            "metadata": {"name": "wffc"},
            "provisioner": "example.com/nobody",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    ],
    "/apis/resource.k8s.io/v1/deviceclasses": [
        {
            "metadata": {"name": "gpu.example.com"},
            "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]},
        },
    ],
}
CLAIMS: dict[str, Object] = {
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims": {
        "metadata": {"name": "one-gpu"},
        "spec": {
            "devices": {
                "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]
            }
        },
    },
    "/api/v1/namespaces/default/persistentvolumeclaims": {
        "metadata": {"name": "data", "finalizers": ["kubernetes.io/pvc-protection"]},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "wffc",
        },
    },
}


class Request(NamedTuple):
    method: str
    uri: str
    body: Any
    status: int


class Recorder(Proxy):
    """A proxy that notes every request that was answered."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.requests: list[Request] = []
        self._is_closed = False

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._is_closed:
            return await super()._handle(request)
        data = await request.read()
        body = msgspec.json.decode(data) if data else None
        if "watch=true" in request.raw_path:  # its answer never ends
            self.requests.append(Request("WATCH", request.raw_path, body, 200))
            return await super()._handle(request)
        place = len(self.requests)
        self.requests.append(Request(request.method, request.raw_path, body, 0))
        response = await super()._handle(request)
        self.requests[place] = self.requests[place]._replace(status=response.status)
        return response

    def wrote(self, method: str, path: str) -> bool:
        return any(
            r.method == method and r.uri.partition("?")[0] == path and r.status
            for r in self.requests
        )

    def close_if_all_are_answered(self) -> bool:
        """Note nothing more, unless an answer is awaited: the lease goes on being renewed."""
        self._is_closed = all(request.status for request in self.requests)
        return self._is_closed


class Story:
    """Tells one part after the other, each when the one before has come to its end."""

    def __init__(self, made: Cluster, recorder: Recorder) -> None:
        self._made = made
        self._recorder = recorder

    async def tell(self) -> None:
        await self._set_scene()
        await self._bound("plain", cpu="100m")
        await self._pod("toolarge", cpu="100")
        await self._until_written("PATCH", f"{PODS}/toolarge/status")
        await self._pod("gated", cpu="100m", schedulingGates=[{"name": "example.com/wait"}])
        await self._bound("low-a", cpu="3", priorityClassName="low")
        await self._bound("low-b", cpu="3")
        await self._bound("high", cpu="3", priorityClassName="high")
        for path, claim in CLAIMS.items():
            await self._post(path, claim)
        claims = [{"name": "gpu", "resourceClaimName": "one-gpu"}]
        await self._bound("withclaim", cpu="100m", resourceClaims=claims)
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        await self._pod("withpvc", cpu="100m", volumes=volumes)
        await self._until_written("PUT", "/api/v1/namespaces/default/persistentvolumeclaims/data")
        await self._made.client.request(
            "PATCH",
            f"{PODS}/gated",
            body=msgspec.json.encode({"spec": {"schedulingGates": []}}),
            content_type="application/merge-patch+json",
        )
        await self._until_bound("gated")
        await until(lambda: len(self._events_of("toolarge")) == 2, "toolarge was tried again")
        await until(lambda: bool(self._events_of("gated")), "the last event is written")
        await until(self._recorder.close_if_all_are_answered, "all is answered")

    async def _set_scene(self) -> None:
        for path, objects in SETTING.items():
            for obj in objects:
                await self._post(path, obj)
        for name in await self._nodes():
            device = {
                "metadata": {"name": name},
                "spec": {
                    "driver": "gpu.example.com",
                    "nodeName": name,
                    "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": "gpu-0"}],
                },
            }
            await self._post("/apis/resource.k8s.io/v1/resourceslices", device)

    async def _nodes(self) -> list[str]:
        """Return both nodes, once they are there."""
        while True:
            answer = await self._made.client.request("GET", "/api/v1/nodes")
            names = [node["metadata"]["name"] for node in msgspec.json.decode(answer)["items"]]
            if len(names) == 2:
                return names
            await asyncio.sleep(0.01)

    async def _pod(self, name: str, *, cpu: str, **spec: Any) -> None:
        resources: Object = {"requests": {"cpu": cpu}}
        if claims := spec.get("resourceClaims"):
            resources["claims"] = [{"name": claim["name"]} for claim in claims]
        container = {"name": "c", "image": "i", "resources": resources}
        pod = {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}
        await self._post(PODS, pod)

    async def _bound(self, name: str, *, cpu: str, **spec: Any) -> None:
        await self._pod(name, cpu=cpu, **spec)
        await self._until_bound(name)

    async def _until_bound(self, name: str) -> None:
        await self._until_written("POST", f"{PODS}/{name}/binding")

    async def _until_written(self, method: str, path: str) -> None:
        await until(lambda: self._recorder.wrote(method, path), f"{method} {path}")

    def _events_of(self, pod: str) -> list[Request]:
        return [
            request
            for request in self._recorder.requests
            if request.uri.endswith("/events")
            and request.body.get("regarding", {}).get("name") == pod
        ]

    async def _post(self, path: str, obj: Object) -> None:
        await self._made.client.request("POST", path, body=msgspec.json.encode(obj))


@asynccontextmanager
async def told(folder: Path) -> AsyncIterator[Recorder]:
    """Tell the whole story; then hand out who listened."""
    async with cluster(folder, nodes=2, cpu="4") as made:
        recorder = Recorder(made.url)
        async with (
            recorder.serving(),
            berth(
                "run", f"--master={recorder.url}", "--secure-port=0", "-v=2",
                "--emulated-version=1.36",
                log=folder / "scheduler.log",
            ),
        ):  # fmt: skip
            await Story(made, recorder).tell()
            yield recorder
