"""Rights that an embedded cluster gives beyond those that every cluster has."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from berth.cluster.access.users import SCHEDULER
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType
from berth.scheduler.framework.kind import Kind

RBAC: Final = "rbac.authorization.k8s.io"
PLUGINS: Final = "berth-plugins"
"""Name of the role for what plugins read."""
EXPLAIN: Final = "berth-explain"
"""Name of the role for what is listed when somebody asks why, or what if."""
LISTED: Final = (
    ("", ["events", "limitranges", "resourcequotas"]),
    ("apps", ["daemonsets", "deployments"]),
    ("batch", ["cronjobs", "jobs"]),
    ("scheduling.k8s.io", ["priorityclasses"]),
)
"""These are, by group."""
_SCHEDULER: Final = {"kind": "User", "apiGroup": RBAC, "name": SCHEDULER.name}


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
    return granted(PLUGINS, rules, _SCHEDULER)


def listed_to_explain() -> list[tuple[ResourceType, Object]]:
    """Return what lets the scheduler list what no decision needs."""
    rules = [
        {"apiGroups": [group], "resources": resources, "verbs": ["list"]}
        for group, resources in LISTED
    ]
    return granted(EXPLAIN, rules, _SCHEDULER)
