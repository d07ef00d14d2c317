"""Pods come and go while replicas are killed, stopped and cut off; and what is broken then.

::

    API server  <--  FaultyApi  --  replica 1: watches, scheduler, Leases
                <--  FaultyApi  --  replica 2

At the end every pod has a node, and nothing that one scheduler guarantees is broken.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.runtime.virtual_time import VirtualClock, VirtualTimeLoop
from berth.tools.bench.results import Figure, figure
from berth.tools.bench.shards.world import (
    NODE_CPU,
    NODE_PODS,
    POD_CPU,
    SPECS,
    START,
    ZONE,
    World,
    pod_of,
)

PATIENCE: Final = 120.0
"""Seconds after the last fault until a pod that waits is called pending."""


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


def run_soak(settings: Settings) -> Outcome:
    """Run one soak on a clock that jumps ahead."""
    clock = VirtualClock(START)
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner:
        return runner.run(Soak(settings, clock).run())
