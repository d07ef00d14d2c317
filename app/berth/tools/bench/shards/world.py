"""An API server and the replicas that schedule on it, in this process and in virtual time."""

import asyncio
import copy
import random
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Self, TypeVar

import msgspec

from berth.cluster.access.users import ADMIN, SCHEDULER
from berth.cluster.controllers.options import ControllerOptions
from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.cluster.features import default_features
from berth.cluster.in_process_api import InProcessApi
from berth.kube.client.api_client import check_fences
from berth.kube.client.errors import NotFoundError, UnavailableError
from berth.kube.objects.meta import ListHead
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock
from berth.runtime.release import RELEASE
from berth.runtime.virtual_time import VirtualClock
from berth.scheduler.config.load import default_configuration
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.metrics.selection import Selection
from berth.scheduler.profile.build import args_models
from berth.scheduler.shards.slots import Slots
from berth.service.leaderelection.build import make_elector, make_membership
from berth.service.leaderelection.elector import LeaderElector
from berth.service.leaderelection.membership import Membership
from berth.service.scheduler_service import SchedulerService
from berth_plugins.registry import IN_TREE

START: Final = 1_767_225_600.0
ZONES: Final = 4
ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
NODE_CPU, NODE_PODS = 8_000, 32
"""Milli-cores and pods of a node."""
POD_CPU: Final = 250
T = TypeVar("T", bound=msgspec.Struct)


class Faults:
    """What is wrong with one replica, or between it and the API server."""

    def __init__(self, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self.is_cut = False
        """Whether every request and every answer is lost."""
        self.delay = 0.0
        """How many seconds a request takes at most until it arrives, and its answer until that
        does."""
        self.goes_on = asyncio.Event()
        """Cleared while the process stands still: nothing leaves, comes in or is due."""
        self.goes_on.set()

    async def pass_by(self, what: str, *, sent: bool | None) -> None:
        """Return when a message may pass; UnavailableError if it is lost."""
        await self.goes_on.wait()
        if self.is_cut:
            raise UnavailableError(f"{what}: cut off", sent=sent)

    async def flight(self) -> None:
        """Return when a message arrives."""
        if self.delay:
            await self._clock.sleep(self._rng.uniform(0.0, self.delay))


class StoppableClock:
    """The clock of one replica: nobody wakes up while the process stands still."""

    def __init__(self, clock: Clock, faults: Faults) -> None:
        self._clock = clock
        self._faults = faults
        self.now = clock.now
        self.monotonic = clock.monotonic
        self.cpu_time = clock.cpu_time

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        await self._faults.goes_on.wait()


class FaultyApi(InProcessApi):
    """The API as one replica reaches it.

    The fence is asked after the process stood still, and before the request is on its way; what is
    on its way arrives, also if its sender is dead by then.
    """

    faults: Faults

    @classmethod
    def over(cls, api: InProcessApi, faults: Faults) -> Self:
        made = cls.__new__(cls)
        vars(made).update(vars(api))
        made.faults = faults
        return made

    async def request(self, method: str, path: str, **kwargs: Any) -> bytes:
        what = f"{method} {path}"
        await self.faults.pass_by(what, sent=False)
        check_fences(self._fences, method, path)
        arriving = asyncio.create_task(self._arrive(method, path, **kwargs), name=what)
        arriving.add_done_callback(_retrieve)
        answer = await asyncio.shield(arriving)
        await self.faults.flight()
        await self.faults.pass_by(what, sent=None)
        return answer

    async def _arrive(self, method: str, path: str, **kwargs: Any) -> bytes:
        await self.faults.flight()
        unfenced = copy.copy(self)
        unfenced._fences = ()
        return await InProcessApi.request(unfenced, method, path, **kwargs)

    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        await self.faults.pass_by(path, sent=False)
        async for line in super().watch(path, params):
            await self.faults.pass_by(path, sent=True)
            yield line


def _retrieve(task: asyncio.Task[bytes]) -> None:
    if not task.cancelled():
        task.exception()


class Replica:
    """A scheduler with its own view of the API; without *slots*, one that schedules alone."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        config: KubeSchedulerConfiguration,
        slots: Slots | None,
        pool: str = "",
        *,
        clock: Clock,
        seed: int,
    ) -> None:
        rng = random.Random(seed)
        faults = Faults(clock, rng)
        self.api = FaultyApi.over(cluster.in_process("berth", user=SCHEDULER), faults)
        clock = StoppableClock(clock, faults)
        registry = Selection()
        make: Callable[..., LeaderElector | Membership] = make_elector
        if slots is not None:
            make = partial(make_membership, slots=slots, pool=pool)
        self.elector = make(self.api, config, registry=registry, clock=clock, rng=rng)
        self.service = SchedulerService(
            self.api,
            config,
            clock=clock,
            rng=rng,
            elector=self.elector,
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


class Tally(msgspec.Struct):
    """What replicas have done together."""

    offers: int = 0
    refused: int = 0
    moves: int = 0
    """Slots that were taken or given."""
    expelled: int = 0
    died: int = 0
    """Replicas that ended and were replaced."""

    def add(self, replica: Replica) -> None:
        parts, keeper = replica.service.shard_parts, replica.service.keeper
        if parts is not None and keeper is not None:
            self.offers += parts.offers.made
            self.refused += parts.offers.refused
            self.moves += keeper.moves
            self.expelled += keeper.expelled


class World:
    """An API server with nodes, and the replicas that schedule on it; for ``async with``."""

    def __init__(
        self,
        clock: VirtualClock,
        *,
        slots: int | Slots,
        seed: int = 1,
        gates: Collection[str] = (),
        controllers: Sequence[str] = (),
    ) -> None:
        """*gates* are feature gates to turn on beside those that are; of *controllers* run those
        that are named."""
        self.clock = clock
        self.rng = random.Random(seed)
        self.replicas: list[Replica] = []
        self.tally = Tally()
        """Of replicas that have ended."""
        self._slots = Slots(slots) if isinstance(slots, int) else slots
        turned_on = {"feature_gates": dict.fromkeys(gates, True)}
        self._config = default_configuration(
            args_models(IN_TREE), adjust=lambda config: config.model_copy(update=turned_on)
        )
        self._cluster = EmbeddedCluster(
            clock=clock,
            rng=self.rng,
            insecure=True,
            features={*default_features(RELEASE), *gates},
            controller_options=ControllerOptions(controllers=tuple(controllers)),
        )
        self._runs_controllers = bool(controllers)
        self._numbers = iter(range(10**9))

    async def __aenter__(self) -> Self:
        await self._cluster.start(0)
        self.api = self._cluster.in_process("bench", user=ADMIN)
        self._controllers: asyncio.Task[None] | None = None
        if self._runs_controllers:
            controllers = self._cluster.run_controllers()
            self._controllers = asyncio.create_task(controllers, name="controllers")
        return self

    async def __aexit__(self, *_error: object) -> None:
        for replica in self.replicas:
            await replica.kill()
        if self._controllers is not None:
            self._controllers.cancel()
            await asyncio.wait([self._controllers])
        await self._cluster.stop()

    def start_replica(self, *, is_shared: bool = True, pool: str = "") -> Replica:
        """Start one more; it takes its slots within seconds, unless it is to schedule alone."""
        slots = self._slots if is_shared else None
        seed = next(self._numbers)
        replica = Replica(self._cluster, self._config, slots, pool, clock=self.clock, seed=seed)
        self.replicas.append(replica)
        return replica

    def replace_ended(self) -> None:
        """Start another in place of each that has ended, as a Deployment does."""
        for replica in [replica for replica in self.replicas if replica.task.done()]:
            if not replica.task.cancelled():
                replica.task.exception()  # it has lost its Lease, as it should
            self.replicas.remove(replica)
            self.tally.died += 1
            self.tally.add(replica)
            self.start_replica()

    async def create_nodes(self, number: int) -> None:
        for count in range(number):
            node = node_of(count)
            await self.create("/api/v1/nodes", node)
            await self.api.request("PATCH", **untainted(node))

    async def create(self, path: str, obj: dict[str, Any]) -> None:
        await self.api.request("POST", path, body=msgspec.json.encode(obj))

    async def create_namespace(self, name: str) -> None:
        """Create a namespace in which pods may be made."""
        await self.create("/api/v1/namespaces", {"metadata": {"name": name}})
        account = {"metadata": {"name": "default"}}
        await self.create(f"/api/v1/namespaces/{name}/serviceaccounts", account)

    async def create_pod(self, pod: dict[str, Any]) -> None:
        await self.create(pods_path(pod["metadata"]["namespace"]), pod)

    async def delete(self, path: str) -> None:
        """Delete an object at once, unless it is gone."""
        body = msgspec.json.encode({"gracePeriodSeconds": 0})
        with suppress(NotFoundError):
            await self.api.request("DELETE", path, body=body)

    async def pods(self) -> list[Pod]:
        return await self._all("/api/v1/pods", Pod)

    async def nodes(self) -> list[Node]:
        return await self._all("/api/v1/nodes", Node)

    async def _all(self, path: str, kind: type[T]) -> list[T]:
        answer = await self.api.request("GET", path)
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


def node_of(number: int) -> dict[str, Any]:
    """Return the node of a number; its zone follows from that."""
    amounts = {"cpu": f"{NODE_CPU}m", "memory": "64Gi", "pods": str(NODE_PODS)}
    name = f"node-{number:05}"
    return {
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: f"zone-{number % ZONES}"}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def untainted(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request that finds *node* ready, which no controller does here."""
    return {
        "path": f"/api/v1/nodes/{node['metadata']['name']}",
        "body": msgspec.json.encode({"spec": {"taints": None}}),
        "content_type": "application/merge-patch+json",
    }


def pods_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def pod_of(kind: str, app: str, name: str, *, namespace: str = "default") -> dict[str, Any]:
    """Return a pod of one of the kinds of :data:`SPECS`."""
    labels = {"app": app, "kind": kind}
    selector = {"matchLabels": {"app": app}}
    container = {
        "name": "c",
        "image": "i",
        "resources": {"requests": {"cpu": f"{POD_CPU}m", "memory": "64Mi"}},
    }
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
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
