"""What the scheduler of an embedded cluster may read beyond what kube-scheduler may."""

from typing import Final

from berth.cluster.access.users import SCHEDULER
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType

NAME: Final = "berth:explain"
RBAC: Final = "rbac.authorization.k8s.io"

RULES: Final = (
    ("", ["limitranges", "resourcequotas"]),
    ("scheduling.k8s.io", ["priorityclasses"]),
    ("", ["events"]),
    ("apps", ["daemonsets", "deployments"]),
    ("batch", ["cronjobs", "jobs"]),
)
"""Groups and resources that are listed when somebody asks why, or what if."""


def scheduler_rights() -> list[tuple[ResourceType, Object]]:
    """Return the objects that let the scheduler list them."""
    rules = [
        {"apiGroups": [group], "resources": resources, "verbs": ["list"]}
        for group, resources in RULES
    ]
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": NAME}
    subject = {"apiGroup": RBAC, "kind": "User", "name": SCHEDULER.name}
    metadata = {"name": NAME}
    return [
        (find(RBAC, "v1", "clusterroles"), {"metadata": dict(metadata), "rules": rules}),
        (
            find(RBAC, "v1", "clusterrolebindings"),
            {"metadata": dict(metadata), "roleRef": role, "subjects": [subject]},
        ),
    ]
