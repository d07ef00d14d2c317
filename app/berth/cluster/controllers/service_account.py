"""Service accounts: every namespace has one called default."""

from collections.abc import Callable
from typing import Final

from berth.cluster.actions import Create
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import NamespaceView
from berth.cluster.object_views import ObjectView, metadata_of

NAME: Final = "default"


class ServiceAccountController:
    """Creates it, also when it was deleted. The key is the namespace."""

    name = "service-account"

    def __init__(self, namespaces: Table[NamespaceView], accounts: Table[ObjectView]) -> None:
        self._namespaces = namespaces
        self._accounts = accounts

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def namespace_changed(_old: NamespaceView | None, new: NamespaceView | None) -> None:
            if new is not None:
                enqueue(new.metadata.name)

        def account_changed(old: ObjectView | None, new: ObjectView | None) -> None:
            if new is None and metadata_of(old, new).name == NAME:
                enqueue(metadata_of(old, new).namespace)

        self._namespaces.listen(namespace_changed)
        self._accounts.listen(account_changed)

    def plan(self, key: str) -> Plan:
        namespace = self._namespaces.get(key)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return NOTHING
        if self._accounts.get(f"{key}/{NAME}") is not None:
            return NOTHING
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME}}
        return Plan([Create(f"/api/v1/namespaces/{key}/serviceaccounts", account)])

    def finished(self, key: str, outcome: Outcome) -> None:
        """Nothing to remember: what was created shows in the table."""


def new_controller(context: ControllerContext) -> ServiceAccountController:
    return ServiceAccountController(
        context.table("namespaces", NamespaceView), context.table("serviceaccounts", ObjectView)
    )
