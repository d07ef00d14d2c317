"""``berth bench steady``: how long pods wait for their nodes at a rate that does not change.

::

    API server process  <-- creates and deletes pods, watches them --  this process
            ^                                                              | reads /proc
    scheduler process  <---------------------------------------------------|

A pod is deleted some time after its creation, so that the cluster does not fill up. Meanwhile pods
may wait that fit nowhere, nodes may change, and the scheduler may be asked everything that it
answers while the turns of its event loop are measured.
"""

import heapq
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from berth.kube.client.api_client import ApiClient
from berth.runtime.clock import Clock
from berth.tools.bench import workloads
from berth.tools.bench.api_server import (
    NAMESPACE,
    NOW,
    PODS_PATH,
    RUN_FLAGS,
    api_server,
    create_namespace,
    create_node,
    create_nodes,
    create_pods,
    scheduler_command,
)
from berth.tools.bench.binds import Binds
from berth.tools.bench.pace import Act, arrivals, paced
from berth.tools.bench.process import BenchError, Measured, running
from berth.tools.bench.questions import Asked, Questions, free_port
from berth.tools.bench.results import Figure, figure, percentiles, used_figure
from berth.tools.bench.throughput import HOPELESS, until_quiet
from berth.tools.bench.turns import Turn, read_turns
from berth.tools.bench.usage import Usage

FIRST: Final = "first"
"""A pod that is bound before the others come: the scheduler is ready then."""

START: Final = "start"
NOTHING: Final = "pods and nodes alone"
WOKEN: Final = "a node that all waiting pods are tried for"
"""What else happens than what the scheduler is asked."""


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
    waiting: int = 0
    """Pods that fit nowhere, no two alike, and wait all the time."""
    node_changes: float = 0.0
    """Changes of nodes per second: heartbeats, labels and allocatable resources in turns."""
    measures_turns: bool = False
    """Of the event loop of berth, which is asked all it answers meanwhile."""


async def measure(settings: Settings, *, clock: Clock) -> AsyncIterator[Figure]:
    """Measure from each pod's creation to its bind; BenchError or ApiError if that cannot be."""
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as name:
        folder = Path(name)
        async with api_server(folder, clock=clock) as (kubeconfig, client):
            await create_namespace(client)
            await create_nodes(client, settings.nodes)
            await create_pods(client, _waiting(settings.waiting))
            await create_pods(client, [_pod(FIRST)])
            binds = Binds(client, clock=clock)
            port, turns = free_port(), folder / "turns"
            command = scheduler_command(settings.command, kubeconfig)
            if settings.measures_turns:
                command = _measured_command(kubeconfig, port=port, turns=turns)
            output = folder / "scheduler.log"
            async with binds.followed(), running(command, output=output) as scheduler:
                await binds.until(1, scheduler)
                all_refused = partial(_all_refused, binds, settings.waiting)
                await binds.until_true(all_refused, scheduler)
                await until_quiet(scheduler, client, clock=clock)
                driver = _Driver(client, scheduler, clock=clock)
                asked: list[Asked] = []
                async with AsyncExitStack() as meanwhile:
                    if settings.measures_turns:
                        waiting = _WAITING_KEY if settings.waiting else f"{NAMESPACE}/{FIRST}"
                        questions = Questions(port, scheduler.pid, pod=waiting, clock=clock)
                        asked = await meanwhile.enter_async_context(questions.asking())
                    late = await paced(driver.acts(settings), clock=clock)
                if settings.measures_turns:
                    asked.append(await _wake_all(client, scheduler, clock=clock))
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
            if settings.measures_turns:
                began = min(sent.values())
                for longest in longest_turns(read_turns(turns), asked, began=began):
                    yield longest


def _measured_command(kubeconfig: Path, *, port: int, turns: Path) -> list[str]:
    """Return how berth is started so that it writes its *turns*, and answers everybody."""
    return [
        sys.executable, "-m", "berth.tools.bench.turns", str(turns), "run",
        f"--kubeconfig={kubeconfig}", *RUN_FLAGS, f"--secure-port={port}",
        "--bind-address=127.0.0.1", f"--cert-dir={turns.parent}",
        "--authorization-always-allow-paths=/*",
    ]  # fmt: skip


def _all_refused(binds: Binds, count: int) -> bool:
    return len(binds.refused) >= count


async def _wake_all(client: ApiClient, scheduler: Measured, *, clock: Clock) -> Asked:
    """Let a node come on which all waiting pods would fit but for its taint; they are tried."""
    begin = clock.monotonic()
    await create_node(client, _WAKING_NODE)
    await until_quiet(scheduler, client, clock=clock)
    return Asked(WOKEN, begin, clock.monotonic())


def longest_turns(
    turns: Iterable[Turn], asked: Iterable[Asked], *, began: float
) -> Iterator[Figure]:
    """Yield the longest of the *turns* that ended while each thing was *asked*, or nothing was.

    Those until pods were created, which *began* then, are told apart.
    """
    longest: dict[str, Turn | None] = dict.fromkeys([START, NOTHING])
    longest |= dict.fromkeys(question.name for question in asked)
    for turn in turns:
        during = (question.name for question in asked if question.begin <= turn.end <= question.end)
        name = START if turn.end < began else next(during, NOTHING)
        before = longest[name]
        if before is None or turn.cpu > before.cpu:
            longest[name] = turn
    for name, top in longest.items():
        cpu, outcome = (0.0, "none was long") if top is None else (top.cpu, str(top))
        yield figure("longest turn", cpu * 1e3, "ms", outcome=outcome, meanwhile=name)


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
        changes = zip(
            arrivals(settings.node_changes, settings.seconds),
            (partial(self._change_node, number, settings.nodes) for number in count()),
            strict=False,
        )
        end = (settings.seconds, self._look)
        deletions = (
            (moment + settings.lifetime, partial(self._delete, name))
            for moment, name in zip(moments, names, strict=True)
        )
        return heapq.merge(creations, changes, [end], deletions, key=itemgetter(0))

    async def _create(self, name: str) -> None:
        body = msgspec.json.encode(_pod(name))
        self.sent[f"{NAMESPACE}/{name}"] = self._clock.monotonic()
        await self._client.request("POST", PODS_PATH, body=body)

    async def _delete(self, name: str) -> None:
        await self._client.request("DELETE", f"{PODS_PATH}/{name}", body=NOW)

    async def _change_node(self, number: int, nodes: int) -> None:
        name = f"node-{number % nodes}"
        changes: tuple[tuple[str, object], ...] = (
            ("/status", {"status": {"conditions": [_heartbeat(number)]}}),
            ("", {"metadata": {"labels": {"berth-bench-change": str(number)}}}),
            (
                "/status",
                {"status": {"allocatable": {"ephemeral-storage": f"{100 + number % 7}Gi"}}},
            ),
        )
        part, change = changes[number % len(changes)]
        await self._client.request(
            "PATCH",
            f"/api/v1/nodes/{name}{part}",
            body=msgspec.json.encode(change),
            content_type="application/strategic-merge-patch+json",
        )

    async def _look(self) -> None:
        self._scheduler.check()
        self.used = self._scheduler.used().since(self._before)


def _pod(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": workloads.requests(100, 128)}


def _heartbeat(number: int) -> dict[str, str]:
    minutes, seconds = divmod(number, 60)
    return {
        "type": "Ready",
        "status": "True",
        "lastHeartbeatTime": f"2026-01-01T{minutes // 60 % 24:02}:{minutes % 60:02}:{seconds:02}Z",
    }


def _waiting(count: int) -> Iterator[dict[str, object]]:
    """Make pods that ask for more than any node has, and for nodes that there are not."""
    too_large = next(w.spec for w in workloads.WORKLOADS if w.name == HOPELESS)
    for number in range(count):
        spec = too_large(number) if number % 2 else workloads.requests(100 + number, 64)
        if not number % 2:
            spec["nodeSelector"] = _NO_NODE
        yield {"metadata": {"name": f"waiting-{number:06}"}, "spec": spec}


_NO_NODE: Final = {"berth-bench-pool": "waking"}
_WAITING_KEY: Final = f"{NAMESPACE}/waiting-000000"
_WAKING_NODE: Final[dict[str, Any]] = {
    "metadata": {"name": "waking", "labels": _NO_NODE},
    "spec": {"taints": [{"key": "berth-bench", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "10000000", "memory": "1Ti", "pods": "100000"}},
}
