"""The cost of pods that have to preempt, for a scheduler process, all its writes included.

The cluster is that of scheduler_perf's ``PreemptionBasic``: on each node four pods of low priority
take 3.6 of 4 CPUs, and a pod of high priority wants 3, so that three of them have to go. They have
no grace period, and are gone as soon as they are deleted.
"""

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from berth.kube.client.api_client import ApiClient
from berth.kube.client.errors import AlreadyExistsError
from berth.runtime.clock import Clock, rfc3339
from berth.tools.bench.api_server import (
    EVENTS_PATH,
    LABEL,
    PODS_PATH,
    api_server,
    at_once,
    clear,
    create_namespace,
    create_node,
    create_pods,
    scheduler_command,
)
from berth.tools.bench.binds import Binds, decode_list
from berth.tools.bench.process import running
from berth.tools.bench.results import Figure, figure, used_figure
from berth.tools.bench.throughput import Settings, until_quiet
from berth.tools.bench.workloads import HOSTNAME, ZONE, Spec, requests

VICTIMS_PER_NODE: Final = 4
APP: Final = "pending"
"""The label ``app`` of all pods that wait."""
HIGH: Final = "berth-bench-high"
"""The PriorityClass of the preemptors."""
MERGE_PATCH: Final = "application/merge-patch+json"

Object = dict[str, Any]


async def measure(settings: Settings, *, clock: Clock) -> AsyncIterator[Figure]:
    """Measure ``settings.pods`` pods that preempt; errors as in throughput.

    They are created once the scheduler has started and has nothing to do, so its start is not
    counted. What it spends until all is quiet is.
    """
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as folder:
        server = api_server(Path(folder), clock=clock, kubeconfig=settings.kubeconfig)
        async with server as (kubeconfig, client):
            await clear(client)
            try:
                await create_namespace(client)
                await _create_priority_class(client)
                await at_once(partial(create_node, client, _node(n)) for n in range(settings.nodes))
                await at_once(partial(_create_running, client, pod) for pod in _victims(settings))
                binds = Binds(client, clock=clock, selector=f"app={APP}")
                command = scheduler_command(settings.command, kubeconfig)
                start = running(command, output=Path(folder) / "scheduler.log")
                async with binds.followed(), start as scheduler:
                    # It is ready when it has bound a pod that fits.
                    await create_pods(client, [_pending("fits", requests(100, 100))])
                    await binds.until(1, scheduler)
                    await until_quiet(scheduler, client, clock=clock)
                    before, started = scheduler.used(), clock.monotonic()
                    await create_pods(client, map(_preemptor, range(settings.pods)))
                    await binds.until(1 + settings.pods, scheduler)
                    await until_quiet(scheduler, client, clock=clock)
                    used = scheduler.used().since(before)
                took = max(binds.times.values()) - started
                events = decode_list(await client.request("GET", EVENTS_PATH)).items
                left = decode_list(await client.request("GET", PODS_PATH)).items
            finally:
                if settings.kubeconfig is not None:
                    await clear(client)
    bound = len(binds.times) - 1
    victims = settings.nodes * VICTIMS_PER_NODE + 1 + settings.pods - len(left)
    outcome = f"{bound}/{settings.pods} bound, {victims} victims, {len(events)} events"
    at = {"nodes": settings.nodes, "preemptors": settings.pods}
    yield used_figure(
        "scheduler CPU per preempting pod", used, "ms", count=bound, outcome=outcome, **at
    )
    yield figure("preempting pods bound per second", bound / took, "1/s", outcome=outcome, **at)


async def _create_priority_class(client: ApiClient) -> None:
    body = msgspec.json.encode({"metadata": {"name": HIGH}, "value": 1_000})
    with suppress(AlreadyExistsError):
        await client.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body=body)


async def _create_running(client: ApiClient, pod: Object) -> None:
    """Create *pod*, and report it as running, as its kubelet would."""
    status = msgspec.json.encode({"status": pod.pop("status")})
    await client.request("POST", PODS_PATH, body=msgspec.json.encode(pod))
    path = f"{PODS_PATH}/{pod['metadata']['name']}/status"
    await client.request("PATCH", path, body=status, content_type=MERGE_PATCH)


def _node(n: int) -> Object:
    name, capacity = f"node-{n}", {"cpu": "4", "memory": "32Gi", "pods": "110"}
    labels = {LABEL: "", HOSTNAME: name, ZONE: f"zone-{n % 3}"}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {"allocatable": capacity, "capacity": capacity},
    }


def _victims(settings: Settings) -> Iterator[Object]:
    for n in range(settings.nodes):
        for i in range(VICTIMS_PER_NODE):
            started = 1_700_000_000 + (n * 7_919 + i * 104_729) % 1_000_000
            pod = _pod(f"low-{n}-{i}", requests(900, 500) | {"nodeName": f"node-{n}"})
            pod["status"] = {"phase": "Running", "startTime": rfc3339(started)}
            yield pod


def _preemptor(n: int) -> Object:
    return _pending(f"high-{n:06}", requests(3_000, 500) | {"priorityClassName": HIGH})


def _pending(name: str, spec: Spec) -> Object:
    return _pod(name, spec, app=APP)


def _pod(name: str, spec: Spec, *, app: str = "app-0") -> Object:
    spec = spec | {"terminationGracePeriodSeconds": 0}
    return {"metadata": {"name": name, "labels": {"app": app}}, "spec": spec}
