"""``berth bench shards``: several active schedulers on one cluster, and what goes wrong with them.

An API server, replicas and their faults, all in this process and in virtual time::

    API server  <--  FaultyApi  --  replica 1: watches, scheduler, Leases
                <--  FaultyApi  --  replica 2
    pods come and plain ones go; replicas are killed, stopped and cut off

At the end every pod has a node, and nothing that one scheduler guarantees is broken.
"""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Self, TypeVar

import msgspec

from berth.cluster.access.users import SCHEDULER
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.cluster.in_process_api import InProcessApi
from berth.kube.client.errors import UnavailableError
from berth.kube.objects.meta import ListHead
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock
from berth.runtime.virtual_time import VirtualClock, VirtualTimeLoop
from berth.scheduler.config.load import default_configuration
from berth.scheduler.metrics.selection import Selection
from berth.scheduler.profile.build import args_models
from berth.service.leaderelection.build import make_membership
from berth.service.scheduler_service import SchedulerService
from berth.tools.bench.results import Figure, figure
from berth_plugins.registry import IN_TREE

START: Final = 1_767_225_600.0
ZONES: Final = 4
ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
NODE_CPU, NODE_PODS = 8_000, 32
"""Milli-cores and pods of a node."""
POD_CPU: Final = 250
PODS_PATH: Final = "/api/v1/namespaces/default/pods"
PATIENCE: Final = 120.0
"""Seconds after the last fault until a pod that waits is called pending."""

T = TypeVar("T", bound=msgspec.Struct)


class Settings(msgspec.Struct, frozen=True):
    replicas: int = 4
    slots: int = 32
    nodes: int = 200
    pods: int = 10_000
    """Placements in all; as many of them are there at once as :attr:`fill` allows."""
    fill: float = 0.7
    """The share of the nodes' room for pods that is taken at most."""
    faults: int = 12
    """Replicas that are killed, stopped or cut off, one after the other."""
    seed: int = 1


class Faults:
    """What is wrong between one replica and the API server."""

    def __init__(self) -> None:
        self.is_cut = False
        """Whether every request and every answer is lost."""
        self.goes_on = asyncio.Event()
        """Cleared while nothing leaves or comes in, as if the process stood still."""
        self.goes_on.set()

    async def pass_by(self, what: str, *, sent: bool | None) -> None:
        """Return when a message may pass; UnavailableError if it is lost."""
        await self.goes_on.wait()
        if self.is_cut:
            raise UnavailableError(f"{what}: cut off", sent=sent)


class FaultyApi(InProcessApi):
    """The API as one replica reaches it. The fence is asked after the process stood still."""

    faults: Faults

    @classmethod
    def over(cls, api: InProcessApi) -> Self:
        made = cls.__new__(cls)
        vars(made).update(vars(api))
        made.faults = Faults()
        return made

    async def request(self, method: str, path: str, **kwargs: Any) -> bytes:
        what = f"{method} {path}"
        await self.faults.pass_by(what, sent=False)
        answer = await super().request(method, path, **kwargs)
        await self.faults.pass_by(what, sent=None)
        return answer

    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        await self.faults.pass_by(path, sent=False)
        async for line in super().watch(path, params):
            await self.faults.pass_by(path, sent=True)
            yield line


class Replica:
    """A scheduler with its own view of the API."""

    def __init__(self, cluster: EmbeddedCluster, slots: int, clock: Clock, seed: int):
        self.api = FaultyApi.over(cluster.in_process("berth", user=SCHEDULER))
        config = default_configuration(args_models(IN_TREE))
        registry = Selection()
        rng = random.Random(seed)
        self.membership = make_membership(
            self.api,  # type: ignore[arg-type]
            config,
            num_slots=slots,
            registry=registry,
            clock=clock,
            rng=rng,
        )
        self.service = SchedulerService(
            self.api,
            config,
            clock=clock,
            rng=rng,
            elector=self.membership,
            shards=slots,
            registry=registry,
        )
        self.task = asyncio.create_task(self.service.run(), name=f"replica {seed}")

    async def kill(self) -> None:
        """End at once: nothing that it does on its way out reaches the API server."""
        self.api.faults.is_cut = True
        self.api.faults.goes_on.set()
        self.task.cancel()
        await asyncio.wait([self.task])


class World:
    """An API server with nodes, and the replicas that schedule on it; for ``async with``."""

    def __init__(self, clock: VirtualClock, *, slots: int, seed: int = 1) -> None:
        self.clock = clock
        self.rng = random.Random(seed)
        self.replicas: list[Replica] = []
        self.ended: list[Replica] = []
        self._slots = slots
        self._cluster = EmbeddedCluster(clock=clock, rng=self.rng, insecure=True)
        self._numbers = iter(range(10**9))

    async def __aenter__(self) -> Self:
        await self._cluster.start(0)
        self._direct = self._cluster.in_process("bench", user=SCHEDULER)
        return self

    async def __aexit__(self, *_error: object) -> None:
        for replica in self.replicas:
            await replica.kill()
        await self._cluster.stop()

    def start_replica(self) -> Replica:
        """Start one more; it takes its slots within seconds."""
        seed = next(self._numbers)
        replica = Replica(self._cluster, self._slots, self.clock, seed)
        self.replicas.append(replica)
        return replica

    def replace_ended(self) -> None:
        """Start another in place of each that has ended, as a Deployment does."""
        for replica in [replica for replica in self.replicas if replica.task.done()]:
            if not replica.task.cancelled():
                replica.task.exception()  # it has lost its Lease, as it should
            self.replicas.remove(replica)
            self.ended.append(replica)
            self.start_replica()

    async def create_nodes(self, number: int) -> None:
        amounts = {"cpu": f"{NODE_CPU}m", "memory": "64Gi", "pods": str(NODE_PODS)}
        for count in range(number):
            name = f"node-{count:05}"
            labels = {HOSTNAME: name, ZONE: f"zone-{count % ZONES}"}
            node = {
                "metadata": {"name": name, "labels": labels},
                "status": {"allocatable": amounts, "capacity": amounts},
            }
            await self._direct.request("POST", "/api/v1/nodes", body=msgspec.json.encode(node))
            # No controller runs that would find the node ready.
            await self._direct.request(
                "PATCH",
                f"/api/v1/nodes/{name}",
                body=msgspec.json.encode({"spec": {"taints": None}}),
                content_type="application/merge-patch+json",
            )

    async def create_pod(self, pod: dict[str, Any]) -> None:
        await self._direct.request("POST", PODS_PATH, body=msgspec.json.encode(pod))

    async def delete_pod(self, name: str) -> None:
        body = msgspec.json.encode({"gracePeriodSeconds": 0})
        await self._direct.request("DELETE", f"{PODS_PATH}/{name}", body=body)

    async def pods(self) -> list[Pod]:
        return await self._all(PODS_PATH, Pod)

    async def nodes(self) -> list[Node]:
        return await self._all("/api/v1/nodes", Node)

    async def _all(self, path: str, kind: type[T]) -> list[T]:
        answer = await self._direct.request("GET", path)
        return [
            msgspec.json.decode(item, type=kind)
            for item in msgspec.json.decode(answer, type=ListHead).items
        ]

    async def until_all_have_nodes(self, patience: float) -> float:
        """Return after how many seconds no pod waited any more, or *patience*."""
        started = self.clock.monotonic()
        while any(not pod.spec.node_name for pod in await self.pods()):
            if self.clock.monotonic() - started > patience:
                break
            await self.clock.sleep(0.5)
            self.replace_ended()
        return self.clock.monotonic() - started


class Soak:
    """Pods come and go while replicas fail, for one :meth:`run`."""

    def __init__(self, settings: Settings, clock: VirtualClock) -> None:
        self._settings = settings
        self._clock = clock
        self._world = World(clock, slots=settings.slots, seed=settings.seed)
        self._rng = self._world.rng
        self._created = 0

    async def run(self) -> "Outcome":
        async with self._world as world:
            await world.create_nodes(self._settings.nodes)
            for _ in range(self._settings.replicas):
                world.start_replica()
            await self._clock.sleep(30.0)
            faults = asyncio.create_task(self._fail(), name="faults")
            for pod in self._workload():
                await self._make_room()
                await world.create_pod(pod)
                self._created += 1
                await self._clock.sleep(0.02)
            await faults
            waited = await world.until_all_have_nodes(PATIENCE)
            return await self._outcome(waited)

    async def _fail(self) -> None:
        """Fail one replica after the other; whoever has ended comes back as another member."""
        for _ in range(self._settings.faults):
            await self._clock.sleep(self._rng.uniform(1.0, 15.0))
            replica = self._rng.choice(self._world.replicas)
            kind, seconds = self._rng.choice(("kill", "stop", "cut")), self._rng.uniform(1.0, 40.0)
            if kind == "kill":
                await replica.kill()
            elif kind == "stop":
                replica.api.faults.goes_on.clear()
            else:
                replica.api.faults.is_cut = True
            await self._clock.sleep(seconds)
            replica.api.faults.is_cut = kind == "kill"
            replica.api.faults.goes_on.set()
            await self._clock.sleep(1.0)
            self._world.replace_ended()

    # What is scheduled.

    def _workload(self) -> Iterator[dict[str, Any]]:
        left = self._settings.pods
        while left > 0:
            kind = self._rng.choices([*SPECS], weights=(6, 2, 2, 1))[0]
            app = f"{kind}-{left}"
            for _ in range(min(left, self._rng.randint(4, self._settings.nodes // 2))):
                left -= 1
                yield pod_of(kind, app, f"{app}-{left}")

    async def _make_room(self) -> None:
        """Delete plain pods, the oldest first, when there are as many as there may be at once."""
        room = self._settings.fill * self._settings.nodes * NODE_PODS
        if self._created % 100 or self._created < room:
            return
        pods = await self._world.pods()
        extra = len(pods) - int(room) + 100
        old = [p for p in pods if p.metadata.labels["kind"] == "plain" and p.spec.node_name]
        for pod in sorted(old, key=lambda pod: pod.metadata.creation_timestamp or "")[:extra]:
            await self._world.delete_pod(pod.metadata.name)

    # What came of it.

    async def _outcome(self, waited: float) -> "Outcome":
        nodes, pods = await self._world.nodes(), await self._world.pods()
        everyone = [*self._world.replicas, *self._world.ended]
        services = [replica.service for replica in everyone]
        offers = [each.shard_parts.offers for each in services if each.shard_parts is not None]
        keepers = [each.keeper for each in services if each.keeper is not None]
        return Outcome(
            placed=self._created - sum(not pod.spec.node_name for pod in pods),
            pending=sum(not pod.spec.node_name for pod in pods),
            broken=tuple(broken(nodes, pods)),
            waited=waited,
            offers=sum(each.made for each in offers),
            refused=sum(each.refused for each in offers),
            moves=sum(each.moves for each in keepers),
            expelled=sum(each.expelled for each in keepers),
            died=len(self._world.ended),
        )


class Outcome(msgspec.Struct, frozen=True):
    placed: int
    pending: int
    broken: tuple[str, ...]
    """What is not as one scheduler would have left it."""
    waited: float
    """Seconds after the last fault until no pod waited any more."""
    offers: int
    refused: int
    moves: int
    """Slots that were taken or given."""
    expelled: int
    died: int
    """Replicas that ended and were replaced."""

    def figures(self) -> Iterator[Figure]:
        """Yield what is printed."""
        outcome = f"{len(self.broken)} broken guarantees, {self.pending} pending"
        yield figure("placed", self.placed, "pods", outcome=outcome)
        yield figure("waited after the last fault", self.waited, "s")
        yield figure("offers", self.offers, "pods", outcome=f"{self.refused} refused")
        yield figure("slots moved", self.moves, "", outcome=f"{self.expelled} members expelled")
        yield figure("replicas that ended", self.died, "")


def broken(nodes: Sequence[Node], pods: Sequence[Pod]) -> Iterator[str]:
    """Yield what required of nodes and pods does not hold."""
    zones = {node.metadata.name: node.metadata.labels[ZONE] for node in nodes}
    on_node: Counter[str] = Counter()
    hosts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    by_zone: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pod in pods:
        if pod.spec.node_name:
            app = pod.metadata.labels["app"]
            on_node[pod.spec.node_name] += 1
            hosts[app][pod.spec.node_name] += 1
            by_zone[app][zones[pod.spec.node_name]] += 1
    for name, count in on_node.items():
        if count > min(NODE_PODS, NODE_CPU // POD_CPU):
            yield f"{name} has {count} pods"
    for app in hosts:
        kind, counts = app.partition("-")[0], by_zone[app]
        if kind == "apart" and max(hosts[app].values()) > 1:
            yield f"{app} has two pods on a node"
        if (
            kind == "spread"
            and max(counts.values()) - min(counts[z] for z in set(zones.values())) > 1
        ):
            yield f"{app} is spread as {dict(counts)}"
        if kind == "together" and len(counts) > 1:
            yield f"{app} is in {len(counts)} zones"


def pod_of(kind: str, app: str, name: str) -> dict[str, Any]:
    """Return a pod of one of the kinds of :data:`SPECS`."""
    labels = {"app": app, "kind": kind}
    selector = {"matchLabels": {"app": app}}
    container = {
        "name": "c",
        "image": "i",
        "resources": {"requests": {"cpu": f"{POD_CPU}m", "memory": "64Mi"}},
    }
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"containers": [container], **SPECS[kind](selector)},
    }


SPECS: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = {
    "plain": lambda _selector: {},
    "apart": lambda selector: _affinity("podAntiAffinity", HOSTNAME, selector),
    "spread": lambda selector: {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
            }
        ]
    },
    "together": lambda selector: _affinity("podAffinity", ZONE, selector),
}


def _affinity(kind: str, key: str, selector: Any) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": selector}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def run_soak(settings: Settings) -> Outcome:
    """Run one soak on a clock that jumps ahead."""
    clock = VirtualClock(START)
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner:
        return runner.run(Soak(settings, clock).run())
