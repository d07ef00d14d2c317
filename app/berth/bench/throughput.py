"""``berth bench throughput``: pods per second, and what a scheduler process spends on each.

::

    API server process  <-- nodes, pending pods --  this process
            ^                                          |  watches pods: when each is bound
            |                                          |  reads /proc: CPU and memory
    scheduler process   <-- started when all is there --

Any scheduler can be measured, against any API server: nothing is asked of either but the API.
"""

import asyncio
import shlex
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from berth.bench import workloads
from berth.bench.process import BenchError, Measured, running
from berth.client.api_client import ApiClient
from berth.client.connect import connect
from berth.client.errors import AlreadyExistsError
from berth.clock import Clock

NAMESPACE: Final = "berth-bench"
PODS_PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
EVENTS_PATH: Final = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
NODE_LABEL: Final = "berth-bench"
"""On every node that was made here, so that these can be deleted again."""

WORKLOADS: Final = {
    "plain": "plain, all requests equal",
    "zone-spread": "required zone spread",
    "hostname-anti-affinity": "required anti-affinity on hostname",
    "zone-affinity": "required zone affinity",
}
"""Names on the command line, to those of :mod:`berth.bench.workloads`. The pods are replicas."""

HOPELESS: Final = "fits nowhere"

REQUESTS_AT_ONCE: Final = 16
NOT_READY: Final = b"node.kubernetes.io/not-ready"
LOOK_SECONDS: Final = 0.005
START_SECONDS: Final = 30.0
STALL_SECONDS: Final = 60.0
"""Without a bind for so long, no further ones are waited for."""
QUIET_SECONDS: Final = 0.5
QUIET_SHARE: Final = 0.1
"""A scheduler that uses less of a core than this has written what it had to write."""
BERTH: Final = (sys.executable, "-m", "berth")
RUN_FLAGS: Final = (
    "--secure-port=0",
    "--leader-elect=false",
    "--kube-api-qps=5000",
    "--kube-api-burst=5000",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure. *command* is another scheduler's command line, ``{kubeconfig}`` in it.

    The nodes have no kubelets: a cluster of *kubeconfig* must not have a node lifecycle controller.
    """

    nodes: int = 5_000
    pods: int = 3_000
    kubeconfig: Path | None = None
    """None: an embedded API server is started for each workload."""
    command: str = ""
    hopeless: int = 0
    """Pods that fit nowhere, all of one signature, mixed evenly among the ``pods``."""


@dataclass(frozen=True, slots=True)
class Result:
    """One workload. CPU is the scheduler process's, in seconds."""

    workload: str
    pods: int
    bound: int
    events: int
    """Events that the API server has of these pods, at the end."""
    told: int
    """Pods whose condition says that they fit nowhere, at the end."""
    seconds: float
    """From the first bind to the last."""
    since_start: float
    """Seconds from the start of the scheduler process to the last bind."""
    cpu_before: float
    """Up to the first bind: start, lists, filling the cache and the queue."""
    cpu_binding: float
    """From the first bind to the last."""
    cpu_after: float
    """After the last bind until all is quiet: events and watches that binds overtook."""
    peak_memory: int
    """Bytes."""

    @property
    def pods_per_second(self) -> float:
        return (self.bound - 1) / self.seconds if self.seconds else 0.0

    @property
    def cpu_per_pod(self) -> float:
        """Seconds from the first bind until quiet, per bound pod."""
        return (self.cpu_binding + self.cpu_after) / max(self.bound, 1)

    @property
    def cpu_per_pod_with_start(self) -> float:
        return self.cpu_before / max(self.bound, 1) + self.cpu_per_pod


async def measure(workload: str, settings: Settings, *, clock: Clock) -> Result:
    """Measure one of :data:`WORKLOADS`; BenchError or ApiError when that is not possible."""
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as folder:
        async with api_server(settings, Path(folder), clock=clock) as (kubeconfig, client):
            await _clear(client)
            try:
                await _fill(client, workload, settings)
                watching = _Binds(client, clock=clock, wanted=settings.pods)
                command = _command(settings, kubeconfig)
                output = Path(folder) / "scheduler.log"
                await watching.find_start()
                async with running(command, output=output) as scheduler:
                    return await watching.measure(scheduler, workload)
            finally:
                if settings.kubeconfig is not None:
                    await _clear(client)


@asynccontextmanager
async def api_server(
    settings: Settings, folder: Path, *, clock: Clock
) -> AsyncIterator[tuple[Path, ApiClient]]:
    """Yield a kubeconfig and a client, of an embedded API server of its own if none is given."""
    if settings.kubeconfig is not None:
        client = await connect(kubeconfig=str(settings.kubeconfig), qps=0, user_agent="berth-bench")
        try:
            yield settings.kubeconfig, client
        finally:
            await client.close()
        return
    kubeconfig, output = folder / "kubeconfig", folder / "cluster.log"
    # Without TLS, which costs both sides what is not the scheduler's work.
    command = (*BERTH, "cluster", "--insecure", f"--kubeconfig-out={kubeconfig}")
    async with running(command, output=output) as server:
        deadline = clock.monotonic() + START_SECONDS
        while "API server at" not in output.read_text(encoding="utf-8"):
            server.check()
            if clock.monotonic() > deadline:
                raise BenchError(f"the API server did not start within {START_SECONDS:.0f} s")
            await clock.sleep(0.05)
        client = await connect(kubeconfig=str(kubeconfig), qps=0, user_agent="berth-bench")
        try:
            yield kubeconfig, client
        finally:
            await client.close()


def _command(settings: Settings, kubeconfig: Path) -> list[str]:
    if settings.command:
        words = shlex.split(settings.command)
        return [word.replace("{kubeconfig}", str(kubeconfig)) for word in words]
    return [*BERTH, "run", f"--kubeconfig={kubeconfig}", *RUN_FLAGS]


# What is there before the scheduler starts.


async def _fill(client: ApiClient, workload: str, settings: Settings) -> None:
    with suppress(AlreadyExistsError):
        body = msgspec.json.encode({"metadata": {"name": NAMESPACE}})
        await client.request("POST", "/api/v1/namespaces", body=body)
    await create_nodes(client, settings.nodes)
    await at_once(
        partial(client.request, "POST", PODS_PATH, body=msgspec.json.encode(pod))
        for pod in _pods(workload, settings)
    )


async def create_nodes(client: ApiClient, count: int) -> None:
    """Create nodes that are ready, without kubelets."""
    await at_once(partial(_create_node, client, node) for node in _nodes(count))


async def _create_node(client: ApiClient, node: dict[str, Any]) -> None:
    """Create *node* and take away the taint that API servers give to new nodes."""
    body = msgspec.json.encode(node)
    answer = await client.request("POST", "/api/v1/nodes", body=body)
    if NOT_READY in answer:
        await client.request(
            "PATCH",
            f"/api/v1/nodes/{node['metadata']['name']}",
            body=msgspec.json.encode({"spec": {"taints": node["spec"].get("taints")}}),
            content_type="application/merge-patch+json",
        )


def _nodes(count: int) -> Iterator[dict[str, Any]]:
    for node in workloads.nodes(count):
        obj: dict[str, Any] = msgspec.to_builtins(node)
        obj["metadata"]["labels"][NODE_LABEL] = ""
        yield obj


def _pods(workload: str, settings: Settings) -> Iterator[dict[str, Any]]:
    specs = {w.name: w.spec(0) for w in workloads.WORKLOADS}
    spec, hopeless = specs[WORKLOADS[workload]], specs[HOPELESS]
    for n in range(settings.pods):  # named so that they are mixed where they are sorted, too
        share = (settings.hopeless * i // settings.pods for i in (n, n + 1))
        for hopeless_n in range(*share):
            yield _pod(f"pod-{n:06}-hopeless-{hopeless_n}", hopeless)
        yield _pod(f"pod-{n:06}-plain", spec)


def _pod(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"app": "app-0"}}, "spec": spec}


async def at_once(requests: Iterable[Callable[[], Awaitable[object]]]) -> None:
    """Make all requests, a few at a time; the first error is raised."""
    waiting = iter(requests)

    async def work() -> None:
        for request in waiting:
            await request()

    await asyncio.gather(*(work() for _ in range(REQUESTS_AT_ONCE)))


async def _clear(client: ApiClient) -> None:
    """Delete what a measurement leaves behind, whether this one or one that broke off."""
    at_once = b'{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}'
    for path in (PODS_PATH, EVENTS_PATH):
        await client.request("DELETE", path, body=at_once)
    await client.request("DELETE", "/api/v1/nodes", params={"labelSelector": NODE_LABEL})


# What is measured.


class _Meta(msgspec.Struct, rename="camel", frozen=True):
    name: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, rename="camel", frozen=True):
    node_name: str = ""


class _Condition(msgspec.Struct, frozen=True):
    reason: str = ""


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] = ()


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def is_told(self) -> bool:
        """Whether a condition says that the pod fits nowhere."""
        return any(condition.reason == "Unschedulable" for condition in self.status.conditions)


class _Event(msgspec.Struct):
    type: str
    object: _Object


class _List(msgspec.Struct):
    metadata: _Meta = _Meta()
    items: list[msgspec.Raw] = []


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_list = msgspec.json.Decoder(_List).decode
_decode_object = msgspec.json.Decoder(_Object).decode


@dataclass
class _Binds:
    """Watches the pods get their nodes, independently of who gives them."""

    client: ApiClient
    clock: Clock
    wanted: int
    bound: dict[str, float] = field(default_factory=dict)
    """When each pod was seen to have a node, monotonic seconds."""
    _version: str = ""

    async def find_start(self) -> None:
        """Remember where to watch from: no bind after this is missed."""
        answer = await self.client.request("GET", PODS_PATH, params={"limit": "1"})
        self._version = _decode_list(answer).metadata.resource_version

    async def measure(self, scheduler: Measured, workload: str) -> Result:
        """Follow a scheduler that was just started until it has nothing left to do."""
        started = self.clock.monotonic()
        watching = asyncio.create_task(self._watch(), name="watch binds")
        try:
            await self._until(1, watching, scheduler)
            at_first = scheduler.cpu_seconds()
            await self._until(self.wanted, watching, scheduler)
            at_last = scheduler.cpu_seconds()
            await self._until_quiet(scheduler)
            at_end = scheduler.cpu_seconds()
        finally:
            watching.cancel()
        times = self.bound.values()
        events = _decode_list(await self.client.request("GET", EVENTS_PATH)).items
        pods = _decode_list(await self.client.request("GET", PODS_PATH)).items
        return Result(
            workload,
            pods=self.wanted,
            bound=len(self.bound),
            events=len(events),
            told=sum(_decode_object(pod).is_told for pod in pods),
            seconds=max(times) - min(times),
            since_start=max(times) - started,
            cpu_before=at_first,
            cpu_binding=at_last - at_first,
            cpu_after=at_end - at_last,
            peak_memory=scheduler.peak_memory(),
        )

    async def _watch(self) -> None:
        async with aclosing(
            self.client.watch(PODS_PATH, {"resourceVersion": self._version})
        ) as lines:
            async for line in lines:
                if not line:
                    continue
                pod = _decode_event(line).object
                if pod.spec.node_name:
                    self.bound.setdefault(pod.metadata.name, self.clock.monotonic())
        raise BenchError("the API server ended the watch")

    async def _until(self, enough: int, watching: asyncio.Task[None], scheduler: Measured) -> None:
        """Return when *enough* pods are bound, or some are and no more come."""
        count, since = len(self.bound), self.clock.monotonic()
        while count < enough:
            await self.clock.sleep(LOOK_SECONDS)
            scheduler.check()
            if watching.done():
                watching.result()
            now = self.clock.monotonic()
            if len(self.bound) > count:
                count, since = len(self.bound), now
            elif now - since > STALL_SECONDS:
                if not count:
                    raise BenchError(
                        f"no pod was bound within {STALL_SECONDS:.0f} s; the scheduler said:\n"
                        f"{scheduler.last_words()}"
                    )
                return

    async def _until_quiet(self, scheduler: Measured) -> None:
        used = -1.0
        while scheduler.cpu_seconds() - used > QUIET_SHARE * QUIET_SECONDS:
            used = scheduler.cpu_seconds()
            await self.clock.sleep(QUIET_SECONDS)
