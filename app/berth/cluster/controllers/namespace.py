"""Namespaces: emptied when deleted, and only then let go."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from berth.cluster.actions import Action, DeleteCollection, Get, Replace
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import NamespaceView, View
from berth.cluster.kinds.registry import swept
from berth.cluster.resources import ResourceType

FINALIZER: Final = "kubernetes"
PODS: Final = "pods"

PAUSE: Final = 1.0
"""Seconds between two looks at what is still there: pods take their grace period."""


class _ListMeta(View, frozen=True):
    resource_version: str = ""


class _Page(View, frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: list[msgspec.Raw] | None = None


_decode = msgspec.json.Decoder(_Page).decode


class NamespaceController:
    """Deletes what is in a deleted namespace, looks until nothing is left, then finalizes it.

    Pods go first, and the rest when they have gone: what protects them, such as a NetworkPolicy,
    stays as long as they run (OrderedNamespaceDeletion).
    """

    name = "namespace"

    def __init__(self, namespaces: Table[NamespaceView], registry: Iterable[ResourceType]) -> None:
        """*registry* is what is served at present: which kinds a namespace may hold."""
        self._namespaces = namespaces
        self._registry = registry
        self._left: dict[str, dict[str, bool | None]] = {}
        """By namespace: which collections were seen to hold something after the deletion; None:
        not looked at yet."""

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def changed(_old: NamespaceView | None, new: NamespaceView | None) -> None:
            if new is not None and new.metadata.deletion_timestamp is not None:
                enqueue(new.metadata.name)

        self._namespaces.listen(changed)

    def plan(self, key: str) -> Plan:
        namespace = self._namespaces.get(key)
        finalizers: list[str] = (namespace.spec.get("finalizers") or []) if namespace else []
        if namespace is None or FINALIZER not in finalizers:
            self._left.pop(key, None)
            return NOTHING
        if namespace.metadata.deletion_timestamp is None:
            return NOTHING
        known = self._left.setdefault(key, {})
        resources = swept(self._registry)
        for stage in (
            [each for each in resources if each.storage_key == PODS],
            [each for each in resources if each.storage_key != PODS],
        ):
            paths = [each.collection_path(key) for each in stage]
            remaining = [path for path in paths if known.get(path) is not False]
            if not remaining:
                continue
            if not any(path in known for path in paths):
                known |= dict.fromkeys(paths)
                return Plan([DeleteCollection(path) for path in paths], again=0.0)
            looks: list[Action] = [Get(path, {"limit": "1"}) for path in remaining]
            # What was created in between, before everybody knew, is deleted too.
            again = [DeleteCollection(path) for path in remaining if known[path]]
            return Plan([*again, *looks], again=PAUSE if again else 0.0)
        return Plan([self._finalize(namespace, finalizers)], again=PAUSE)

    def finished(self, key: str, outcome: Outcome) -> None:
        """Note what is left; who could not delete everything starts again."""
        if isinstance(outcome.action, Get) and outcome.answer and key in self._left:
            self._left[key][outcome.action.path] = bool(_decode(outcome.answer).items)
        elif isinstance(outcome.action, DeleteCollection) and (outcome.error or outcome.skipped):
            self._left.pop(key, None)

    def _finalize(self, namespace: NamespaceView, finalizers: list[str]) -> Replace:
        meta = namespace.metadata
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": meta.name, "uid": meta.uid},
            "spec": {"finalizers": [each for each in finalizers if each != FINALIZER]},
        }
        return Replace(f"/api/v1/namespaces/{meta.name}/finalize", body)


def new_controller(context: ControllerContext) -> NamespaceController:
    return NamespaceController(context.table("namespaces", NamespaceView), context.registry)
