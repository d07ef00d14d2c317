"""``berth bench steady``: how long pods wait for their nodes at a rate that does not change.

::

    API server process  <-- creates and deletes pods, watches them --  this process
            ^                                                              | reads /proc
    scheduler process  <---------------------------------------------------|

A pod is deleted some time after its creation, so that the cluster does not fill up.
"""

import heapq
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from berth.kube.client.api_client import ApiClient
from berth.runtime.clock import Clock
from berth.tools.bench import workloads
from berth.tools.bench.api_server import (
    NAMESPACE,
    NOW,
    PODS_PATH,
    api_server,
    create_namespace,
    create_nodes,
    create_pods,
    scheduler_command,
)
from berth.tools.bench.binds import Binds
from berth.tools.bench.pace import Act, arrivals, paced
from berth.tools.bench.process import BenchError, Measured, running
from berth.tools.bench.results import Figure, figure, percentiles, used_figure
from berth.tools.bench.throughput import until_quiet
from berth.tools.bench.usage import Usage

FIRST: Final = "first"
"""A pod that is bound before the others come: the scheduler is ready then."""


@dataclass(frozen=True, slots=True)
class Settings:
    nodes: int
    rate: float
    """Pods created per second."""
    seconds: float
    lifetime: float
    """Seconds from the creation of a pod until it is deleted."""
    is_poisson: bool = False
    """Pods come at random moments instead of evenly."""
    seed: int = 1
    command: str = ""
    """Another scheduler's command line, as in throughput."""


async def measure(settings: Settings, *, clock: Clock) -> AsyncIterator[Figure]:
    """Measure from each pod's creation to its bind; BenchError or ApiError if that cannot be."""
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as folder:
        async with api_server(Path(folder), clock=clock) as (kubeconfig, client):
            await create_namespace(client)
            await create_nodes(client, settings.nodes)
            await create_pods(client, [_pod(FIRST)])
            binds = Binds(client, clock=clock)
            command = scheduler_command(settings.command, kubeconfig)
            output = Path(folder) / "scheduler.log"
            async with binds.followed(), running(command, output=output) as scheduler:
                await binds.until(1, scheduler)
                await until_quiet(scheduler, clock=clock)
                driver = _Driver(client, scheduler, clock=clock)
                late = await paced(driver.acts(settings), clock=clock)
            sent, used = driver.sent, driver.used
            waits = [binds.times[name] - sent[name] for name in sent if name in binds.times]
            if not waits:
                raise BenchError(f"no pod was bound within {settings.lifetime:g} s")
            outcome = f"{len(waits)}/{len(sent)} bound"
            for percentile in percentiles("create to bound", waits):
                yield msgspec.structs.replace(percentile, outcome=outcome)
            yield figure("scheduler CPU", used.cpu / settings.seconds * 100, "% of a CPU")
            yield used_figure("scheduler CPU per pod", used, "ms", count=len(sent))
            yield figure("driver late, max", late * 1e3, "ms")


class _Driver:
    """Creates and deletes pods."""

    def __init__(self, client: ApiClient, scheduler: Measured, *, clock: Clock) -> None:
        self._client = client
        self._scheduler = scheduler
        self._clock = clock
        self._before = scheduler.used()
        self.sent: dict[str, float] = {}
        """When the creation of each pod, ``namespace/name``, was sent, monotonic seconds."""
        self.used = Usage(0.0, None)
        """By the scheduler while pods were created."""

    def acts(self, settings: Settings) -> Iterator[tuple[float, Act]]:
        """Yield what is done at which moment."""
        rng = Random(settings.seed) if settings.is_poisson else None
        moments = [*arrivals(settings.rate, settings.seconds, rng=rng)]
        names = [f"pod-{number:06}" for number in range(len(moments))]
        creations = zip(moments, (partial(self._create, name) for name in names), strict=True)
        end = (settings.seconds, self._look)
        deletions = (
            (moment + settings.lifetime, partial(self._delete, name))
            for moment, name in zip(moments, names, strict=True)
        )
        return heapq.merge(creations, [end], deletions, key=itemgetter(0))

    async def _create(self, name: str) -> None:
        body = msgspec.json.encode(_pod(name))
        self.sent[f"{NAMESPACE}/{name}"] = self._clock.monotonic()
        await self._client.request("POST", PODS_PATH, body=body)

    async def _delete(self, name: str) -> None:
        await self._client.request("DELETE", f"{PODS_PATH}/{name}", body=NOW)

    async def _look(self) -> None:
        self._scheduler.check()
        self.used = self._scheduler.used().since(self._before)


def _pod(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": workloads.requests(100, 128)}
