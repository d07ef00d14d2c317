"""``berth bench throughput --workload SchedulingBasic`` and others of scheduler_perf."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from berth.bench.api_server import (
    NAMESPACE,
    api_server,
    at_once,
    clear,
    create_namespace,
    create_node,
    create_pods,
    scheduler_command,
)
from berth.bench.binds import Binds
from berth.bench.process import running
from berth.bench.scheduler_perf import HIGH, INITIAL, WORKLOADS, Object, Size, Workload
from berth.bench.throughput import Result, Settings, follow
from berth.client.api_client import ApiClient
from berth.client.errors import AlreadyExistsError
from berth.clock import Clock

CHURN_SECONDS: Final = 0.2
"""Between two pods of churn."""
INITIAL_PODS_PATH: Final = f"/api/v1/namespaces/{INITIAL}/pods"


async def measure(name: str, size: Size, settings: Settings, *, clock: Clock) -> Result:
    """Measure a workload at one of its sizes; errors as in throughput."""
    workload = WORKLOADS[name]
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as folder:
        server = api_server(Path(folder), clock=clock, kubeconfig=settings.kubeconfig)
        async with server as (kubeconfig, client):
            await _clear(client)
            try:
                await _fill(client, workload, size)
                binds = Binds(client, clock=clock)
                command = scheduler_command(settings.command, kubeconfig)
                output = Path(folder) / "scheduler.log"
                async with binds.followed(), running(command, output=output) as scheduler:
                    churn = _churning(client, workload.churn, clock=clock)
                    return await follow(
                        binds, scheduler, name, size.measured, client, clock=clock, meanwhile=churn
                    )
            finally:
                if settings.kubeconfig is not None:
                    await _clear(client)


async def _fill(client: ApiClient, workload: Workload, size: Size) -> None:
    for namespace in (NAMESPACE, INITIAL):
        await create_namespace(client, namespace, labels=workload.namespace_labels)
    body = msgspec.json.encode({"metadata": {"name": HIGH}, "value": 10})
    with suppress(AlreadyExistsError):
        await client.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body=body)
    await at_once(partial(create_node, client, node) for node in workload.nodes(size))
    await create_pods(client, workload.initial_pods(size), path=INITIAL_PODS_PATH)
    await create_pods(client, workload.measured_pods(size))


async def _clear(client: ApiClient) -> None:
    await clear(client)
    await clear(client, INITIAL)


@asynccontextmanager
async def _churning(
    client: ApiClient, make: Callable[[], Object] | None, *, clock: Clock
) -> AsyncIterator[None]:
    """Create pods with *make* until the end of the block; none without it."""
    if make is None:
        yield
        return

    async def churn(make: Callable[[], Object]) -> None:
        while True:
            pod = make()
            pod["metadata"]["generateName"] = "churn-"
            await create_pods(client, [pod], path=INITIAL_PODS_PATH)
            await clock.sleep(CHURN_SECONDS)

    task = asyncio.create_task(churn(make), name="churn")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
