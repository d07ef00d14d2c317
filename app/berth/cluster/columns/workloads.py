"""Workloads: how many pods are wanted, and how many there are."""

from berth.cluster.columns.cells import AGE, NAME, NONE, dig, labels_text, listed, selector_text
from berth.cluster.resources import Column, Object


def count(obj: Object, path: str) -> int:
    """Return the number at *path*; what nobody reported is zero."""
    return dig(obj, path) or 0


def of_containers(obj: Object, key: str) -> str:
    """Return one field of every container of the pod template."""
    return ",".join(each.get(key, "") for each in listed(obj, "spec.template.spec.containers"))


POD_COLUMNS = (
    Column(
        "Containers",
        "string",
        lambda obj: of_containers(obj, "name"),
        "The containers of the pod template.",
        priority=1,
    ),
    Column(
        "Images",
        "string",
        lambda obj: of_containers(obj, "image"),
        "The images of the pod template's containers.",
        priority=1,
    ),
)

TEMPLATE_COLUMNS = (
    *POD_COLUMNS,
    Column(
        "Selector",
        "string",
        lambda obj: selector_text(dig(obj, "spec.selector")) or NONE,
        "Which pods count.",
        priority=1,
    ),
)

DEPLOYMENT_COLUMNS = (
    NAME,
    Column(
        "Ready",
        "string",
        lambda obj: f"{count(obj, 'status.readyReplicas')}/{count(obj, 'spec.replicas')}",
        "Pods that are ready, of pods that are wanted.",
    ),
    Column(
        "Up-to-date",
        "string",
        lambda obj: count(obj, "status.updatedReplicas"),
        "Pods made from the present template.",
    ),
    Column(
        "Available",
        "string",
        lambda obj: count(obj, "status.availableReplicas"),
        "Pods that have been ready for at least minReadySeconds.",
    ),
    AGE,
    *TEMPLATE_COLUMNS,
)

REPLICA_COLUMNS = (
    NAME,
    Column("Desired", "integer", lambda obj: count(obj, "spec.replicas"), "Pods that are wanted."),
    Column(
        "Current",
        "integer",
        lambda obj: count(obj, "status.replicas"),
        "Pods that there are, without those that are leaving.",
    ),
    Column(
        "Ready", "integer", lambda obj: count(obj, "status.readyReplicas"), "Pods that are ready."
    ),
    AGE,
)

REPLICA_SET_COLUMNS = (*REPLICA_COLUMNS, *TEMPLATE_COLUMNS)

REPLICATION_CONTROLLER_COLUMNS = (
    *REPLICA_COLUMNS,
    *POD_COLUMNS,
    Column(
        "Selector",
        "string",
        lambda obj: labels_text(dig(obj, "spec.selector")) or NONE,
        "Which pods count.",
        priority=1,
    ),
)

STATEFUL_SET_COLUMNS = (
    NAME,
    Column(
        "Ready",
        "string",
        lambda obj: f"{count(obj, 'status.readyReplicas')}/{count(obj, 'spec.replicas')}",
        "Pods that are ready, of pods that are wanted.",
    ),
    AGE,
    *POD_COLUMNS,
)
