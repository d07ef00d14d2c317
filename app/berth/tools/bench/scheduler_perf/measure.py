"""Runs a workload, and measures the scheduler meanwhile."""

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from berth.kube.client.api_client import ApiClient
from berth.kube.client.errors import AlreadyExistsError
from berth.runtime.clock import Clock
from berth.tools.bench.api_server import LABEL, NOW, api_server, scheduler_command
from berth.tools.bench.binds import Binds, decode_list, decode_pod
from berth.tools.bench.process import BenchError, Measured, running
from berth.tools.bench.results import Figure, figure, used_figure
from berth.tools.bench.scheduler_perf.cases import CASES
from berth.tools.bench.scheduler_perf.run import (
    CLAIMS,
    NAMESPACES,
    NODES,
    PODS,
    SERVICES,
    VOLUMES,
    Run,
)
from berth.tools.bench.scheduler_perf.storage import CSI_NODES
from berth.tools.bench.scheduler_perf.templates import HIGH
from berth.tools.bench.scheduler_perf.test_case import PerfCase, Workload
from berth.tools.bench.throughput import until_quiet

ALL_PODS: Final = "/api/v1/pods"
EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/{namespace}/events"


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure; as in throughput."""

    kubeconfig: Path | None = None
    command: str = ""


def find(name: str) -> tuple[str, PerfCase, Workload]:
    """Return the whole name of a workload, its test case, and the workload itself.

    *name* is that of a test case, which means its default workload, or has a slash and the
    workload after it. LookupError says what there is.
    """
    of_case, _, of_workload = name.partition("/")
    if of_case not in CASES:
        raise LookupError(f"{of_case}: there are {', '.join(CASES)}")
    case = CASES[of_case]
    of_workload = of_workload or case.default
    if of_workload not in case.workloads:
        raise LookupError(f"{of_workload}: {of_case} has {', '.join(case.workloads)}")
    return f"{of_case}/{of_workload}", case, case.workloads[of_workload]


async def measure(name: str, settings: Settings, *, clock: Clock) -> AsyncIterator[Figure]:
    """Run a workload that :func:`find` finds; BenchError or ApiError when that is not possible.

    Measured is from the creation of the first measured pod until all are bound and the scheduler
    has nothing left to do.
    """
    name, case, workload = find(name)
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as folder:
        server = api_server(Path(folder), clock=clock, kubeconfig=settings.kubeconfig)
        async with server as (kubeconfig, client):
            if settings.kubeconfig is not None:
                await _clear(client)
            try:
                await _create_priority_class(client)
                binds = Binds(client, clock=clock, path=ALL_PODS)
                command = scheduler_command(settings.command, kubeconfig)
                output = Path(folder) / "scheduler.log"
                async with binds.followed(), running(command, output=output) as scheduler:
                    async with Run.started(client, binds, scheduler, clock=clock) as run:
                        for operation in case.operations(*workload.params):
                            await operation.run(run)
                        await run.until_bound(run.measured)
                    await until_quiet(scheduler, client, clock=clock)
                    for figure in _figures(name, run, binds, scheduler, workload.threshold):
                        yield figure
            finally:
                if settings.kubeconfig is not None:
                    await _clear(client)


def _figures(
    name: str, run: Run, binds: Binds, scheduler: Measured, threshold: float | None
) -> list[Figure]:
    """Return what was measured; BenchError if no measured pod was bound."""
    times = [binds.times[pod] for pod in run.measured if pod in binds.times]
    if not times or run.before is None:
        raise BenchError(f"{name}: no measured pod was bound")
    used, bound = scheduler.used().since(run.before), len(times)
    seconds = max(times) - min(times)
    per_second = (bound - 1) / seconds if seconds else 0.0
    outcome = f"{bound}/{len(run.measured)} bound"
    asked = f", threshold of scheduler_perf: {threshold:g}" if threshold else ""
    memory = scheduler.peak_memory() / 2**20
    return [
        used_figure(
            "scheduler CPU per bound pod", used, "ms", count=bound, outcome=outcome, workload=name
        ),
        figure("pods bound per second", per_second, "1/s", outcome=outcome + asked, workload=name),
        figure("peak memory of the scheduler", memory, "MiB", workload=name),
    ]


async def _create_priority_class(client: ApiClient) -> None:
    body = msgspec.json.encode({"metadata": {"name": HIGH}, "value": 10})
    with suppress(AlreadyExistsError):
        await client.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body=body)


async def _clear(client: ApiClient) -> None:
    """Delete what a run leaves behind, whether this one or one that broke off."""
    ours: Mapping[str, str] = {"labelSelector": LABEL}
    namespaces = decode_list(await client.request("GET", NAMESPACES, params=ours)).items
    for name in (decode_pod(namespace).metadata.name for namespace in namespaces):
        for path in (PODS, CLAIMS, SERVICES, EVENTS):
            await client.request("DELETE", path.format(namespace=name), body=NOW)
    for path in (NODES, VOLUMES, CSI_NODES):
        await client.request("DELETE", path, params=ours)
