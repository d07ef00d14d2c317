"""A cluster whose days are recorded: pods and nodes come and go, and much goes wrong."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import httpx
from prometheus_client import CollectorRegistry

from berth.insight.recording import lines
from berth.insight.recording.chain import Chain
from berth.insight.recording.recorder import Recorder
from berth.insight.recording.replay import Replay
from berth.kube.client.errors import ServerError
from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.kube.objects.storage import SELECTED_NODE, PersistentVolume
from berth.runtime.clock import FakeClock
from berth.scheduler.config.feature_gates import (
    COMPOSITE_POD_GROUP,
    GENERIC_WORKLOAD,
    TOPOLOGY_AWARE,
    features_of,
)
from berth.scheduler.config.load import from_object
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.core.outside import Outside, RandomSources
from berth.scheduler.core.scheduler_core import CoreOptions, SchedulerCore
from berth.scheduler.extender.extenders import Extenders
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.metrics.scheduler_metrics import SchedulerMetrics
from berth.scheduler.profile.build import Registry, args_models
from berth_plugins.registry import IN_TREE
from tests.builders import claim_volume, node, pod, pod_anti_affinity, pod_term, selector, spread
from tests.device_builders import claim as device_claim
from tests.device_builders import device, device_class, resource_slice, with_claims
from tests.harness import FakeCluster, configuration_of
from tests.scheduler.extender.fakes import extenders
from tests.scheduler.pod_group.building import composite, group, members
from tests.volume_builders import claim, storage_class, volume

MODELS = args_models(IN_TREE)
ZONE = "topology.kubernetes.io/zone"
BROKEN = ServerError(500, "InternalError", "it is broken")


def config(registry: Registry = IN_TREE, **fields: Any) -> KubeSchedulerConfiguration:
    """The default configuration with other *fields*."""
    if not fields:
        return configuration_of(None, MODELS)
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return from_object({**head, **fields}, source="test", args_models=args_models(registry))


class UnreliableApi(FakeCluster):
    """Answers late, and sometimes with an error."""

    def __init__(self, clock: FakeClock, rng: random.Random, *, faults: float) -> None:
        super().__init__(clock, Listers())
        self.rng = rng
        self.faults = faults

    async def _answer(self) -> None:
        await self.clock.sleep(self.rng.random() * 0.2)
        if self.rng.random() < self.faults:
            raise BROKEN

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        await self._answer()
        if pod.key not in self.pods:
            raise BROKEN
        await super().bind(pod, node_name)

    async def evict(self, pod: Pod, condition: Condition, *, nominated: Pod | None = None) -> bool:
        await self._answer()
        return await super().evict(pod, condition, nominated=nominated)

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        await self._answer()
        return await super().update_persistent_volume(volume)

    # Nobody looks up the pods of bindings that failed.


def sealed(*written: bytes) -> bytes:
    """Return lines as they are in a file."""
    chain = Chain()
    return b"".join(chain.sealed(line) + b"\n" for line in written)


class MoodyExtender(httpx.AsyncBaseTransport):
    """Answers late, by chance, and sometimes with an error."""

    def __init__(self, clock: FakeClock, rng: random.Random, *, faults: float) -> None:
        self.clock, self.rng, self.faults = clock, rng, faults
        self.asked = Counter[str]()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        verb = request.url.path.rpartition("/")[2]
        self.asked[verb] += 1
        await self.clock.sleep(self.rng.random() * 0.2)
        if self.rng.random() < self.faults:
            return httpx.Response(500)
        asked = json.loads(await request.aread())
        return httpx.Response(200, json=getattr(self, verb)(asked))

    def filter(self, asked: Any) -> Any:
        failed = {name: "moody" for name in asked["NodeNames"] if self.rng.random() < 0.3}
        return {
            "NodeNames": [name for name in asked["NodeNames"] if name not in failed],
            "FailedNodes": failed,
        }

    def prioritize(self, asked: Any) -> Any:
        return [{"Host": n, "Score": self.rng.randint(0, 10)} for n in asked["NodeNames"]]

    def preempt(self, asked: Any) -> Any:
        candidates = asked["NodeNameToMetaVictims"]
        left = {name: each for name, each in candidates.items() if self.rng.random() < 0.7}
        return {"NodeNameToMetaVictims": left}


EXTENDER = {
    "urlPrefix": "http://user:sesame@extender/v1",
    "filterVerb": "filter",
    "prioritizeVerb": "prioritize",
    "preemptVerb": "preempt",
    "nodeCacheCapable": True,
    "weight": 2,
}


class RecordedWorld:
    """A cluster, its scheduler, and the recording of what it does."""

    def __init__(
        self,
        *,
        seed: int = 1,
        faults: float = 0.05,
        configuration: KubeSchedulerConfiguration | None = None,
        nodes: int = 12,
        plain: bool = False,
        devices: bool = False,
        registry: Registry = IN_TREE,
    ) -> None:
        """*plain*: no pod has volumes, or a priority, so that none preempts.

        *devices*: nodes have two each, and some pods claim one.
        """
        self.rng = random.Random(seed)
        self.clock = FakeClock(1_000_000_000.5)
        self.api = UnreliableApi(self.clock, self.rng, faults=faults)
        self.lines: list[bytes] = []
        self.recorder = Recorder(self.lines.append, clock=self.clock, seed=seed)
        configuration = configuration or config()
        self.extender = MoodyExtender(self.clock, self.rng, faults=faults)
        self.core = SchedulerCore(
            configuration,
            registry,
            Outside(
                api=self.api,
                pods=self.api.pods,
                listers=self.api.listers,
                clock=self.clock,
                rng=RandomSources(),
                metrics=SchedulerMetrics(CollectorRegistry()),
                extenders=extenders(self.extender, *configuration.extenders, clock=self.clock)
                if configuration.extenders
                else Extenders(),
            ),
            CoreOptions(journal=self.recorder),
        )
        self.api.connect({kind.type: each for kind, each in self.core.handlers.items()})
        self._made = 0
        self._devices = devices
        self._kinds_of_pods = 3 if plain else 7
        if devices:
            self.api.put(device_class())
        self.api.put(storage_class("local"))
        self.api.put(storage_class("dyn", provisioner="csi.example.com"))
        for _ in range(nodes):
            self.add_node()

    # What happens.

    def add_node(self) -> None:
        self._made += 1
        name = f"n{self._made}"
        cpu = self.rng.choice(["4", "8"])
        labels = {"disk": self.rng.choice(["ssd", "hdd"])}
        self.api.put(node(name, cpu=cpu, zone=self.rng.choice("abc"), labels=labels))
        for i in range(2):
            self.api.put(volume(f"pv-{name}-{i}", hosts=[name]))
        if self._devices:
            self.api.put(resource_slice(f"of-{name}", device("d0"), device("d1"), node=name))

    def remove_node(self) -> None:
        gone = self.rng.choice([*self.api.nodes.values()])
        for each in [p for p in self.api.pods.values() if p.spec.node_name == gone.name]:
            self.api.delete(each)
        self.api.delete(gone)

    def add_pods(self) -> None:
        self._made += 1
        rng, name = self.rng, f"p{self._made}"
        fields: dict[str, Any] = {"labels": {"app": rng.choice("xyz")}}
        match rng.randrange(self._kinds_of_pods):
            case 0:
                fields["node_selector"] = {"disk": rng.choice(["ssd", "hdd", "none"])}
            case 1:
                fields["spread"] = [spread(selector=selector(fields["labels"]))]
            case 2:
                fields["affinity"] = pod_anti_affinity(required=[pod_term(fields["labels"])])
            case 3:
                fields["priority"] = rng.choice([10, 1000, 2000])
                fields["labels"]["size"] = "large"
            case 4:
                kind = rng.choice(["local", "dyn"])
                self.api.put(claim(f"c-{name}", storage_class=kind))
                fields["volumes"] = [claim_volume(f"c-{name}")]
        for i in range(1 if "volumes" in fields else rng.randint(1, 6)):
            cpu = "3" if "priority" in fields else rng.choice(["100m", "500m", "1", "1500m"])
            made = pod(f"{name}-{i}", cpu=cpu, memory="128Mi", **fields)
            if self._devices and rng.random() < 0.3:
                self.api.put(device_claim(made.metadata.name))
                made = with_claims(made, made.metadata.name)
            self.api.put(made)

    def add_group(self, parent: str = "", priority: int | None = None) -> None:
        """Add a gang, most of them of a size that fits."""
        self._made += 1
        rng, name = self.rng, f"g{self._made}"
        topology = ZONE if TOPOLOGY_AWARE in features_of(self.core.live.current) else ""
        min_count = rng.randint(1, 5)
        self.api.put(group(name, min_count=min_count, topology=topology, parent=parent))
        cpu = rng.choice(["500m", "1", "2"])
        if priority is None:
            priority = rng.choice([0, 100])
        names = [f"{name}-{i}" for i in range(rng.randint(2, 5))]
        for member in members(*names, of=name, cpu=cpu, priority=priority):
            self.api.put(member)

    def add_tree(self) -> None:
        """Add a group of two or three gangs, before or after these."""
        self._made += 1
        name, priority = f"c{self._made}", self.rng.choice([0, 100])
        parts = [partial(self.add_group, name, priority) for _ in range(self.rng.randint(2, 3))]
        root = composite(name, min_count=self.rng.randint(1, 2), priority=priority)
        parts.insert(self.rng.randrange(len(parts) + 1), partial(self.api.put, root))
        for part in parts:
            part()

    def remove_pods(self) -> None:
        pods = [*self.api.pods.values()]
        for each in self.rng.sample(pods, min(len(pods), self.rng.randint(1, 8))):
            if each.key in self.api.pods:
                self.api.delete(self.api.pods[each.key])
                for known in [*self.api.listers.resource_claims]:
                    if known.metadata.name == each.metadata.name:
                        self.api.delete(known)

    def provide_volumes(self) -> None:
        """Do what the volume controller does."""
        for each in [*self.api.listers.persistent_volume_claims]:
            if each.spec.volume_name:
                continue
            name = each.metadata.name
            holder = next(
                (
                    v
                    for v in self.api.listers.persistent_volumes
                    if v.spec.claim_ref and v.spec.claim_ref.name == name
                ),
                None,
            )
            if holder is None and SELECTED_NODE in each.metadata.annotations:
                host = each.metadata.annotations[SELECTED_NODE]
                holder = volume(f"pv-{name}", storage_class="dyn", hosts=[host], claim=each)
                self.api.put(holder)
            if holder is not None:
                version = str(int(each.metadata.resource_version) + 1)
                self.api.put(
                    claim(
                        name,
                        storage_class=each.spec.storage_class_name,
                        bound_to=holder.metadata.name,
                        version=version,
                    )
                )

    # Time.

    @property
    def attempts(self) -> int:
        return self.recorder.chance.attempt

    async def live(
        self, *, attempts: int, also: Mapping[int, Callable[[], None]] = MappingProxyType({})
    ) -> None:
        """Let things happen until so many attempts were made; *also* what is due after some."""
        due = sorted(also)
        scheduling = asyncio.create_task(self.core.run())
        actions = [self.add_pods] * 5 + [self.remove_pods, self.provide_volumes]
        if GENERIC_WORKLOAD in features_of(self.core.live.current):
            actions += [self.add_group] * 2
        if COMPOSITE_POD_GROUP in features_of(self.core.live.current):
            actions += [self.add_tree] * 2
        while self.attempts < attempts:
            if self.rng.random() < 0.02:
                self.rng.choice([self.add_node, self.remove_node])()
            if len(self.api.nodes) < 4:
                self.add_node()
            while len(self.api.pods) > 95:
                self.remove_pods()
            self.rng.choice(actions)()
            while due and self.attempts >= due[0]:
                also[due.pop(0)]()
            self.clock.advance(self.rng.random() * 0.3)
            for _ in range(self.rng.randint(1, 30)):
                await asyncio.sleep(0)
        scheduling.cancel()
        await asyncio.gather(scheduling, return_exceptions=True)


async def replayed(
    recorded: list[bytes],
    configuration: KubeSchedulerConfiguration | None = None,
    *,
    registry: Registry = IN_TREE,
    release: str = "",
) -> Replay:
    """Make the steps again."""
    header = lines.decode(recorded[0])
    assert isinstance(header, lines.Header)
    replay = Replay(header, registry, configuration, release=release)
    for line in recorded[1:]:
        await replay.step(lines.decode(line))
    await replay.end()
    return replay
