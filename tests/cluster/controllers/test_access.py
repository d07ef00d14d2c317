"""The controllers of service accounts and aggregated roles: what they plan."""

from typing import Any

from berth.cluster.actions import Create, Patch
from berth.cluster.controllers.cluster_role_aggregation import (
    Aggregation,
    ClusterRoleAggregationController,
    ClusterRoleView,
)
from berth.cluster.controllers.controller import NOTHING, Plan
from berth.cluster.controllers.service_account import ServiceAccountController
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import NamespaceView
from berth.cluster.object_views import Meta, ObjectView
from berth.cluster.strategies.selectors import LabelSelector
from tests.cluster.access.secured import rule

WEB = Plan(
    [
        Create(
            "/api/v1/namespaces/web/serviceaccounts",
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}},
        )
    ]
)


def namespace(name: str, **metadata: Any) -> NamespaceView:
    return NamespaceView(Meta(name, f"uid-{name}", **metadata))


def account(namespace: str, name: str = "default") -> ObjectView:
    return ObjectView(Meta(name, f"uid-{namespace}-{name}", namespace=namespace))


def test_every_namespace_has_a_default_account() -> None:
    namespaces: Table[NamespaceView] = Table()
    accounts: Table[ObjectView] = Table()
    controller = ServiceAccountController(namespaces, accounts)
    enqueued: list[str] = []
    controller.subscribe(enqueued.append)

    namespaces.on_add(namespace("web"))
    assert controller.plan("web") == WEB
    accounts.on_add(account("web"))
    assert controller.plan("web") == NOTHING
    accounts.on_add(account("web", "other"))
    accounts.on_delete(account("web", "other"))
    accounts.on_delete(account("web"))
    assert controller.plan("web") == WEB
    assert enqueued == ["web", "web"]


def test_but_not_one_that_is_on_its_way_out() -> None:
    namespaces: Table[NamespaceView] = Table()
    controller = ServiceAccountController(namespaces, Table())
    namespaces.on_add(namespace("web", deletion_timestamp="2026-11-20T13:06:10Z"))
    assert [controller.plan(each) for each in ("web", "gone")] == [NOTHING, NOTHING]


def cluster_role(name: str, *rules: Any, to: str = "", selects: str = "") -> ClusterRoleView:
    selector = LabelSelector(match_labels={"to": selects})
    return ClusterRoleView(
        Meta(name, f"uid-{name}", labels={"to": to} if to else None),
        rules=list(rules),
        aggregation_rule=Aggregation([selector]) if selects else None,
    )


def test_an_aggregated_role_shows_the_rules_of_others() -> None:
    roles: Table[ClusterRoleView] = Table()
    controller = ClusterRoleAggregationController(roles)
    enqueued: list[str] = []
    controller.subscribe(enqueued.append)
    pods, nodes = rule("pods", "get"), rule("nodes", "get")
    view = cluster_role("view", selects="view")
    for role in (
        view,
        cluster_role("b", nodes, pods, to="view"),
        cluster_role("a", pods, to="view"),
        cluster_role("c", rule("secrets", "get"), to="edit"),
    ):
        roles.on_add(role)
    assert set(enqueued) == {"view"}
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/view"
    patch = {"metadata": {"uid": "uid-view"}, "rules": [pods, nodes]}
    assert controller.plan("view") == Plan([Patch(path, patch)])

    roles.on_update(view, cluster_role("view", pods, nodes, selects="view"))
    assert [controller.plan(each) for each in ("view", "a", "gone")] == [NOTHING] * 3
