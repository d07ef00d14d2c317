"""Rights that an embedded cluster gives beyond those that every cluster has."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from berth.cluster.access.users import SCHEDULER
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType
from berth.framework.kind import Kind

RBAC: Final = "rbac.authorization.k8s.io"
PLUGINS: Final = "berth-plugins"
"""Name of the role for what plugins read."""


def granted(
    name: str, rules: Sequence[Object], subject: Mapping[str, str]
) -> list[tuple[ResourceType, Object]]:
    """Return a cluster role with *rules*, and its binding to *subject*."""
    return [
        (find(RBAC, "v1", "clusterroles"), {"metadata": {"name": name}, "rules": [*rules]}),
        (
            find(RBAC, "v1", "clusterrolebindings"),
            {
                "metadata": {"name": name},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
                "subjects": [dict(subject)],
            },
        ),
    ]


def read_by_plugins(kinds: Iterable[Kind[Any]]) -> list[tuple[ResourceType, Object]]:
    """Return what lets the scheduler watch *kinds*, which its plugins declare."""
    rules = [
        {"apiGroups": [kind.group], "resources": [kind.resource], "verbs": ["list", "watch"]}
        for kind in kinds
    ]
    if not rules:
        return []
    return granted(PLUGINS, rules, {"kind": "User", "apiGroup": RBAC, "name": SCHEDULER.name})
