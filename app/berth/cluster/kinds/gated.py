"""Kinds that a server has only with a feature gate on, and their version switched on.

Their schemas are not in the published description of what a server serves; the fields and their
numbers are those of ``k8s.io/api/scheduling/v1alpha2/generated.proto``.
"""

from collections.abc import Collection
from typing import Final

from berth.cluster.columns.cells import COMMON
from berth.cluster.kinds.gated_devices import device_kinds
from berth.cluster.resources import Column, ResourceType, Subresource
from berth.cluster.schemas import builtin
from berth.cluster.schemas.types import Field, ListOf, Scalar, Schema, Type
from berth.cluster.strategies import pod_groups
from berth.cluster.strategies.by_schema import of_schema

GENERIC_WORKLOAD: Final = "GenericWorkload"
WORKLOAD_WITH_JOB: Final = "WorkloadWithJob"
SCHEDULING: Final = "scheduling.k8s.io"
VERSION: Final = "v1alpha2"
TYPES: Final = "io.k8s.api.scheduling.v1alpha2."


def _field(number: int, of: Type, *, is_required: bool = False, keys: str = "") -> Field:
    return Field(
        of,
        is_required=is_required,
        by_value=of == Scalar("string") and not is_required,
        number=(number,),
        list_type=("map" if keys else "atomic") if isinstance(of, ListOf) else "",
        list_keys=(keys,) if keys else (),
        patch_strategy="merge" if keys else "",
        merge_key=keys,
    )


def _text(number: int, *, is_required: bool = False) -> Field:
    return _field(number, Scalar("string"), is_required=is_required)


def _type(name: str, /, **fields: Field) -> Schema:
    return Schema(TYPES + name, lambda: fields)


def _kind(name: str, /, **fields: Field) -> Schema:
    return _type(
        name,
        apiVersion=Field(Scalar("string")),
        kind=Field(Scalar("string")),
        metadata=_field(1, builtin.meta("ObjectMeta")),
        **fields,
    )


_POLICY = _type(
    "PodGroupSchedulingPolicy",
    basic=_field(1, _type("BasicSchedulingPolicy")),
    gang=_field(
        2, _type("GangSchedulingPolicy", minCount=_field(1, Scalar("int32"), is_required=True))
    ),
)
_CONSTRAINTS = _type(
    "PodGroupSchedulingConstraints",
    topology=_field(1, ListOf(_type("TopologyConstraint", key=_text(1, is_required=True)))),
)
_CLAIM = _type(
    "PodGroupResourceClaim",
    name=_text(1, is_required=True),
    resourceClaimName=_text(2),
    resourceClaimTemplateName=_text(3),
)
_COMMON: Final = {
    "schedulingPolicy": _field(2, _POLICY, is_required=True),
    "schedulingConstraints": _field(3, _CONSTRAINTS),
    "resourceClaims": _field(4, ListOf(_CLAIM), keys="name"),
    "disruptionMode": _text(5),
    "priorityClassName": _text(6),
    "priority": _field(7, Scalar("int32")),
}
_TEMPLATE_REFERENCE = _type(
    "PodGroupTemplateReference",
    workload=_field(
        1,
        _type(
            "WorkloadPodGroupTemplateReference",
            workloadName=_text(1, is_required=True),
            podGroupTemplateName=_text(2, is_required=True),
        ),
    ),
)


def _pod_group_schema() -> Schema:
    status = _type(
        "PodGroupStatus",
        conditions=_field(1, ListOf(builtin.meta("Condition")), keys="type"),
        resourceClaimStatuses=_field(
            2,
            ListOf(
                _type(
                    "PodGroupResourceClaimStatus",
                    name=_text(1, is_required=True),
                    resourceClaimName=_text(2),
                )
            ),
            keys="name",
        ),
    )
    spec = _type("PodGroupSpec", podGroupTemplateRef=_field(1, _TEMPLATE_REFERENCE), **_COMMON)
    return _kind("PodGroup", spec=_field(2, spec), status=_field(3, status))


def _workload_schema() -> Schema:
    reference = _type(
        "TypedLocalObjectReference",
        apiGroup=_text(1),
        kind=_text(2, is_required=True),
        name=_text(3, is_required=True),
    )
    template = _type("PodGroupTemplate", name=_text(1, is_required=True), **_COMMON)
    spec = _type(
        "WorkloadSpec",
        controllerRef=_field(1, reference),
        podGroupTemplates=_field(2, ListOf(template), is_required=True, keys="name"),
    )
    return _kind("Workload", spec=_field(2, spec))


_COLUMNS: Final = (
    Column("Name", "string", COMMON["Name"], "name"),
    Column("Age", "string", COMMON["Age"]),
)


def gated_kinds(features: Collection[str]) -> tuple[ResourceType, ...]:
    """Return the kinds that a server with *features* on has beside those by default, or instead."""
    return (*_pod_groups(features), *device_kinds(features))


def _pod_groups(features: Collection[str]) -> tuple[ResourceType, ...]:
    if GENERIC_WORKLOAD not in features:
        return ()
    group, workload = _pod_group_schema(), _workload_schema()
    return (
        ResourceType(
            group=SCHEDULING,
            version=VERSION,
            kind="PodGroup",
            plural="podgroups",
            singular="podgroup",
            namespaced=True,
            schema=group,
            subresources={"status": Subresource("status", ("get", "patch", "update"))},
            strategy=of_schema(
                group,
                namespaced=True,
                status=True,
                generation=True,
                prepare=pod_groups.prepare_pod_group(features),
                check=pod_groups.check_pod_group,
                check_update=pod_groups.check_pod_group_update,
            ),
            columns=_COLUMNS,
        ),
        ResourceType(
            group=SCHEDULING,
            version=VERSION,
            kind="Workload",
            plural="workloads",
            singular="workload",
            namespaced=True,
            schema=workload,
            strategy=of_schema(
                workload,
                namespaced=True,
                generation=True,
                prepare=pod_groups.prepare_workload(features),
                check=pod_groups.check_workload,
                check_update=pod_groups.check_workload_update,
            ),
            columns=_COLUMNS,
        ),
    )
