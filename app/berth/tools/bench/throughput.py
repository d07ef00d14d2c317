"""``berth bench throughput``: pods per second, and what a scheduler process spends on each.

::

    API server process  <-- nodes, pending pods --  this process
            ^                                          |  watches pods: when each is bound
            |                                          |  reads /proc: CPU and memory
    scheduler process   <-- started when all is there --

Any scheduler can be measured, against any API server: nothing is asked of either but the API.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from berth.kube.client.api_client import ApiClient
from berth.runtime.clock import Clock
from berth.tools.bench import workloads
from berth.tools.bench.api_server import (
    EVENTS_PATH,
    PODS_PATH,
    api_server,
    clear,
    create_namespace,
    create_nodes,
    create_pods,
    scheduler_command,
)
from berth.tools.bench.binds import Binds, decode_list, decode_pod
from berth.tools.bench.names import WORKLOADS
from berth.tools.bench.process import Measured, running
from berth.tools.bench.results import Figure, figure, used_figure
from berth.tools.bench.usage import Usage

HOPELESS: Final = "fits nowhere"

QUIET_SECONDS: Final = 0.5
QUIET_SHARE: Final = 0.05
"""A scheduler that uses less of a core than this has written what it had to write."""
QUIET_LOOKS: Final = 3


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
    """Pods that fit nowhere, mixed evenly among the ``pods``."""
    hopeless_differ: bool = False
    """Whether each of them requests something else; otherwise they are of one signature."""


@dataclass(frozen=True, slots=True)
class Result:
    """One workload. Usage is that of the scheduler process since its start."""

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
    peak_memory: int
    """Bytes."""
    until_first: Usage
    """Until the first bind: start, lists, filling the cache and the queue."""
    until_last: Usage
    """Until the last bind."""
    until_quiet: Usage
    """Until all is quiet: with events and watches that binds overtook."""

    @property
    def pods_per_second(self) -> float:
        return (self.bound - 1) / self.seconds if self.seconds else 0.0

    @property
    def binding(self) -> Usage:
        """From the first bind to the last."""
        return self.until_last.since(self.until_first)

    def figures(self) -> Iterator[Figure]:
        outcome = f"{self.bound}/{self.pods} bound, {self.events} events"
        per_pod, name = "scheduler CPU per bound pod", self.workload
        used = self.until_quiet.since(self.until_first)
        yield used_figure(per_pod, used, "ms", count=self.bound, outcome=outcome, workload=name)
        yield used_figure(
            f"{per_pod}, with its start", self.until_quiet, "ms", count=self.bound, workload=name
        )
        yield figure("pods bound per second", self.pods_per_second, "1/s", workload=name)
        memory = self.peak_memory / 2**20
        yield figure("peak memory of the scheduler", memory, "MiB", workload=name)


async def measure(workload: str, settings: Settings, *, clock: Clock) -> Result:
    """Measure one of WORKLOADS; BenchError or ApiError when that is not possible."""
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as folder:
        server = api_server(Path(folder), clock=clock, kubeconfig=settings.kubeconfig)
        async with server as (kubeconfig, client):
            await clear(client)
            try:
                await create_namespace(client)
                await create_nodes(client, settings.nodes)
                await create_pods(client, _pods(workload, settings))
                binds = Binds(client, clock=clock)
                command = scheduler_command(settings.command, kubeconfig)
                output = Path(folder) / "scheduler.log"
                async with (
                    binds.followed(),
                    running(command, output=output) as scheduler,
                ):
                    return await follow(
                        binds, scheduler, workload, settings.pods, client, clock=clock
                    )
            finally:
                if settings.kubeconfig is not None:
                    await clear(client)


async def follow(
    binds: Binds,
    scheduler: Measured,
    workload: str,
    count: int,
    client: ApiClient,
    *,
    clock: Clock,
) -> Result:
    """Follow a scheduler that was just started until it has nothing left to do.

    It has *count* pods to bind.
    """
    started = clock.monotonic()
    await binds.until(1, scheduler)
    at_first = scheduler.used()
    await binds.until(count, scheduler)
    at_last = scheduler.used()
    await until_quiet(scheduler, client, clock=clock)
    at_end = scheduler.used()
    times = binds.times.values()
    events = decode_list(await client.request("GET", EVENTS_PATH)).items
    pods = decode_list(await client.request("GET", PODS_PATH)).items
    return Result(
        workload,
        pods=count,
        bound=len(times),
        events=len(events),
        told=sum(decode_pod(pod).is_told for pod in pods),
        seconds=max(times) - min(times),
        since_start=max(times) - started,
        peak_memory=scheduler.peak_memory(),
        until_first=at_first,
        until_last=at_last,
        until_quiet=at_end,
    )


async def until_quiet(scheduler: Measured, client: ApiClient, *, clock: Clock) -> None:
    """Return when the scheduler has done next to nothing for QUIET_LOOKS looks in a row.

    On a busy machine it may have nothing to do because the API server has not answered yet, so
    each look lasts until the server has answered *client*, too.
    """
    used, quiet = scheduler.cpu_seconds(), 0
    while quiet < QUIET_LOOKS:
        await client.request("GET", "/api/v1")
        await clock.sleep(QUIET_SECONDS)
        before, used = used, scheduler.cpu_seconds()
        quiet = quiet + 1 if used - before <= QUIET_SHARE * QUIET_SECONDS else 0


def _pods(workload: str, settings: Settings) -> Iterator[dict[str, Any]]:
    specs = {w.name: w.spec for w in workloads.WORKLOADS}
    spec, hopeless = specs[WORKLOADS[workload]](0), specs[HOPELESS]
    for n in range(settings.pods):  # named so that they are mixed where they are sorted, too
        share = (settings.hopeless * i // settings.pods for i in (n, n + 1))
        for hopeless_n in range(*share):
            # What they request neither rises nor falls as they come.
            spec_n = hopeless_n * 7_919 % 10_007 if settings.hopeless_differ else 0
            yield _pod(f"pod-{n:06}-hopeless-{hopeless_n}", hopeless(spec_n))
        yield _pod(f"pod-{n:06}-plain", spec)


def _pod(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"app": "app-0"}}, "spec": spec}
