"""Namespaces: emptied when deleted, and only then let go."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from app.cluster.actions import Action, DeleteCollection, Get, Replace
from app.cluster.controllers.controller import NOTHING, Outcome, Plan
from app.cluster.controllers.table import Table
from app.cluster.controllers.views import NamespaceView, View

FINALIZER: Final = "kubernetes"

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

    *collections* are the paths of namespaced kinds with ``{namespace}`` in them.
    """

    name = "namespace"

    def __init__(self, namespaces: Table[NamespaceView], collections: list[str]) -> None:
        self._namespaces = namespaces
        self._collections = collections
        self._left: dict[str, dict[str, bool]] = {}
        """By namespace: which collections were seen to hold something after the deletion."""

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
        paths = [path.format(namespace=key) for path in self._collections]
        if key not in self._left:
            self._left[key] = {}
            return Plan([DeleteCollection(path) for path in paths], again=0.0)
        known = self._left[key]
        remaining = [path for path in paths if known.get(path, True)]
        if not remaining:
            return Plan([self._finalize(namespace, finalizers)], again=PAUSE)
        looks: list[Action] = [Get(path, {"limit": "1"}) for path in remaining]
        # What was created in between, before everybody knew, is deleted too.
        again = [DeleteCollection(path) for path in remaining if known.get(path)]
        return Plan([*again, *looks], again=PAUSE if known else 0.0)

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
