"""The authority of the API server: every namespace has it in a ConfigMap, for its pods."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from berth.cluster.actions import STRATEGIC_MERGE, Action, Create, Patch
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import NamespaceView
from berth.cluster.object_views import ObjectView, metadata_of

NAME: Final = "kube-root-ca.crt"
KEY: Final = "ca.crt"
DESCRIPTION: Final = "kubernetes.io/description"


class ConfigMapView(ObjectView, frozen=True):
    """A ConfigMap, whose data are read only where they are of interest."""

    data: dict[str, str] = msgspec.field(default_factory=dict)

    @classmethod
    def decoder(cls) -> Callable[[bytes], "ConfigMapView"]:
        """Read of all ConfigMaps but the one that is published nothing but the metadata."""
        decode_metadata = ObjectView.decoder()
        decode_all = msgspec.json.Decoder(cls).decode

        def decode(body: bytes) -> "ConfigMapView":
            view = decode_metadata(body)
            return decode_all(body) if view.metadata.name == NAME else cls(view.metadata)

        return decode


class RootCAController:
    """Creates it, and puts it right when somebody changed it. The key is the namespace."""

    name = "root-ca"

    def __init__(
        self,
        namespaces: Table[NamespaceView],
        config_maps: Table[ConfigMapView],
        *,
        certificate: str,
    ) -> None:
        """*certificate* is PEM."""
        self._namespaces = namespaces
        self._config_maps = config_maps
        self._data = {KEY: certificate}

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def namespace_changed(_old: NamespaceView | None, new: NamespaceView | None) -> None:
            if new is not None:
                enqueue(new.metadata.name)

        def map_changed(old: ConfigMapView | None, new: ConfigMapView | None) -> None:
            metadata = metadata_of(old, new)
            if metadata.name == NAME:
                enqueue(metadata.namespace)

        self._namespaces.listen(namespace_changed)
        self._config_maps.listen(map_changed)

    def plan(self, key: str) -> Plan:
        namespace = self._namespaces.get(key)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return NOTHING
        present = self._config_maps.get(f"{key}/{NAME}")
        if present is not None and present.data == self._data:
            return NOTHING
        return Plan([self._action(f"/api/v1/namespaces/{key}/configmaps", present)])

    def _action(self, path: str, present: ConfigMapView | None) -> Action:
        if present is not None:
            data = {"$patch": "replace", **self._data}
            return Patch(f"{path}/{NAME}", {"data": data}, STRATEGIC_MERGE)
        said = "Contains a CA bundle that can be used to verify the kube-apiserver."
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": NAME, "annotations": {DESCRIPTION: said}},
            "data": self._data,
        }
        return Create(path, body)

    def finished(self, key: str, outcome: Outcome) -> None:
        """Nothing to remember: what was written shows in the table."""


def new_controller(context: ControllerContext) -> RootCAController | None:
    if not context.certificate:
        return None
    return RootCAController(
        context.table("namespaces", NamespaceView),
        context.table("configmaps", ConfigMapView),
        certificate=context.certificate,
    )
