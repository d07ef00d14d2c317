"""What controllers see of objects, in one line, for tests."""

from collections.abc import Mapping
from typing import Any

from berth.cluster.controllers.views import WorkloadView
from berth.cluster.object_views import Condition, Meta, OwnerReference
from berth.cluster.pods.controllers import PodSpecView, PodStatusView, PodView

LABELS = {"app": "web"}
BIRTH = "2026-01-01T00:00:00Z"


def owner(name: str, kind: str = "ReplicaSet") -> OwnerReference:
    return OwnerReference("apps/v1", kind, name, f"uid-{name}", controller=True)


def pod_view(
    name: str,
    *,
    of: str | None = "web",
    labels: Mapping[str, str] = LABELS,
    node: str | None = "n1",
    phase: str = "Running",
    ready: str | None = BIRTH,
    born: str = BIRTH,
    deleted: bool = False,
    annotations: Mapping[str, str] = {},
) -> PodView:
    """A pod of the ReplicaSet *of*; *ready*: since when."""
    conditions = [] if ready is None else [Condition("Ready", "True", ready)]
    return PodView(
        Meta(
            name,
            f"uid-{name}",
            "default",
            resource_version="1",
            labels=dict(labels),
            annotations=dict(annotations),
            owner_references=[owner(of)] if of else None,
            creation_timestamp=born,
            deletion_timestamp=BIRTH if deleted else None,
        ),
        PodSpecView(node),
        PodStatusView(phase, conditions),
    )


def workload_view(
    name: str = "web",
    *,
    replicas: int = 1,
    image: str = "nginx",
    labels: Mapping[str, str] = LABELS,
    of: str | None = None,
    status: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] = {},
    deleted: bool = False,
    finalizers: tuple[str, ...] = (),
    version: int = 1,
    **spec: Any,
) -> WorkloadView:
    """A ReplicaSet or Deployment; *of*: the Deployment that controls it."""
    template = {
        "metadata": {"labels": dict(labels)},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }
    return WorkloadView(
        Meta(
            name,
            f"uid-{name}",
            "default",
            resource_version=str(version),
            generation=1,
            labels=dict(labels),
            annotations=dict(annotations),
            owner_references=[owner(of, "Deployment")] if of else None,
            finalizers=list(finalizers),
            creation_timestamp=BIRTH,
            deletion_timestamp=BIRTH if deleted else None,
        ),
        {
            "replicas": replicas,
            "selector": {"matchLabels": dict(labels)},
            "template": template,
            **spec,
        },
        dict(status or {}),
    )
