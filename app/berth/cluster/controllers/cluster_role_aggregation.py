"""Aggregated ClusterRoles: their rules are those of the roles that they select, written down."""

from collections.abc import Callable

from berth.cluster.actions import Patch
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.object_views import ObjectView, View
from berth.cluster.resources import Object
from berth.cluster.strategies.selectors import LabelSelector, matches


class Aggregation(View, frozen=True):
    cluster_role_selectors: list[LabelSelector] | None = None


class ClusterRoleView(ObjectView, frozen=True):
    rules: list[Object] | None = None
    aggregation_rule: Aggregation | None = None


class ClusterRoleAggregationController:
    """Only for those who read roles: the authorizer looks at the selected roles themselves."""

    name = "cluster-role-aggregation"

    def __init__(self, roles: Table[ClusterRoleView]) -> None:
        self._roles = roles

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def changed(_old: ClusterRoleView | None, _new: ClusterRoleView | None) -> None:
            for role in self._roles.values():
                if role.aggregation_rule is not None:
                    enqueue(role.metadata.name)

        self._roles.listen(changed)

    def plan(self, key: str) -> Plan:
        role = self._roles.get(key)
        if role is None or role.aggregation_rule is None:
            return NOTHING
        rules: list[Object] = []
        for selector in role.aggregation_rule.cluster_role_selectors or []:
            for other in sorted(self._roles.values(), key=lambda each: each.metadata.name):
                if other is not role and matches(selector, other.metadata.labels or {}):
                    rules += [rule for rule in other.rules or [] if rule not in rules]
        if rules == (role.rules or []):
            return NOTHING
        path = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{key}"
        return Plan([Patch(path, {"metadata": {"uid": role.metadata.uid}, "rules": rules})])

    def finished(self, key: str, outcome: Outcome) -> None:
        """Nothing to remember: what was written shows in the table."""


def new_controller(context: ControllerContext) -> ClusterRoleAggregationController:
    return ClusterRoleAggregationController(
        context.table("clusterroles.rbac.authorization.k8s.io", ClusterRoleView)
    )
