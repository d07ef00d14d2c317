"""``berth bench startup``: how long a scheduler process takes from its start to its first bind, and
a standby from its Lease to its first bind.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Final

import msgspec

from berth.kube.client.api_client import ApiClient
from berth.runtime.clock import Clock
from berth.tools.bench import workloads
from berth.tools.bench.api_server import (
    BERTH,
    NAMESPACE,
    NOW,
    PODS_PATH,
    RUN_FLAGS,
    START_SECONDS,
    api_server,
    create_namespace,
    create_nodes,
    create_pods,
    scheduler_command,
)
from berth.tools.bench.binds import LOOK_SECONDS, Binds
from berth.tools.bench.process import BenchError, Measured, running
from berth.tools.bench.results import Figure, figure, used_figure
from berth.tools.bench.throughput import until_quiet

LEASE: Final = "kube-scheduler"
LEASES_PATH: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
ELECTION: Final = ("--leader-elect=true", "--leader-elect-retry-period=500ms")
LEADS: Final = "became leader"
FILLED: Final = "caches are filled"
"""What schedulers log."""
POD: Final = "pending"
POD_KEY: Final = f"{NAMESPACE}/{POD}"


async def measure(*, nodes: int, command: str, clock: Clock) -> AsyncIterator[Figure]:
    """Start the scheduler with a pod waiting; BenchError if that cannot be.

    Of berth itself, not of another *command*, also measure the takeover by a standby.
    """
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as folder:
        async with api_server(Path(folder), clock=clock, tls=True) as (kubeconfig, client):
            await create_namespace(client)
            await create_nodes(client, nodes)
            cluster = _Cluster(kubeconfig, client, clock=clock)
            async for figure in cluster.start(command):
                yield figure
            if not command:
                yield await cluster.take_over()


class _LeaseSpec(msgspec.Struct, rename="camel", frozen=True):
    holder_identity: str | None = None


class _Lease(msgspec.Struct, frozen=True):
    spec: _LeaseSpec = _LeaseSpec()


class _Event(msgspec.Struct, frozen=True):
    object: _Lease


_decode_event = msgspec.json.Decoder(_Event).decode


class _Cluster:
    """An API server with nodes, on which schedulers are started."""

    def __init__(self, kubeconfig: Path, client: ApiClient, *, clock: Clock) -> None:
        self._kubeconfig = kubeconfig
        self._client = client
        self._clock = clock

    async def start(self, command: str) -> AsyncIterator[Figure]:
        """Measure from the start of the process to the bind of a pod that waits."""
        await create_pods(self._client, [_pod()])
        binds = Binds(self._client, clock=self._clock)
        words = scheduler_command(command, self._kubeconfig)
        output = self._kubeconfig.parent / "scheduler.log"
        async with binds.followed():
            started = self._clock.monotonic()
            async with running(words, output=output) as scheduler:
                await binds.until(1, scheduler)
                used = scheduler.used()
        await self._delete_pod()
        yield figure("process start to first bind", (binds.times[POD_KEY] - started) * 1e3, "ms")
        yield used_figure("process start to first bind, CPU", used, "ms")

    async def take_over(self) -> Figure:
        """Have the leader of two schedulers stop, and measure from the other's Lease to its bind.

        The pod is created when the leader has ended; the time counts from its creation if that is
        later than the Lease.
        """
        folder = self._kubeconfig.parent
        words = [*BERTH, "run", f"--kubeconfig={self._kubeconfig}", *RUN_FLAGS, *ELECTION]
        leading = running(words, output=folder / "leader.log")
        waiting = running(words, output=folder / "standby.log")
        async with AsyncExitStack() as to_stop:
            async with leading as leader:
                await leader.until_said(LEADS, seconds=START_SECONDS, clock=self._clock)
                standby = await to_stop.enter_async_context(waiting)
                await standby.until_said(FILLED, seconds=START_SECONDS, clock=self._clock)
                await until_quiet(standby, self._client, clock=self._clock)
                holders: dict[str, float] = {}
                watching = asyncio.create_task(self._watch_lease(holders), name="watch the Lease")
                await self._until(lambda: len(holders) == 1, "no leader was seen", leader)
            binds = Binds(self._client, clock=self._clock)
            async with binds.followed():
                await create_pods(self._client, [_pod()])
                created = self._clock.monotonic()
                await binds.until(1, standby)
                await self._until(lambda: len(holders) == 2, "no takeover was seen", standby)
            watching.cancel()
        since = max(*holders.values(), created)
        await self._delete_pod()
        return figure("Lease acquired to first bind", (binds.times[POD_KEY] - since) * 1e3, "ms")

    async def _watch_lease(self, holders: dict[str, float]) -> None:
        """Note when, monotonic, each holder of the Lease is first seen."""
        lines = self._client.watch(LEASES_PATH, {"fieldSelector": f"metadata.name={LEASE}"})
        async with aclosing(lines):
            async for line in lines:
                holder = _decode_event(line).object.spec.holder_identity if line else None
                if holder:
                    holders.setdefault(holder, self._clock.monotonic())

    async def _until(self, is_true: Callable[[], bool], otherwise: str, process: Measured) -> None:
        deadline = self._clock.monotonic() + START_SECONDS
        while not is_true():
            process.check()
            if self._clock.monotonic() > deadline:
                raise BenchError(f"{otherwise}; the scheduler said:\n{process.last_words()}")
            await self._clock.sleep(LOOK_SECONDS)

    async def _delete_pod(self) -> None:
        await self._client.request("DELETE", f"{PODS_PATH}/{POD}", body=NOW)


def _pod() -> dict[str, object]:
    return {"metadata": {"name": POD}, "spec": workloads.requests(100, 128)}
