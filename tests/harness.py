"""A whole scheduler in process, on a fake cluster: put objects in, run, look where pods went.

No sockets and no wall time: the cluster answers at once, the clock stands still until a test moves
it. What is excluded: HTTP, reflectors and write lanes, which have tests of their own.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import httpx
import msgspec
from prometheus_client import CollectorRegistry

from berth.clock import FakeClock, rfc3339
from berth.config.load import default_configuration, from_object
from berth.core.outside import Outside, RandomSources
from berth.core.scheduler_core import CoreOptions, SchedulerCore
from berth.extender.build import build_extenders
from berth.framework.handle import Handle
from berth.framework.interface import Plugin
from berth.framework.listers import ApiObject, Lister, Listers
from berth.framework.node_table import NodeTable
from berth.framework.outcomes import NOBODY, Outcomes
from berth.framework.pod_info import PodInfo
from berth.informer.store import ResourceEventHandler
from berth.metrics.recorders import ExtenderMetrics
from berth.metrics.scheduler_metrics import SchedulerMetrics
from berth.objects.devices import ResourceClaim
from berth.objects.meta import Condition
from berth.objects.pod import Pod, PodStatus
from berth.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.profile.build import Registry, args_models
from berth.scheduler.background import Background
from berth_plugins.registry import IN_TREE
from tests.fake_claims import FakeClaims

Stored = TypeVar("Stored", PersistentVolume, PersistentVolumeClaim)


class RecordedEvent(NamedTuple):
    pod: str
    type: str
    reason: str
    note: str


@dataclass
class FakeCluster:
    """An API server of plain dicts: binding changes the pod and tells the handlers."""

    clock: FakeClock
    listers: Listers = field(default_factory=Listers)
    pods: dict[str, Pod] = field(default_factory=dict)
    events: list[RecordedEvent] = field(default_factory=list)
    conditions: dict[str, Condition] = field(default_factory=dict)
    bind_error: Exception | None = None
    """Raised by the next binds."""
    update_error: Exception | None = None
    """Raised by the next writes of volumes and claims."""
    evict_error: Exception | None = None
    """Raised by the next evictions."""
    is_binding: bool = False
    is_behind: bool = False
    """What it has to say about its lanes, if it had any."""
    room: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while more binds may be under way, as at first."""
    lets_victims_linger: bool = False
    """Whether evicted pods are terminating until the test deletes them."""
    handler: ResourceEventHandler[Pod] | None = None

    def __post_init__(self) -> None:
        self.room.set()
        self.resource_claims = FakeClaims(self.listers.resource_claims)
        self.background = Background()

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self.background.start(name, work)

    async def patch_pod_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        current = self.pods[pod.key]
        changed = {**msgspec.to_builtins(current.status), **status}
        self.put(msgspec.structs.replace(current, status=msgspec.convert(changed, PodStatus)))

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        if self.bind_error is not None:
            raise self.bind_error
        current = self.pods[pod.key]
        self.put(
            msgspec.structs.replace(
                current, spec=msgspec.structs.replace(current.spec, node_name=node_name)
            )
        )

    @property
    def has_room(self) -> bool:
        return self.room.is_set()

    async def until_room(self) -> None:
        await self.room.wait()

    async def bound_node(self, pod: Pod) -> str | None:
        current = self.pods.get(pod.key)
        return None if current is None else current.spec.node_name

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        return self._store(volume, self.listers.persistent_volumes)

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        return self._store(claim, self.listers.persistent_volume_claims)

    def _store(self, obj: Stored, lister: Lister[Stored]) -> Stored:
        """Keep *obj* as its next version."""
        if self.update_error is not None:
            raise self.update_error
        version = str(int(obj.metadata.resource_version) + 1)
        meta = msgspec.structs.replace(obj.metadata, resource_version=version)
        stored = msgspec.structs.replace(obj, metadata=meta)
        lister.on_add(stored)
        return stored

    async def evict(self, pod: Pod, condition: Condition) -> bool:
        if self.evict_error is not None:
            raise self.evict_error
        current = self.pods.get(pod.key)
        if current is None:
            return False
        leaving = msgspec.structs.replace(
            current,
            metadata=msgspec.structs.replace(
                current.metadata, deletion_timestamp=rfc3339(self.clock.now())
            ),
            status=msgspec.structs.replace(
                current.status, conditions=(*current.status.conditions, condition)
            ),
        )
        self.put(leaving)
        if not self.lets_victims_linger:
            self.delete(leaving)
        return True

    def delete(self, pod: Pod) -> None:
        assert self.handler is not None
        self.handler.on_delete(self.pods.pop(pod.key))

    def put(self, pod: Pod) -> None:
        assert self.handler is not None
        old = self.pods.get(pod.key)
        self.pods[pod.key] = pod
        if old is None:
            self.handler.on_add(pod)
        else:
            self.handler.on_update(old, pod)

    def event(
        self,
        pod: Pod,
        *,
        profile: str = "",
        type: str,
        reason: str,
        action: str,
        note: str,
    ) -> None:
        self.events.append(RecordedEvent(pod.key, type, reason, note))

    def status(
        self, pod: Pod, *, condition: Condition | None, nominated_node_name: str | None
    ) -> None:
        if condition is not None:
            self.conditions[pod.key] = condition
        current = self.pods.get(pod.key)
        if current is None or nominated_node_name in (None, current.status.nominated_node_name):
            return
        status = msgspec.structs.replace(current.status, nominated_node_name=nominated_node_name)
        self.put(msgspec.structs.replace(current, status=status))


@dataclass
class PluginCluster(FakeCluster):
    """A cluster for a plugin that is tested without a scheduler."""

    nodes: NodeTable = field(default_factory=NodeTable)
    outcomes: Outcomes = NOBODY

    def __post_init__(self) -> None:
        super().__post_init__()
        self.handle = Handle(
            self.nodes,
            listers=self.listers,
            clock=self.clock,
            pod=self.pods.get,
            outcomes=self.outcomes,
            writes=self,
        )


class Harness:
    """Cluster, cache, queue and scheduler, connected as the service connects them."""

    def __init__(
        self,
        *,
        config: dict[str, Any] | None = None,
        registry: Registry = IN_TREE,
        rng: random.Random | None = None,
        dice: random.Random | None = None,
        network: httpx.AsyncBaseTransport | None = None,
        uses_signatures: bool = True,
        listers: type[Listers] = Listers,
    ) -> None:
        """*rng* is what plugins choose with.

        *dice* pick the cycles in which plugins are timed; they decide nothing else.

        *uses_signatures*: as always, one failed attempt stands for all pods of its signature.
        *network* is where the extenders of *config* are. *listers* declares the kinds of objects.
        """
        self.clock = FakeClock()
        self.registry = CollectorRegistry()
        self.metrics = SchedulerMetrics(self.registry)
        models = args_models(registry)
        loaded = (
            default_configuration(models)
            if config is None
            else from_object(config, source="test", args_models=models)
        )
        self.extenders = build_extenders(
            loaded.extenders,
            clock=self.clock,
            observer=ExtenderMetrics(self.registry),
            transport=network,
        )
        self.listers = listers()
        self.cluster = FakeCluster(self.clock, self.listers)
        self.core = SchedulerCore(
            loaded,
            registry,
            Outside(
                api=self.cluster,
                pods=self.cluster.pods,
                listers=self.listers,
                clock=self.clock,
                rng=RandomSources(
                    ties=random.Random(1),
                    plugins=rng or random.Random(0),
                    extenders=random.Random(2),
                    sampling=dice or random.Random(0),
                ),
                metrics=self.metrics,
                extenders=self.extenders,
            ),
            CoreOptions(uses_signatures=uses_signatures),
        )
        self.cache, self.queue = self.core.cache, self.core.queue
        self.scheduler, self.failure_reporter = self.core.scheduler, self.core.failure_reporter
        self.preemptions = self.core.preemptions
        self.handlers = {kind.type: handler for kind, handler in self.core.handlers.items()}
        """By type of object."""
        self.cluster.handler = self.handlers[Pod]
        self._objects: dict[tuple[type[ApiObject], str], ApiObject] = {}

    def put(self, *objects: ApiObject) -> None:
        """Create or replace objects of any kind, as a watch would tell it."""
        for obj in objects:
            if isinstance(obj, Pod):
                self.cluster.put(obj)
                continue
            if isinstance(obj, ResourceClaim):
                self.cluster.resource_claims.put(obj)
                continue
            key = type(obj), obj.metadata.key
            old = self._objects.get(key)
            self._objects[key] = obj
            if old is None:
                self.handlers[type(obj)].on_add(obj)
            else:
                self.handlers[type(obj)].on_update(old, obj)

    def delete(self, *objects: ApiObject) -> None:
        for obj in objects:
            if isinstance(obj, Pod):
                self.cluster.delete(obj)
            else:
                last = self._objects.pop((type(obj), obj.metadata.key))
                self.handlers[type(obj)].on_delete(last)

    async def until_idle(self, *, attempts: int = 10_000) -> None:
        """Step until nothing is left to do; cache and queue stay consistent."""
        for _ in range(attempts):
            if not await self.core.step():
                return
            self.core.check_invariants()
        raise AssertionError(f"still busy after {attempts} steps")

    def placements(self) -> dict[str, str]:
        """Pod name to node name, of bound pods."""
        return {
            pod.metadata.name: pod.spec.node_name
            for pod in self.cluster.pods.values()
            if pod.spec.node_name
        }


def with_plugins(*kinds: type[Plugin], dice: random.Random | None = None) -> Harness:
    """Make a harness whose profile has *kinds* after the default plugins."""
    enabled = [{"name": kind.NAME} for kind in kinds]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}],
    }
    return Harness(
        config=config, registry={**IN_TREE, **{kind.NAME: kind for kind in kinds}}, dice=dice
    )
