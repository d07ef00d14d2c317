"""The CPU that each of several replicas takes for a pod, in a process of its own, over HTTP.

What a process takes says what rate a replica could carry on a core of its own: with more cores than
this machine has, too. So they take turns, and do not share cores and caches. All pods are created
while they stand still, so that each has as much to do at once as at that rate. What replicas take
without pods is measured before, and is not part of it.
"""

import tempfile
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from berth.kube.client.api_client import ApiClient
from berth.kube.client.errors import AlreadyExistsError, ApiError
from berth.runtime.clock import Clock
from berth.service.shards.leases import ShardLeases
from berth.tools.bench.api_server import (
    BERTH,
    START_SECONDS,
    api_server,
    at_once,
    create_namespace,
    create_node,
)
from berth.tools.bench.binds import Binds
from berth.tools.bench.process import BenchError, Measured, running
from berth.tools.bench.results import Figure, figure
from berth.tools.bench.shards.world import node_of, pod_of
from berth.tools.bench.throughput import until_quiet

KINDS: Final[Mapping[str, Collection[str]]] = {
    "plain": (),
    "spread": (),
    "apart": (),
    "gangs": ("GenericWorkload", "GangScheduling"),
}
"""Kinds of pods, and the feature gates that they need."""
APP_PODS: Final = 50
"""Also the pods of a gang."""
NAMESPACES: Final = tuple(f"team-{number}" for number in range(128))
"""Pods with rules that reach across nodes have one home for each namespace."""
SLOTS: Final = 64
BATCH: Final = 200
"""Pods that are created with one write to the connection."""
ROUNDS: Final = 2
"""Turns of each replica: one for its pods, one for what it hears of those of replicas after it."""
IDLE_SECONDS: Final = 6.0
"""How long replicas are watched without pods: for three looks at the Leases."""
LOOK_SECONDS: Final = 0.2
PATIENCE: Final = 120.0
RUN_FLAGS: Final = (
    "--secure-port=0",
    "--kube-api-qps=5000",
    "--kube-api-burst=5000",
    "--leader-elect-lease-duration=90s",
    "--leader-elect-renew-deadline=60s",
)


async def measure(
    nodes: int, pods: int, replicas: Sequence[int], *, clock: Clock
) -> AsyncIterator[Figure]:
    """Yield the CPU per pod of the busiest replica and of all, by kind of pod; first without
    shards."""
    for kind in KINDS:
        for number in (0, *replicas):
            async for measured in _measure(kind, nodes, pods, number, clock=clock):
                yield measured


async def _measure(
    kind: str, nodes: int, pods: int, number: int, *, clock: Clock
) -> AsyncIterator[Figure]:
    gates = ",".join(f"{gate}=true" for gate in KINDS[kind])
    flags = (f"--feature-gates={gates}",) if gates else ()
    async with AsyncExitStack() as cleanup:
        folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="berth-bench-")))
        kubeconfig, client = await cleanup.enter_async_context(
            api_server(folder, clock=clock, flags=flags)
        )
        await at_once(partial(create_node, client, node_of(count)) for count in range(nodes))
        for name in NAMESPACES:
            await create_namespace(client, name)
            with suppress(AlreadyExistsError):
                account = msgspec.json.encode({"metadata": {"name": "default"}})
                path = f"/api/v1/namespaces/{name}/serviceaccounts"
                await client.request("POST", path, body=account)
        shared = f"--shards={SLOTS}" if number else "--leader-elect=false"
        command = (*BERTH, "run", f"--kubeconfig={kubeconfig}", *RUN_FLAGS, *flags, shared)
        schedulers = [
            await cleanup.enter_async_context(
                running(command, output=folder / f"scheduler-{count}.log")
            )
            for count in range(max(number, 1))
        ]
        if number:
            await _until_shared_out(number, client, clock)
        for scheduler in schedulers:
            await until_quiet(scheduler, client, clock=clock)
        if kind == "gangs":
            _check(await client.post_all([_group(app) for app in range(-(-pods // APP_PODS))]))
        before = [scheduler.cpu_seconds() for scheduler in schedulers]
        await clock.sleep(IDLE_SECONDS)
        idle = [
            (s.cpu_seconds() - b) / IDLE_SECONDS for s, b in zip(schedulers, before, strict=True)
        ]
        binds = Binds(client, clock=clock, path="/api/v1/pods")
        async with binds.followed():
            for scheduler in schedulers:
                scheduler.stop()
            for first in range(0, pods, BATCH):
                batch = [_pod(kind, count) for count in range(first, min(first + BATCH, pods))]
                _check(await client.post_all(batch))
            used = [0.0] * len(schedulers)
            for _ in range(ROUNDS):
                for count, scheduler in enumerate(schedulers):
                    used[count] += await _turn(scheduler, idle[count], client, clock)
        if len(binds.times) < pods:
            raise BenchError(f"{len(binds.times)} of {pods} pods were bound")
        rate = (1.0 - max(idle)) * pods / max(used)
        yield figure(
            f"{kind}: CPU of the busiest replica per pod",
            max(used) / pods * 1e6,
            "µs",
            outcome=f"{rate:.0f} pods/s at most, {max(idle):.1%} of a core without pods",
            replicas=number,
            nodes=nodes,
        )
        yield figure(
            f"{kind}: CPU of all replicas per pod",
            sum(used) / pods * 1e6,
            "µs",
            replicas=number,
            nodes=nodes,
        )


async def _turn(scheduler: Measured, idle: float, client: ApiClient, clock: Clock) -> float:
    """Let *scheduler* go on until it has nothing to do; return the seconds of CPU it took for that,
    without the share *idle* of the time."""
    before, started = scheduler.cpu_seconds(), clock.monotonic()
    scheduler.go_on()
    await until_quiet(scheduler, client, clock=clock)
    scheduler.stop()
    return scheduler.cpu_seconds() - before - idle * (clock.monotonic() - started)


async def _until_shared_out(replicas: int, client: ApiClient, clock: Clock) -> None:
    """Return when the slots are shared out evenly among so many *replicas*."""
    leases = ShardLeases(
        client,
        namespace="kube-system",
        name="kube-scheduler",
        identity="",
        num_slots=SLOTS,
        timeout=START_SECONDS,
        clock=clock,
    )
    deadline = clock.monotonic() + PATIENCE
    while True:
        holders = Counter((await leases.read()).slots)
        shares = [count for holder, count in holders.items() if holder]
        if sum(shares) == SLOTS and len(shares) == replicas and max(shares) - min(shares) <= 1:
            return
        if clock.monotonic() > deadline:
            raise BenchError(f"slots are not shared out among {replicas}: {dict(holders)}")
        await clock.sleep(LOOK_SECONDS)


def _pod(kind: str, count: int) -> tuple[str, bytes]:
    """Return where to post a pod, and the pod; all of an app are in one namespace."""
    app = count // APP_PODS
    namespace = NAMESPACES[app % len(NAMESPACES)]
    pod = pod_of("plain" if kind == "gangs" else kind, f"{kind}-{app}", f"p-{count}")
    pod["metadata"]["namespace"] = namespace
    if kind == "gangs":
        pod["spec"]["schedulingGroup"] = {"podGroupName": f"gang-{app}"}
    return f"/api/v1/namespaces/{namespace}/pods", msgspec.json.encode(pod)


def _group(app: int) -> tuple[str, bytes]:
    """Return where to post the group of an app, and the group."""
    path = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{NAMESPACES[app % len(NAMESPACES)]}"
    policy = {"schedulingPolicy": {"gang": {"minCount": APP_PODS}}}
    group = {"metadata": {"name": f"gang-{app}"}, "spec": policy}
    return f"{path}/podgroups", msgspec.json.encode(group)


def _check(answers: Iterable[object]) -> None:
    for answer in answers:
        if isinstance(answer, ApiError):
            raise BenchError(str(answer))
