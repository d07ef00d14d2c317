"""Pods come and go while replicas are killed, stopped, cut off and slow; and what is broken.

::

    API server  <--  FaultyApi  --  replica 1: watches, scheduler, Leases
        |       <--  FaultyApi  --  replica 2
        +-- Truth: everything that happens, and whether it may

At the end every pod has a node that there is one for, and nothing that one scheduler guarantees has
been broken at any moment. Pods are deleted as others come, so that it may go on for long.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Iterator
from typing import Final

import msgspec

from berth.runtime.tasks import background
from berth.runtime.virtual_time import VirtualClock, VirtualTimeLoop
from berth.scheduler.shards.slots import slot_of
from berth.tools.bench.results import Figure, figure
from berth.tools.bench.shards.truth import Seen, Truth
from berth.tools.bench.shards.workload import (
    NAMESPACES,
    WEIGHTS,
    App,
    app_of,
    device_class,
    devices_of,
    node_of_volume,
    priority_classes,
    storage_class,
    volume_of,
)
from berth.tools.bench.shards.world import (
    NODE_CPU,
    START,
    ZONE,
    Replica,
    Tally,
    World,
    node_of,
    pods_path,
)

PATIENCE: Final = 120.0
"""Seconds after the last fault until a pod that waits is called pending."""
GATES: Final = ("GenericWorkload", "GangScheduling")
CONTROLLERS: Final = (
    "persistentvolume-binder-controller",
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
    "podgroup-protection-controller",
    "resourceclaim-controller",
)
VOLUMES_PER_NODE: Final = 1
DEVICES_PER_NODE: Final = 2
SHARE_TAKEN: Final = 0.5
"""Of volumes and of devices, at most: so there is one for every pod."""
SECONDS_BETWEEN_PODS: Final = 0.02
SECONDS_OF_USE: Final = 5.0
"""For which a pod has a volume that others wait for."""
FAILOVER: Final = 25.0
"""Seconds until a replica that fails is expelled and others have its slots, with time to spare."""
RETURN: Final = 10.0
"""Seconds until one that comes back has some."""
CALM: Final = "in calm"
OTHERS: Final = "of others, while a replica fails"
FAILED: Final = "of the replica that fails"
TIMED: Final = frozenset({"plain", "apart", "spread", "together"})
"""Kinds of pods that wait for nothing but a replica."""
BY_UID: Final = frozenset({"plain", "apart"})
"""Kinds whose home goes by their UID; that of all others goes by their namespace."""

MOST_TOLD: Final = 10


class Settings(msgspec.Struct, frozen=True):
    replicas: int = 4
    slots: int = 32
    nodes: int = 200
    pods: int = 10_000
    """Placements in all; as many of them are there at once as :attr:`fill` allows."""
    fill: float = 0.7
    """The share of the nodes' CPU that is taken at most."""
    faults: int = 12
    """Times that a replica, or two, are killed, stopped, cut off or made slow."""
    seed: int = 1


class Trouble(msgspec.Struct, frozen=True):
    """A time in which pods may wait for a replica that has failed."""

    begins: float
    ends: float
    slots: frozenset[int]
    """What it had."""


class Running(msgspec.Struct):
    """An app, and which of its pods are there."""

    app: App
    left: set[str]
    waiting: set[str]
    """Keys of its pods that are there, and of those that have no node yet."""


class Soak:
    """Pods come and go while replicas fail, for one :meth:`run`."""

    def __init__(self, settings: Settings, clock: VirtualClock) -> None:
        self._settings = settings
        self._clock = clock
        self._world = World(
            clock,
            slots=settings.slots,
            seed=settings.seed,
            gates=GATES,
            controllers=CONTROLLERS,
        )
        self._rng = self._world.rng
        self._truth: Truth
        self._apps: dict[str, Running] = {}
        """By namespace/name of the app, the oldest first."""
        self._ended: deque[Running] = deque()
        """Apps whose pods are all gone, with what they needed still there."""
        self._created = self._cpu = self._evicted = 0
        self._deleting: set[str] = set()
        self._volumes = 0
        self._troubles: list[Trouble] = []
        self._waits: dict[str, list[float]] = {when: [] for when in (CALM, OTHERS, FAILED)}
        """Seconds until a pod has a node, by when it was created."""
        self._kinds: Counter[str] = Counter()

    async def run(self) -> "Outcome":
        async with self._world as world:
            await self._furnish()
            async with background() as start:
                start("truth", self._truth.run)
                start("ends", self._clear_up)
                for _ in range(self._settings.replicas):
                    world.start_replica()
                await self._clock.sleep(30.0)
                faults = asyncio.create_task(self._fail(), name="faults")
                while self._created < self._settings.pods:
                    await self._start(self._next_app())
                await faults
                return self._outcome(await self._until_none_waits())

    async def _furnish(self) -> None:
        """Create what is there before pods come."""
        world, nodes = self._world, [node_of(count) for count in range(self._settings.nodes)]
        await world.create_nodes(len(nodes))
        for namespace in NAMESPACES:
            await world.create_namespace(namespace)
        for needed in (storage_class(), device_class(), *priority_classes()):
            await world.create(*needed)
        for node in nodes:
            name = node["metadata"]["name"]
            await world.create(*devices_of(name, DEVICES_PER_NODE))
            for _ in range(VOLUMES_PER_NODE):
                await self._create_volume(name)
        zones = {node["metadata"]["name"]: node["metadata"]["labels"][ZONE] for node in nodes}
        self._truth = Truth(world.api, self._clock, zones)
        self._truth.on_bound, self._truth.on_gone = self._bound, self._gone

    async def _create_volume(self, node: str) -> None:
        self._volumes += 1
        await self._world.create(*volume_of(node, self._volumes))

    # Faults

    async def _fail(self) -> None:
        """Fail one or two replicas after the other; whoever ends comes back as another member."""
        for _ in range(self._settings.faults):
            await self._clock.sleep(self._rng.uniform(1.0, 15.0))
            failing = self._rng.sample(self._world.replicas, self._rng.choice((1, 1, 1, 2)))
            await asyncio.gather(*(self._let_fail(replica) for replica in failing))
            await self._clock.sleep(1.0)
            self._world.replace_ended()
            self._expect_trouble(RETURN, frozenset())

    def _expect_trouble(self, seconds: float, slots: frozenset[int]) -> None:
        now = self._clock.monotonic()
        self._troubles = [each for each in self._troubles if each.ends > now - PATIENCE]
        self._troubles.append(Trouble(now, now + seconds, slots))

    async def _let_fail(self, replica: Replica) -> None:
        faults = replica.api.faults
        kind, seconds = self._rng.choice(("kill", "stop", "cut", "slow")), self._rng.uniform(1, 40)
        self._expect_trouble(max(seconds, FAILOVER), _slots(replica))
        if kind == "kill":
            faults.delay = 1.5  # what is on its way when it dies arrives later
            await self._clock.sleep(0.5)
            await replica.kill()
        elif kind == "stop":
            faults.goes_on.clear()
        elif kind == "cut":
            faults.is_cut = True
        else:
            faults.delay = 2.0
        await self._clock.sleep(seconds)
        faults.is_cut = kind == "kill"
        faults.delay = 0.0
        faults.goes_on.set()

    # What is scheduled

    def _next_app(self) -> App:
        """Return an app for which there are volumes or devices, if it needs some."""
        live = Counter[str]()
        for running in self._apps.values():
            live[running.app.kind] += len(running.app.needs)
        has_room = {
            "devices": live["devices"] < SHARE_TAKEN * DEVICES_PER_NODE * self._settings.nodes,
            "volume": live["volume"] < SHARE_TAKEN * VOLUMES_PER_NODE * self._settings.nodes,
        }
        kinds = [kind for kind in WEIGHTS if has_room.get(kind, True)]
        kind = self._rng.choices(kinds, [WEIGHTS[kind] for kind in kinds])[0]
        return app_of(kind, self._created, self._rng, most=self._settings.nodes // 2)

    async def _start(self, app: App) -> None:
        """Create *app*, once there is room for it."""
        self._kinds[app.kind] += len(app.pods)
        keys = {f"{app.namespace}/{pod['metadata']['name']}" for pod in app.pods}
        running = Running(app, keys, set(keys))
        await self._make_room()
        for path, needed in app.needs:
            await self._world.create(path, needed)
        self._apps[f"{app.namespace}/{app.name}"] = running
        for pod in app.pods:
            await self._world.create_pod(pod)
            self._created += 1
            await self._clock.sleep(SECONDS_BETWEEN_PODS)

    async def _make_room(self) -> None:
        """Delete apps whose pods all have nodes, the oldest first, while there is too much."""
        room, patience = self._settings.fill * self._settings.nodes * NODE_CPU, PATIENCE
        while self._truth.cpu > room and patience > 0:
            oldest = next((each for each in self._apps.values() if not each.waiting), None)
            for key in [] if oldest is None else [*oldest.left]:
                await self._delete_pod(key)
            pause = 1.0 if oldest is None else SECONDS_BETWEEN_PODS
            await self._clock.sleep(pause)
            patience -= pause

    async def _delete_pod(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        self._deleting.add(key)
        await self._world.delete(f"{pods_path(namespace)}/{name}")

    async def _clear_up(self) -> None:
        """Delete what apps needed that have ended; and pods with a volume that others wait for."""
        while True:
            await self._clock.sleep(1.0)
            while self._ended:
                app = self._ended.popleft().app
                for path, needed in app.needs:
                    await self._world.delete(f"{path}/{needed['metadata']['name']}")
                if app.kind == "volume":
                    volume = self._truth.volume_of(f"{app.namespace}/{app.name}")
                    await self._world.delete(f"/api/v1/persistentvolumes/{volume}")
                    await self._create_volume(node_of_volume(volume))
            for running in [each for each in self._apps.values() if each.app.kind == "volume"]:
                for key in running.left - running.waiting:
                    await self._delete_pod(key)

    def _bound(self, pod: Seen, waited: float) -> None:
        self._apps[f"{pod.namespace}/{pod.app}"].waiting.discard(pod.key)
        if pod.kind in TIMED:
            self._waits[self._when(pod)].append(waited)

    def _when(self, pod: Seen) -> str:
        """Return what was going on when *pod* was created."""
        home = slot_of(pod.uid if pod.kind in BY_UID else pod.namespace, self._settings.slots)
        troubles = [each for each in self._troubles if each.begins <= pod.since <= each.ends]
        if any(home in trouble.slots for trouble in troubles):
            return FAILED
        return OTHERS if troubles else CALM

    def _gone(self, pod: Seen) -> None:
        name = f"{pod.namespace}/{pod.app}"
        running = self._apps[name]
        running.left.discard(pod.key)
        running.waiting.discard(pod.key)
        if pod.key in self._deleting:
            self._deleting.discard(pod.key)
        else:
            self._evicted += 1
            if pod.kind != "plain":
                self._truth.broken.append(f"{pod.key} was evicted")
        if not running.left:
            self._ended.append(self._apps.pop(name))

    # What came of it

    async def _until_none_waits(self) -> float:
        """Return after how many seconds no pod waited any more that has a node to go to."""
        started = self._clock.monotonic()
        while self._truth.waiting and self._clock.monotonic() - started <= PATIENCE:
            await self._clock.sleep(0.5)
            self._world.replace_ended()
        return self._clock.monotonic() - started

    def _outcome(self, waited: float) -> "Outcome":
        truth = self._truth
        for pod in truth.pods.values():
            if pod.node:
                truth.look_at_claims(pod)
        tally = self._world.tally
        for replica in self._world.replicas:
            tally.add(replica)
        return Outcome(
            placed=truth.bound,
            kinds=dict(self._kinds),
            pending=tuple(pod.key for pod in truth.waiting),
            broken=tuple(truth.broken),
            waited=waited,
            waits={when: tuple(sorted(waits)) for when, waits in self._waits.items()},
            devices=truth.devices_given,
            volumes=truth.volumes_given,
            evicted=self._evicted,
            tally=tally,
        )


def _slots(replica: Replica) -> frozenset[int]:
    parts = replica.service.shard_parts
    return frozenset() if parts is None else parts.ownership.active


class Outcome(msgspec.Struct, frozen=True):
    placed: int
    kinds: dict[str, int]
    """Pods that were created, by kind."""
    pending: tuple[str, ...]
    broken: tuple[str, ...]
    """What is not as one scheduler would have left it."""
    waited: float
    """Seconds after the last fault until no pod waited any more."""
    waits: dict[str, tuple[float, ...]]
    """Seconds from creation to node, the shortest first, by what was going on."""
    devices: int
    volumes: int
    """How many were given."""
    evicted: int
    tally: Tally

    def figures(self) -> Iterator[Figure]:
        """Yield what is printed."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kinds.items()))
        outcome = f"{len(self.broken)} broken guarantees, {len(self.pending)} pending; {kinds}"
        yield figure("placed", self.placed, "pods", outcome=outcome)
        for what in self.broken[:MOST_TOLD]:
            yield figure("broken", 1, "", outcome=what)
        yield figure("waited after the last fault", self.waited, "s")
        for when, waits in self.waits.items():
            if waits:
                p50, p99 = (waits[len(waits) * percent // 100] for percent in (50, 99))
                outcome = f"p50 {p50:.2f} s, longest {waits[-1]:.1f} s, {len(waits)} pods"
                yield figure(f"p99 of the wait for a node {when}", p99, "s", outcome=outcome)
        given = f"{self.volumes} volumes given, {self.evicted} pods evicted"
        yield figure("devices given", self.devices, "", outcome=given)
        tally = self.tally
        yield figure("offers", tally.offers, "pods", outcome=f"{tally.refused} refused")
        yield figure("slots moved", tally.moves, "", outcome=f"{tally.expelled} members expelled")
        yield figure("replicas that ended", tally.died, "")


def run_soak(settings: Settings) -> Outcome:
    """Run one soak on a clock that jumps ahead."""
    clock = VirtualClock(START)
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner:
        return runner.run(Soak(settings, clock).run())
