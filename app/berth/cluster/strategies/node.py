"""Nodes: what kubelets say of themselves, and taints that others put on them."""

import msgspec

from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import metadata, quantities, syntax
from berth.cluster.strategies.metadata import ObjectMeta
from berth.cluster.strategies.pod import Condition, validate_conditions
from berth.cluster.strategies.shape import Int64, Shape, section, validated
from berth.cluster.strategies.taints import Taint, validate_taints
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.quantity import Quantities


class NodeSpec(Shape, frozen=True):
    unschedulable: bool | None = None
    pod_cidrs: list[str] | None = msgspec.field(default=None, name="podCIDRs")
    provider_id: str | None = msgspec.field(default=None, name="providerID")
    taints: list[Taint] | None = None


class NodeImage(Shape, frozen=True):
    names: list[str] | None = None
    size_bytes: Int64 | None = None


class NodeStatus(Shape, frozen=True):
    capacity: Quantities | None = None
    allocatable: Quantities | None = None
    conditions: list[Condition] | None = None
    images: list[NodeImage] | None = None
    declared_features: list[str] | None = None


class Node(Shape, frozen=True):
    metadata: ObjectMeta | None = None
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class NodeWithStatus(Shape, frozen=True):
    status: NodeStatus | None = None


def default(obj: Object) -> None:
    spec = section(obj, "spec")
    if primary := spec.get("podCIDR"):  # of which the list is the newer form
        if (spec.get("podCIDRs") or [""])[0] != primary:
            spec["podCIDRs"] = [primary]
    elif ranges := spec.get("podCIDRs"):
        spec["podCIDR"] = ranges[0]
    status = section(obj, "status")
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def validate(new: Node, old: Node | None) -> list[FieldError]:
    errors = metadata.validate(new.metadata, old.metadata if old else None, namespaced=False)
    spec = new.spec or NodeSpec()
    errors += validate_taints(spec.taints or [], "spec.taints")
    for index, value in enumerate(spec.pod_cidrs or ()):
        errors += [
            field_errors.invalid(f"spec.podCIDRs[{index}]", value, text)
            for text in syntax.cidr(value)
        ]
    before = old.spec if old else None
    if before and before.pod_cidrs and spec.pod_cidrs != before.pod_cidrs:
        why = 'node updates may not change podCIDR except from "" to valid'
        errors.append(field_errors.forbidden("spec.podCIDRs", why))
    if before and before.provider_id and spec.provider_id != before.provider_id:
        errors.append(
            field_errors.forbidden("spec.providerID", "node updates may not change providerID")
        )
    return errors + _validate_status(new.status)


def validate_status(new: NodeWithStatus, _old: NodeWithStatus | None) -> list[FieldError]:
    return _validate_status(new.status)


def _validate_status(status: NodeStatus | None) -> list[FieldError]:
    if status is None:
        return []
    errors = quantities.validate_capacity(status.capacity, "status.capacity")
    errors += quantities.validate_capacity(status.allocatable, "status.allocatable")
    return errors + validate_conditions(status.conditions or [])


NODE = Strategy(
    default=default,
    validate=validated(Node, validate),
    validate_status=validated(NodeWithStatus, validate_status),
    keeps_status_on_create=True,
)
