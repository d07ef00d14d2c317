"""``berth bench watch``: what the changes of a cluster cost a scheduler that has nothing to bind.

The server is that of ``berth bench size``: it makes the changes when it sends them. A scheduler
that does not keep up makes them late, because what it does not read is not sent.
"""

import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from berth.kube.client.api_client import ApiClient
from berth.kube.client.connect import connect
from berth.runtime.clock import Clock
from berth.tools.bench.api_server import scheduler_command
from berth.tools.bench.process import Measured, running
from berth.tools.bench.results import Figure, figure, used_figure
from berth.tools.bench.size import SECONDS_PER_POD, START_SECONDS, Late, Settings, serving
from berth.tools.bench.startup import FILLED
from berth.tools.bench.throughput import until_quiet

KINDS: Final[Mapping[str, str]] = {
    "heartbeats of nodes": "heartbeat",
    "statuses of pods": "status",
    "pods deleted and created on other nodes": "replaced",
    "all of these": "",
}
"""Changes, with their names in :mod:`berth.tools.bench.size_server`."""


KEPT_UP: Final = 1_000.0
"""Milliseconds by which the last change is sent late, at most, if the scheduler keeps up."""


async def measure(settings: Settings, *, clock: Clock) -> AsyncIterator[Figure]:
    """Measure each kind of changes by itself and all together; BenchError if that cannot be."""
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as name:
        folder = Path(name)
        async with serving(settings, folder, clock) as kubeconfig:
            output = folder / "scheduler.log"
            words = scheduler_command("", kubeconfig)
            client = await connect(kubeconfig=str(kubeconfig), qps=0, user_agent="berth-bench")
            try:
                async with running(words, output=output) as scheduler:
                    seconds = START_SECONDS + settings.pods * SECONDS_PER_POD
                    await scheduler.until_said(FILLED, seconds=seconds, clock=clock)
                    for what, kind in KINDS.items():
                        async for change in _changes(
                            what, kind, settings, scheduler, client, clock=clock
                        ):
                            yield change
            finally:
                await client.close()


async def _changes(
    what: str,
    kind: str,
    settings: Settings,
    scheduler: Measured,
    client: ApiClient,
    *,
    clock: Clock,
) -> AsyncIterator[Figure]:
    """Have changes of a kind sent; count what the scheduler uses until it has seen them all."""
    await until_quiet(scheduler, client, clock=clock)
    count = int(settings.rate * settings.seconds)
    before, started = scheduler.used(), clock.monotonic()
    params = {"rate": str(settings.rate), "seconds": str(settings.seconds), "kind": kind}
    timeout = 10 * settings.seconds + START_SECONDS
    answer = await client.request("POST", "/churn", params=params, timeout=timeout)
    took = clock.monotonic() - started
    meanwhile = scheduler.used().since(before)
    await until_quiet(scheduler, client, clock=clock)
    used = scheduler.used().since(before)
    late = msgspec.json.decode(answer, type=Late).late
    keeps_up = f"{settings.rate}/s {'kept up' if late < KEPT_UP else 'not kept up'}"
    yield used_figure(
        "scheduler CPU per event", used, "µs", count=count, outcome=keeps_up, kind=what
    )
    yield figure("scheduler CPU", meanwhile.cpu / took * 100, "% of a CPU", kind=what)
    yield figure("how late the last event is sent", late, "ms", kind=what)
