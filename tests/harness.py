"""A whole scheduler in process, on a fake cluster: put objects in, run, look where pods went.

No sockets and no wall time: the cluster answers at once, the clock stands still until a test moves
it. What is excluded: HTTP, reflectors and write lanes, which have tests of their own.
"""

import random
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from app.cache.cache import Cache
from app.clock import FakeClock
from app.config.load import default_configuration, from_object
from app.framework.listers import Listers
from app.framework.node_table import NodeTable
from app.framework.pod_info import PodInfo
from app.objects.meta import Condition
from app.objects.node import Node
from app.objects.pod import Pod
from app.profile.build import Registry, args_models, build_profiles
from app.queue.scheduling_queue import SchedulingQueue
from app.scheduler.decisions import Decisions
from app.scheduler.event_handlers import NodeHandler, PodHandler
from app.scheduler.find_node import NodeFinder
from app.scheduler.scheduler import Scheduler
from plugins.registry import IN_TREE


class RecordedEvent(NamedTuple):
    pod: str
    type: str
    reason: str
    note: str


@dataclass
class FakeCluster:
    """An API server of plain dicts: binding changes the pod and tells the handlers."""

    nodes: NodeTable
    clock: FakeClock
    rng: random.Random = field(default_factory=lambda: random.Random(0))
    listers: Listers = field(default_factory=Listers)
    pods: dict[str, Pod] = field(default_factory=dict)
    events: list[RecordedEvent] = field(default_factory=list)
    conditions: dict[str, Condition] = field(default_factory=dict)
    nominations: dict[str, str] = field(default_factory=dict)
    bind_error: Exception | None = None
    """Raised by the next binds."""
    handler: PodHandler | None = None

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        if self.bind_error is not None:
            raise self.bind_error
        current = self.pods[pod.key]
        self.put(
            msgspec.structs.replace(
                current, spec=msgspec.structs.replace(current.spec, node_name=node_name)
            )
        )

    def put(self, pod: Pod) -> None:
        assert self.handler is not None
        old = self.pods.get(pod.key)
        self.pods[pod.key] = pod
        if old is None:
            self.handler.on_add(pod)
        else:
            self.handler.on_update(old, pod)

    def event(
        self, pod: Pod, *, profile: str, type: str, reason: str, action: str, note: str
    ) -> None:
        self.events.append(RecordedEvent(pod.key, type, reason, note))

    def status(
        self, pod: Pod, *, condition: Condition | None, nominated_node_name: str | None
    ) -> None:
        if condition is not None:
            self.conditions[pod.key] = condition
        if nominated_node_name is not None:
            self.nominations[pod.key] = nominated_node_name


class Harness:
    """Cluster, cache, queue and scheduler, connected as the service connects them."""

    def __init__(
        self, *, config: dict[str, Any] | None = None, registry: Registry = IN_TREE
    ) -> None:
        self.clock = FakeClock()
        self.cache = Cache()
        self.cluster = FakeCluster(self.cache.table, self.clock)
        models = args_models(registry)
        loaded = (
            default_configuration(models)
            if config is None
            else from_object(config, source="test", args_models=models)
        )
        profiles = build_profiles(loaded, registry, self.cluster)
        self.queue = SchedulingQueue(
            clock=self.clock,
            sort_key=next(iter(profiles.values())).queue_sort.sort_key,
            pre_enqueue={name: profile.pre_enqueue for name, profile in profiles.items()},
            hints={name: profile.queueing_hints() for name, profile in profiles.items()},
            pod_lookup=self.cluster.pods.get,
        )
        self.scheduler = Scheduler(
            profiles=profiles,
            queue=self.queue,
            cache=self.cache,
            finder=NodeFinder(self.cache.table, select=random.Random(1).choice),
            pods=self.cluster.pods,
            reporter=self.cluster,
            decisions=Decisions(capacity=100, monotonic=self.clock.monotonic),
            clock=self.clock,
        )
        self.cluster.handler = PodHandler(
            queue=self.queue, cache=self.cache, scheduler_names=profiles
        )
        self._node_handler = NodeHandler(queue=self.queue, cache=self.cache)
        self._nodes: dict[str, Node] = {}

    def put(self, *objects: Node | Pod) -> None:
        """Create or replace objects, as a watch would tell it."""
        for obj in objects:
            if isinstance(obj, Pod):
                self.cluster.put(obj)
                continue
            old = self._nodes.get(obj.name)
            self._nodes[obj.name] = obj
            if old is None:
                self._node_handler.on_add(obj)
            else:
                self._node_handler.on_update(old, obj)

    def delete(self, *objects: Node | Pod) -> None:
        for obj in objects:
            if isinstance(obj, Pod):
                assert self.cluster.handler is not None
                self.cluster.handler.on_delete(self.cluster.pods.pop(obj.key))
            else:
                self._node_handler.on_delete(self._nodes.pop(obj.name))

    async def until_idle(self, *, attempts: int = 10_000) -> None:
        """Schedule and bind until no pod is ready; every step leaves a consistent state."""
        for _ in range(attempts):
            queued = self.queue.pop()
            if queued is None:
                break
            claim = self.scheduler.schedule_one(queued)
            if claim is not None:
                await self.scheduler.bind(claim)
            self.cache.check_invariants()
            self.queue.check_invariants()
        else:
            raise AssertionError(f"still busy after {attempts} attempts")

    def placements(self) -> dict[str, str]:
        """Pod name to node name, of bound pods."""
        return {
            pod.metadata.name: pod.spec.node_name
            for pod in self.cluster.pods.values()
            if pod.spec.node_name
        }
