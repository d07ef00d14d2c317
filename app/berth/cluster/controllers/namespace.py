"""Namespaces: emptied when deleted, and only then let go (upstream: pkg/controller/namespace)."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from berth.cluster.actions import Action, DeleteCollection, Get, Patch, Replace
from berth.cluster.controllers import namespace_conditions
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.informers import Kind
from berth.cluster.controllers.namespace_conditions import Remains
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import NamespaceView
from berth.cluster.kinds.registry import swept
from berth.cluster.object_views import ObjectView, View, metadata_of
from berth.cluster.resources import ResourceType
from berth.cluster.times import seconds_of
from berth.kube.client.errors import NotFoundError
from berth.runtime.clock import Clock

FINALIZER: Final = "kubernetes"
PODS: Final = "pods"

SEEN: Final = 500
"""Objects of a kind that are looked at for their finalizers; the others are counted."""

FINALIZER_SECONDS: Final = 15.0
"""How long finalizers are thought to take, as upstream's estimate; waiting is half of that and 1.

That is for what no table shows: else the last object of a kind to go ends the wait.
"""

UNEXPECTED_SECONDS: Final = 8.0
"""The same for what nothing seems to hold."""


@dataclass(slots=True)
class _Progress:
    """What is known of the content of a namespace that is being deleted."""

    empty: set[str] = field(default_factory=set)
    """Collections in which nothing was left after the deletion."""
    deleted: set[str] = field(default_factory=set)
    """Collections whose deletion was asked for in this round."""
    remains: dict[str, Remains] = field(default_factory=dict)
    """What was seen after that, by collection."""
    errors: dict[str, str] = field(default_factory=dict)
    """What went wrong in this round, by collection."""

    def start_over(self) -> None:
        """Begin another round."""
        self.deleted.clear()
        self.remains.clear()
        self.errors.clear()


class _Meta(View, frozen=True):
    finalizers: list[str] | None = None
    deletion_timestamp: str | None = None


class _Item(View, frozen=True):
    metadata: _Meta


class _ListMeta(View, frozen=True):
    remaining_item_count: int | None = None


class _Page(View, frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: list[_Item] | None = None


_decode = msgspec.json.Decoder(_Page).decode


class NamespaceController:
    """Deletes what is in a deleted namespace, looks until nothing is left, then finalizes it.

    Pods go first, and the rest when they have gone: what protects them, such as a NetworkPolicy,
    stays as long as they run (OrderedNamespaceDeletion). What is left, and why, is said in the
    conditions of the namespace.
    """

    name = "namespace"

    def __init__(
        self, namespaces: Table[NamespaceView], registry: Iterable[ResourceType], *, clock: Clock
    ) -> None:
        """*registry* is what is served at present: which kinds a namespace may hold."""
        self._namespaces = namespaces
        self._registry = registry
        self._clock = clock
        self._progress: dict[str, _Progress] = {}
        self._tables: list[Table[Any]] = []
        self._enqueue: Callable[[str], None] = lambda _name: None

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def changed(_old: NamespaceView | None, new: NamespaceView | None) -> None:
            if new is not None and new.metadata.deletion_timestamp is not None:
                enqueue(new.metadata.name)

        self._enqueue = enqueue
        self._namespaces.listen(changed)

    def follow(self, kinds: Iterable[Kind]) -> None:
        """Look at a namespace when the last object in it of one of *kinds* has gone."""
        tables = [kind.table for kind in kinds if kind.resource.namespaced]
        for table in tables:
            if not any(table is known for known in self._tables):
                table.listen(self._notice_last(table))
        self._tables = tables

    def plan(self, key: str) -> Plan:
        namespace = self._namespaces.get(key)
        finalizers: list[str] = (namespace.spec.get("finalizers") or []) if namespace else []
        if namespace is None or FINALIZER not in finalizers:
            self._progress.pop(key, None)
            return NOTHING
        if namespace.metadata.deletion_timestamp is None:
            return NOTHING
        progress = self._progress.setdefault(key, _Progress())
        for stage in self._stages():
            paths = [each.collection_path(key) for each in stage]
            left = [path for path in paths if path not in progress.empty]
            if not left:
                continue
            if new := [path for path in left if path not in progress.deleted]:
                progress.deleted.update(new)
                return Plan([*map(DeleteCollection, new)], again=0.0, is_independent=True)
            if unseen := [path for path in left if path not in progress.remains]:
                looks: list[Action] = [Get(path, {"limit": str(SEEN)}) for path in unseen]
                return Plan(looks, again=0.0, is_independent=True)
            plan = Plan(self._report(namespace, progress), again=_wait(progress))
            progress.start_over()
            return plan
        report = self._report(namespace, progress)
        return Plan(report or [_finalize(namespace, finalizers)], again=0.0 if report else 1.0)

    def finished(self, key: str, outcome: Outcome) -> None:
        """Note what is left, and what could not be deleted or looked at."""
        progress, action, error = self._progress.get(key), outcome.action, outcome.error
        if progress is None or not isinstance(action, DeleteCollection | Get):
            return
        path = action.path
        if isinstance(error, NotFoundError):
            progress.empty.add(path)  # the kind is not served any more
        elif error is not None:
            progress.errors[path] = str(error)
            if isinstance(action, Get):
                progress.remains[path] = Remains(0, Counter(), 0.0)
        elif isinstance(action, Get):
            remains = self._remains(_decode(outcome.answer))
            if remains.count or path in progress.errors:
                progress.remains[path] = remains
            else:
                progress.empty.add(path)

    def _stages(self) -> tuple[list[ResourceType], list[ResourceType]]:
        resources = swept(self._registry)
        pods = [resource for resource in resources if resource.storage_key == PODS]
        return pods, [resource for resource in resources if resource.storage_key != PODS]

    def _remains(self, page: _Page) -> Remains:
        items = page.items or []
        now = self._clock.now()
        ends = [item.metadata.deletion_timestamp for item in items]
        return Remains(
            count=len(items) + (page.metadata.remaining_item_count or 0),
            finalizers=Counter(
                finalizer for item in items for finalizer in item.metadata.finalizers or ()
            ),
            seconds=max((seconds_of(end) - now for end in ends if end), default=0.0),
        )

    def _report(self, namespace: NamespaceView, progress: _Progress) -> list[Action]:
        """Return the write of the conditions, if they are not there yet."""
        name = namespace.metadata.name
        served = {each.collection_path(name): each for each in swept(self._registry)}
        remains = [
            (served[path], found) for path, found in progress.remains.items() if path in served
        ]
        before = namespace.status.get("conditions") or []
        conditions = namespace_conditions.updated(
            before, name, remains, list(progress.errors.values()), now=self._clock.now()
        )
        if conditions == before:
            return []
        body = {
            "metadata": {"uid": namespace.metadata.uid},
            "status": {"conditions": conditions},
        }
        return [Patch(f"/api/v1/namespaces/{name}/status", body)]

    def _notice_last(
        self, table: Table[Any]
    ) -> Callable[[ObjectView | None, ObjectView | None], None]:
        def changed(old: ObjectView | None, new: ObjectView | None) -> None:
            name = metadata_of(old, new).namespace
            if new is None and name in self._progress and not any(table.in_namespace(name)):
                self._enqueue(name)

        return changed


def new_controller(context: ControllerContext) -> NamespaceController:
    controller = NamespaceController(
        context.table("namespaces", NamespaceView), context.registry, clock=context.clock
    )
    informers = context.informers
    informers.listen(lambda: controller.follow(informers.kinds))
    return controller


def _wait(progress: _Progress) -> float:
    """Return the seconds until what remains is looked at again."""
    estimates = [
        max(found.seconds, FINALIZER_SECONDS if found.finalizers else UNEXPECTED_SECONDS)
        for found in progress.remains.values()
    ]
    return max(estimates, default=0.0) / 2 + 1.0


def _finalize(namespace: NamespaceView, finalizers: list[str]) -> Replace:
    meta = namespace.metadata
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": meta.name, "uid": meta.uid},
        "spec": {"finalizers": [finalizer for finalizer in finalizers if finalizer != FINALIZER]},
    }
    return Replace(f"/api/v1/namespaces/{meta.name}/finalize", body)
