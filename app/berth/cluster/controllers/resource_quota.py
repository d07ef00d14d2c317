"""Resource quotas: how much of each is used, counted when something is used no longer.

What is created is charged by admission, which is sooner; so only deletions, pods that finish or
leave a scope, and changes of a quota are reasons to count.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from berth.cluster.actions import Action, Get, Patch
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.informers import Kind
from berth.cluster.controllers.table import Listener, Table
from berth.cluster.controllers.views import ResourceView
from berth.cluster.object_views import ObjectView, metadata_of
from berth.cluster.pods.controllers import PodView
from berth.cluster.reading import UNREADABLE
from berth.cluster.resources import Object, ResourceType
from berth.kube.objects import amounts
from berth.kube.objects.amounts import ZERO, Amounts, count
from berth.kube.objects.quota.evaluators import SPECIAL, counted_by, evaluator_of
from berth.kube.objects.quota.scopes import requirements_of
from berth.runtime.clock import Clock

log = logging.getLogger(__name__)

RESYNC: Final = 300.0
"""Seconds after which a quota is counted anew although nothing is known to have changed."""

PAUSE: Final = 0.5
"""Seconds between two counts of a quota: thousands of pods may be deleted one by one."""

CHANGED: Final = frozenset({"persistentvolumeclaims", "services"})
"""Kinds whose objects may use less after an update."""


class _ListMeta(msgspec.Struct, rename="camel"):
    remaining_item_count: int = 0


class _List(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[dict[str, Any]] | None = None


_decode = msgspec.json.Decoder(_List).decode


@dataclass(slots=True)
class _Count:
    """One quota, being counted."""

    version: str
    """Of the quota: what admission charged since is not in the lists."""
    wanted: dict[str, ResourceType]
    """By path of the collection."""
    lists: dict[str, _List] = field(default_factory=dict)


class ResourceQuotaController:
    """Keeps ``status.hard`` and ``status.used``. The key is that of the quota."""

    name = "resource-quota"

    def __init__(
        self,
        quotas: Table[ResourceView],
        registry: Iterable[ResourceType],
        *,
        clock: Clock,
    ) -> None:
        self._quotas = quotas
        self._registry = registry
        self._clock = clock
        self._enqueue: Callable[[str], None] = lambda _key: None
        self._followed: set[Table[Any]] = set()
        self._counts: dict[str, _Count] = {}
        self._next: dict[str, float] = {}
        """When a quota may be counted again, monotonic."""
        self._due: set[str] = set()

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        self._enqueue = enqueue

        def changed(old: ResourceView | None, new: ResourceView | None) -> None:
            if new is None:
                enqueue(metadata_of(old, new).key)
            elif old is None or old.spec != new.spec:
                self._count(new.metadata.key)

        self._quotas.listen(changed)

    def follow(self, kinds: Iterable[Kind]) -> None:
        """Hear of the objects of *kinds*, which are all that are watched."""
        tables = {kind.table: kind.resource for kind in kinds}
        for table in tables.keys() - self._followed:
            table.listen(self._listener(tables[table]))
        self._followed = {*tables}

    def plan(self, key: str) -> Plan:
        quota = self._quotas.get(key)
        if quota is None or quota.metadata.deletion_timestamp is not None:
            self._forget(key)
            return NOTHING
        counting = self._counts.pop(key, None)
        if counting is not None and counting.lists.keys() == counting.wanted.keys():
            status = self._status(quota, counting)
            report: list[Action] = []
            if status is not None:
                report.append(_report(quota, counting.version, status))
            return Plan(report, again=PAUSE if key in self._due else RESYNC)
        wait = self._next.get(key, 0.0) - self._clock.monotonic()
        if wait > 0:
            return Plan(again=wait)
        return self._start(key, quota)

    def finished(self, key: str, outcome: Outcome) -> None:
        counting = self._counts.get(key)
        if isinstance(outcome.action, Get) and outcome.error is None and counting is not None:
            if not outcome.skipped:
                counting.lists[outcome.action.path] = _decode(outcome.answer)
        elif outcome.error is not None:
            self._due.add(key)

    def _start(self, key: str, quota: ResourceView) -> Plan:
        """Ask for what the quota limits."""
        self._due.discard(key)
        self._next[key] = self._clock.monotonic() + PAUSE
        namespace = quota.metadata.namespace
        hard = quota.spec.get("hard") or {}
        wanted = {
            each.collection_path(namespace): each
            for each in counted_by(hard, self._registry)
            if each.namespaced and each.is_stored and not each.is_view
        }
        self._counts[key] = _Count(quota.metadata.resource_version, wanted)
        gets: list[Action] = [
            # Where only the number counts, the list says how many more there are.
            Get(path, {} if each.qualified_plural in SPECIAL else {"limit": "1"})
            for path, each in wanted.items()
        ]
        return Plan(gets, again=0.0)

    def _status(self, quota: ResourceView, counting: _Count) -> Object | None:
        """Return the new status; None when it is told already."""
        hard = amounts.amounts(quota.spec.get("hard"))
        used = amounts.masked(_used_before(quota), hard)
        for path, resource in counting.wanted.items():
            used |= self._used(quota.spec, resource, hard, counting.lists[path])
        status: Object = {
            "hard": amounts.quantities(hard),
            "used": amounts.quantities(amounts.masked(used, hard)),
        }
        told = {part: quota.status.get(part) for part in ("hard", "used")}
        if status == told:
            return None
        for part, said in told.items():
            status[part] |= dict.fromkeys((said or {}).keys() - status[part].keys())
        return status

    def _used(self, spec: Object, resource: ResourceType, hard: Amounts, found: _List) -> Amounts:
        """Return what the objects of a kind use of what is limited."""
        evaluator = evaluator_of(resource.qualified_plural)
        total: Amounts = {name: ZERO for name in hard if evaluator.counts(name)}
        requirements = requirements_of(spec)
        objects = found.items or []
        if resource.qualified_plural not in SPECIAL:
            if not requirements:
                number = count(len(objects) + found.metadata.remaining_item_count)
                total = dict.fromkeys(total, number)
            return total
        now = self._clock.now()
        for object_ in objects:
            try:
                used = (
                    evaluator.usage(object_, now)
                    if evaluator.matches(requirements, object_)
                    else {}
                )
            except UNREADABLE as exc:
                used = evaluator.existence()
                name = (object_.get("metadata") or {}).get("name")
                extra = {"kind": resource.kind, "object": name, "error": str(exc)}
                log.warning("object counts as one, its amounts cannot be read", extra=extra)
            total = amounts.added(total, amounts.masked(used, total))
        return total

    def _listener(self, resource: ResourceType) -> Listener[Any]:
        """Return what hears of the objects of a kind, and counts who limits it."""
        evaluator = evaluator_of(resource.qualified_plural)
        shrinks = resource.storage_key in CHANGED

        def changed(old: ObjectView | None, new: ObjectView | None) -> None:
            if old is None or not (new is None or shrinks or _gives_back(old, new)):
                return
            for quota in self._quotas.in_namespace(old.metadata.namespace):
                if any(evaluator.counts(name) for name in quota.spec.get("hard") or ()):
                    self._count(quota.metadata.key)

        return changed

    def _count(self, key: str) -> None:
        self._due.add(key)
        self._enqueue(key)

    def _forget(self, key: str) -> None:
        self._counts.pop(key, None)
        self._next.pop(key, None)
        self._due.discard(key)


def _used_before(quota: ResourceView) -> Amounts:
    """Return what the status says; nothing, where somebody wrote nonsense into it."""
    try:
        return amounts.amounts(quota.status.get("used"))
    except UNREADABLE:
        return {}


def _gives_back(old: ObjectView, new: ObjectView) -> bool:
    """Whether a pod may use less: it has finished, or a deadline changes the scopes it is in."""
    if not (isinstance(old, PodView) and isinstance(new, PodView)):
        return False
    had, has = (pod.spec.active_deadline_seconds is not None for pod in (old, new))
    return (new.is_finished and not old.is_finished) or had is not has


def _report(quota: ResourceView, version: str, status: Object) -> Patch:
    meta = quota.metadata
    path = f"/api/v1/namespaces/{meta.namespace}/resourcequotas/{meta.name}/status"
    metadata = {"uid": meta.uid, "resourceVersion": version}
    return Patch(path, {"metadata": metadata, "status": status})


def new_controller(context: ControllerContext) -> ResourceQuotaController:
    quotas = context.table("resourcequotas", ResourceView)
    controller = ResourceQuotaController(quotas, context.registry, clock=context.clock)
    context.informers.listen(lambda: controller.follow(context.informers.kinds))
    return controller
