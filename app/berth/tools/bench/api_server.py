"""The API server of a benchmark, in a process of its own, what is created in it, and how the
scheduler is started that is measured.
"""

import asyncio
import shlex
import sys
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from berth.kube.client.api_client import ApiClient
from berth.kube.client.connect import connect
from berth.kube.client.errors import AlreadyExistsError, UnavailableError
from berth.runtime.clock import Clock
from berth.tools.bench import workloads
from berth.tools.bench.process import BenchError, running

NAMESPACE: Final = "berth-bench"
PODS_PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
EVENTS_PATH: Final = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
LABEL: Final = "berth-bench"
"""On nodes and others in no namespace that were made here, so that these can be deleted again."""
NO_LABELS: Final[Mapping[str, str]] = {}
NOT_READY: Final = b"node.kubernetes.io/not-ready"
NOW: Final = b'{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}'
REQUESTS_AT_ONCE: Final = 16
START_SECONDS: Final = 30.0
BERTH: Final = (sys.executable, "-m", "berth")
RUN_FLAGS: Final = (
    "--secure-port=0",
    "--leader-elect=false",
    "--kube-api-qps=5000",
    "--kube-api-burst=5000",
)


@asynccontextmanager
async def api_server(
    folder: Path,
    *,
    clock: Clock,
    kubeconfig: Path | None = None,
    tls: bool = False,
    flags: Sequence[str] = (),
) -> AsyncIterator[tuple[Path, ApiClient]]:
    """Yield a kubeconfig and a client, of an embedded API server of its own if none is given.

    Without *tls* it serves plain HTTP: TLS costs both sides what is not the scheduler's work.
    *flags* are more of ``berth cluster``.
    """
    if kubeconfig is not None:
        client = await connect(kubeconfig=str(kubeconfig), qps=0, user_agent="berth-bench")
        try:
            yield kubeconfig, client
        finally:
            await client.close()
        return
    kubeconfig, output = folder / "kubeconfig", folder / "cluster.log"
    # No kubelet renews leases, so nobody may conclude that the nodes are lost.
    grace = ("--node-monitor-grace-period=24h", "--node-startup-grace-period=24h")
    plain = () if tls else ("--insecure",)
    command = (*BERTH, "cluster", *plain, *grace, *flags, f"--kubeconfig-out={kubeconfig}")
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
        except UnavailableError:
            server.check()  # if it has ended, its last words say more
            raise
        finally:
            await client.close()


def scheduler_command(command: str, kubeconfig: Path) -> list[str]:
    """Return how berth is started; or another scheduler, in whose *command* ``{kubeconfig}`` is
    replaced.
    """
    if command:
        words = shlex.split(command)
        return [word.replace("{kubeconfig}", str(kubeconfig)) for word in words]
    return [*BERTH, "run", f"--kubeconfig={kubeconfig}", *RUN_FLAGS]


async def create_namespace(
    client: ApiClient, name: str = NAMESPACE, *, labels: Mapping[str, str] = NO_LABELS
) -> None:
    with suppress(AlreadyExistsError):
        body = msgspec.json.encode({"metadata": {"name": name, "labels": labels}})
        await client.request("POST", "/api/v1/namespaces", body=body)


async def create_nodes(client: ApiClient, count: int) -> None:
    """Create nodes that are ready, without kubelets."""
    await at_once(partial(create_node, client, node) for node in _nodes(count))


async def create_node(client: ApiClient, node: dict[str, Any]) -> None:
    """Create *node* and take away the taint that API servers give to new nodes."""
    body = msgspec.json.encode(node)
    answer = await client.request("POST", "/api/v1/nodes", body=body)
    if NOT_READY in answer:
        await client.request(
            "PATCH",
            f"/api/v1/nodes/{node['metadata']['name']}",
            body=msgspec.json.encode({"spec": {"taints": node.get("spec", {}).get("taints")}}),
            content_type="application/merge-patch+json",
        )


def _nodes(count: int) -> Iterator[dict[str, Any]]:
    for node in workloads.nodes(count):
        obj: dict[str, Any] = msgspec.to_builtins(node)
        obj["metadata"]["labels"][LABEL] = ""
        yield obj


async def create_pods(
    client: ApiClient, pods: Iterable[dict[str, Any]], *, path: str = PODS_PATH
) -> None:
    await at_once(
        partial(client.request, "POST", path, body=msgspec.json.encode(pod)) for pod in pods
    )


async def at_once(requests: Iterable[Callable[[], Awaitable[object]]]) -> None:
    """Make all requests, a few at a time; the first error is raised."""
    waiting = iter(requests)

    async def work() -> None:
        for request in waiting:
            await request()

    await asyncio.gather(*(work() for _ in range(REQUESTS_AT_ONCE)))


async def clear(client: ApiClient, namespace: str = NAMESPACE) -> None:
    """Delete what a measurement leaves behind, whether this one or one that broke off."""
    for path in (PODS_PATH, EVENTS_PATH):
        await client.request("DELETE", path.replace(NAMESPACE, namespace), body=NOW)
    await client.request("DELETE", "/api/v1/nodes", params={"labelSelector": LABEL})
