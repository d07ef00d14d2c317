"""A Kubernetes API in memory: what a scheduler writes is done at once, and heard of at once.

::

    put, delete  -->  objects  -->  handlers of the scheduler   (as its watches would call them)
    bind, evict, status  --^

Victims of a preemption are deleted at once and for good: nobody makes them again. Their disruption
budgets allow fewer evictions from then on, as the disruption controller would write. Conditions of
pods are kept apart from the pods, because no decision depends on them.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from berth.kube.informer.store import ResourceEventHandler
from berth.kube.objects.devices import ResourceClaim
from berth.kube.objects.meta import Condition
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod, PodStatus
from berth.kube.objects.pod_group import PodGroup, PodGroupCondition
from berth.kube.objects.policy import PodDisruptionBudget
from berth.kube.objects.selectors import compile_selector
from berth.kube.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.runtime.clock import Clock, rfc3339
from berth.scheduler.background import Background
from berth.scheduler.core.in_memory_claims import InMemoryClaims
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.pod_reader import PodReader

Stored = TypeVar("Stored", PersistentVolume, PersistentVolumeClaim)

_replace = msgspec.structs.replace


class InMemoryApi:
    """Objects in memory: a scheduler's :class:`~berth.scheduler.core.outside.ApiWrites`."""

    is_binding = False
    is_behind = False

    def __init__(
        self, clock: Clock, listers: Listers, *, read_pod: PodReader | None = None
    ) -> None:
        """Make an empty one; pods are kept as *read_pod* returns them."""
        self.pods: dict[str, Pod] = {}
        """By ``namespace/name``."""
        self.nodes: dict[str, Node] = {}
        self.listers = listers
        """All other kinds; changed by :meth:`put` and :meth:`delete`."""
        self.conditions: dict[str, Condition] = {}
        """The last condition of each pod that the scheduler wrote."""
        self.changes = 0
        """How many pods were bound or deleted: what may give another pod a node."""
        self.background = Background()
        self.resource_claims = InMemoryClaims(self._claim_changed)
        self._clock = clock
        self._read_pod = read_pod
        self._lister_of = {kind.type: lister for kind, lister in listers.by_kind().items()}
        self._handlers: Mapping[type, ResourceEventHandler[Any]] = self._lister_of

    def connect(self, handlers: Mapping[type, ResourceEventHandler[Any]]) -> None:
        """Have *handlers*, by type of object, hear of changes; until then the listers do.

        Listers go on hearing of kinds that no handler is for: a feature gate turns them off.
        """
        self._handlers = {**self._lister_of, **handlers}

    # What anybody may do.

    def put(self, obj: Any) -> None:
        """Create *obj*, or replace the object of its kind and name."""
        if isinstance(obj, ResourceClaim):
            self.resource_claims.put(obj)
            return
        old = self._current(obj)
        if isinstance(obj, Pod):
            obj = obj if self._read_pod is None else self._read_pod(obj)
            self.pods[obj.key] = obj
        elif isinstance(obj, Node):
            self.nodes[obj.name] = obj
        handler = self._handlers[type(obj)]
        if old is None:
            handler.on_add(obj)
        else:
            handler.on_update(old, obj)

    def delete(self, obj: Any) -> None:
        """Delete the object of the kind and name of *obj*; KeyError if there is none."""
        if isinstance(obj, ResourceClaim):
            self.resource_claims.remove(obj.metadata.name, obj.metadata.namespace)
            return
        gone = self._current(obj)
        if gone is None:
            raise KeyError(obj.metadata.key)
        if isinstance(obj, Pod):
            del self.pods[obj.key]
            self.changes += 1
        elif isinstance(obj, Node):
            del self.nodes[obj.name]
        self._handlers[type(obj)].on_delete(gone)

    def _current(self, obj: Any) -> Any:
        """Return the object of the kind and name of *obj*; None if there is none."""
        if isinstance(obj, Pod):
            return self.pods.get(obj.key)
        if isinstance(obj, Node):
            return self.nodes.get(obj.name)
        return self._lister_of[type(obj)].get(obj.metadata.namespace, obj.metadata.name)

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        handler = self._handlers[ResourceClaim]
        if new is None:
            handler.on_delete(old)
        elif old is None:
            handler.on_add(new)
        else:
            handler.on_update(old, new)

    # What the scheduler writes.

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        current = self.pods[pod.key]
        self.changes += 1
        self.put(_replace(current, spec=_replace(current.spec, node_name=node_name)))

    @property
    def has_room(self) -> bool:
        return True

    async def until_room(self) -> None:
        """Return at once: nothing waits here."""

    async def bound_node(self, pod: Pod) -> str | None:
        current = self.pods.get(pod.key)
        return None if current is None else current.spec.node_name

    async def evict(self, pod: Pod, condition: Condition, *, nominated: Pod | None = None) -> bool:
        """Give *pod* the condition and delete it; False if it is gone.

        That something else is *nominated* has been written: nothing waits here.
        """
        current = self.pods.get(pod.key)
        if current is None or current.metadata.uid != pod.metadata.uid:
            return False
        meta = _replace(current.metadata, deletion_timestamp=rfc3339(self._clock.now()))
        conditions = (*current.status.conditions, condition)
        leaving = _replace(
            current, metadata=meta, status=_replace(current.status, conditions=conditions)
        )
        self.put(leaving)
        self._charge_budgets(leaving)
        self.terminate(leaving)
        return True

    def terminate(self, pod: Pod) -> None:
        """Delete *pod*, which was evicted and told to end."""
        self.delete(pod)

    def _charge_budgets(self, pod: Pod) -> None:
        """Let the budgets of an evicted pod allow one eviction less."""
        for budget in list(
            self.listers.pod_disruption_budgets.in_namespace(pod.metadata.namespace).values()
        ):
            status = budget.status
            if pod.metadata.name in status.disrupted_pods or not _is_about(budget, pod):
                continue
            allowed = max(status.disruptions_allowed - 1, 0)
            self.put(_replace(budget, status=_replace(status, disruptions_allowed=allowed)))

    def status(
        self, pod: Pod, *, condition: Condition | None, nominated_node_name: str | None
    ) -> None:
        current = self.pods.get(pod.key)
        if current is None:
            return
        if condition is not None:
            self.conditions[pod.key] = condition
        if nominated_node_name not in (None, current.status.nominated_node_name):
            status = _replace(current.status, nominated_node_name=nominated_node_name)
            self.put(_replace(current, status=status))

    def pod_group_condition(self, group: PodGroup, condition: PodGroupCondition) -> None:
        others = [other for other in group.status.conditions if other.type != condition.type]
        status = _replace(group.status, conditions=(*others, condition))
        self.put(_replace(group, status=status))

    async def patch_pod_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        current = self.pods[pod.key]
        changed = {**msgspec.to_builtins(current.status), **status}
        self.put(_replace(current, status=msgspec.convert(changed, PodStatus)))

    async def update_persistent_volume(self, volume: PersistentVolume) -> PersistentVolume:
        self.put(stored := _next_version(volume))
        return stored

    async def update_persistent_volume_claim(
        self, claim: PersistentVolumeClaim
    ) -> PersistentVolumeClaim:
        self.put(stored := _next_version(claim))
        return stored

    def event(
        self,
        pod: Pod,
        *,
        profile: str = "",
        type: str,
        reason: str,
        action: str,
        note: str,
        related: PodGroup | None = None,
    ) -> None:
        """Drop the event: nobody reads any here."""

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self.background.start(name, work)


def _next_version(obj: Stored) -> Stored:
    version = str(int(obj.metadata.resource_version or "0") + 1)
    return _replace(obj, metadata=_replace(obj.metadata, resource_version=version))


def _is_about(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether *budget* counts *pod*; one that cannot be read, or selects nothing, counts none."""
    try:
        selector = compile_selector(budget.spec.selector)
    except ValueError:
        return False
    return not selector.is_empty and selector.matches(pod.metadata.labels)
