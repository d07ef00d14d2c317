"""A run of one workload: what its operations share, and what is measured."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import msgspec

from berth.kube.client.api_client import ApiClient
from berth.kube.client.errors import AlreadyExistsError
from berth.runtime.clock import Clock
from berth.tools.bench.api_server import LABEL, create_node
from berth.tools.bench.binds import Binds
from berth.tools.bench.process import Measured
from berth.tools.bench.scheduler_perf.storage import Volume, claim_name, claim_source
from berth.tools.bench.scheduler_perf.templates import NONE, PREFIX, Object, pod_name
from berth.tools.bench.throughput import until_quiet
from berth.tools.bench.usage import Usage

NAMESPACES: Final = "/api/v1/namespaces"
NODES: Final = "/api/v1/nodes"
VOLUMES: Final = "/api/v1/persistentvolumes"
PODS: Final = "/api/v1/namespaces/{namespace}/pods"
SERVICES: Final = "/api/v1/namespaces/{namespace}/services"
CLAIMS: Final = "/api/v1/namespaces/{namespace}/persistentvolumeclaims"
MERGE_PATCH: Final = "application/merge-patch+json"


class Run:
    """What operations act on. Pods are known by ``namespace/name``."""

    def __init__(
        self, client: ApiClient, binds: Binds, scheduler: Measured, *, clock: Clock
    ) -> None:
        self.client = client
        self.clock = clock
        self.pods: dict[str, list[str]] = {}
        """By namespace: the pods that were created in it, in their order."""
        self.waiting: list[str] = []
        """Pods whose binds were not waited for."""
        self.measured: list[str] = []
        self.before: Usage | None = None
        """What the scheduler had used when the first measured pods were created."""
        self._binds = binds
        self._scheduler = scheduler
        self._meanwhile: list[asyncio.Task[None]] = []

    @classmethod
    @asynccontextmanager
    async def started(
        cls, client: ApiClient, binds: Binds, scheduler: Measured, *, clock: Clock
    ) -> AsyncIterator["Run"]:
        """Yield a run whose background operations end with the block."""
        run = cls(client, binds, scheduler, clock=clock)
        try:
            yield run
        finally:
            await run.end_background()

    async def create(self, path: str, obj: Object) -> None:
        """Create an object, unless it exists; *path* is that of its collection."""
        obj["metadata"].setdefault("labels", {})[LABEL] = ""
        with suppress(AlreadyExistsError):
            if path == NODES:
                await create_node(self.client, obj)
            else:
                await self.client.request("POST", path, body=msgspec.json.encode(obj))

    async def create_namespace(self, name: str, labels: Mapping[str, str] = NONE) -> None:
        if name not in self.pods:
            self.pods[name] = []
            metadata = {"name": PREFIX + name, "labels": {**labels}}
            await self.create(NAMESPACES, {"metadata": metadata})
            # Pods are not admitted before the controller, if there is one, has done this.
            accounts = f"{NAMESPACES}/{PREFIX}{name}/serviceaccounts"
            await self.create(accounts, {"metadata": {"name": "default"}})

    async def collection(self, path: str, namespace: str) -> str:
        """Return the path of a collection; with ``{namespace}`` in it, that namespace exists."""
        if "{namespace}" in path:
            await self.create_namespace(namespace)
        return path.format(namespace=PREFIX + namespace)

    async def create_pod(self, namespace: str, pod: Object, volume: Volume | None = None) -> None:
        n, pods = len(self.pods[namespace]), PODS.format(namespace=PREFIX + namespace)
        name = pod["metadata"]["name"] = pod_name(n)
        self.pods[namespace].append(f"{PREFIX}{namespace}/{name}")
        if volume is not None:
            await self._create_volume(namespace, n, volume)
            pod["spec"] |= claim_source(n)
        await self.client.request("POST", pods, body=msgspec.json.encode(pod))

    async def _create_volume(self, namespace: str, n: int, volume: Volume) -> None:
        """Create a claim and a volume that are bound, as the controller would have bound them."""
        claim, name = claim_name(n), f"pv-{namespace}-{n}"
        claims = CLAIMS.format(namespace=PREFIX + namespace)
        bound = {"status": {"phase": "Bound"}}
        await self.create(VOLUMES, volume.persistent_volume(name, PREFIX + namespace, claim))
        await self.patch(f"{VOLUMES}/{name}/status", bound)
        await self.create(claims, volume.claim(claim, name))
        await self.patch(f"{claims}/{claim}/status", bound)

    async def delete_pod(self, pod: str) -> None:
        """Delete the pod ``namespace/name``."""
        namespace, _, name = pod.partition("/")
        await self.client.request("DELETE", f"{PODS.format(namespace=namespace)}/{name}")

    async def patch(self, path: str, patch: Object) -> None:
        body = msgspec.json.encode(patch)
        await self.client.request("PATCH", path, body=body, content_type=MERGE_PATCH)

    async def begin_measuring(self) -> None:
        """Remember what the scheduler has used, unless that was done."""
        await self.settle()
        if self.before is None:
            self.before = self._scheduler.used()

    async def settle(self) -> None:
        """Wait until the scheduler has nothing left to do, if that can be and matters."""
        if self.before is None and not self._meanwhile:
            await until_quiet(self._scheduler, self.client, clock=self.clock)

    async def until_bound(self, pods: Iterable[str]) -> None:
        """Return when all are bound, or no more come."""
        await self._until(pods, self._binds.times.__contains__)

    async def until_attempted(self, pods: Iterable[str]) -> None:
        """Return when all are bound, or have the condition that they are not."""
        times, refused = self._binds.times, self._binds.refused
        await self._until(pods, lambda pod: pod in refused or pod in times)

    async def _until(self, pods: Iterable[str], is_done: Callable[[str], bool]) -> None:
        left = list(pods)

        def all_are_done() -> bool:
            while left and is_done(left[-1]):
                left.pop()
            return not left

        await self._binds.until_true(all_are_done, self._scheduler)

    async def in_background(self, *work: Coroutine[Any, Any, None]) -> None:
        """Do what is given, until the end of the run at most."""
        await self.settle()
        self._meanwhile += (
            asyncio.create_task(coroutine, name="scheduler_perf") for coroutine in work
        )

    async def end_background(self) -> None:
        """End what goes on in the background; raise its error if it has failed."""
        tasks, self._meanwhile = self._meanwhile, []
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
