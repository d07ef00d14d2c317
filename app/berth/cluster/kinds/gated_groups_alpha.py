"""PodGroups and Workloads of ``scheduling.k8s.io/v1alpha2``, which Kubernetes 1.36 has.

Their schemas are not in the published description of what a server serves; the fields and their
numbers are those of ``k8s.io/api/scheduling/v1alpha2/generated.proto``.
"""

from collections.abc import Collection
from typing import Final

from berth.cluster.columns.cells import COMMON
from berth.cluster.kinds.fields import field_of, kind_of, text
from berth.cluster.kinds.gates import SCHEDULING
from berth.cluster.resources import Column, ResourceType, Subresource
from berth.cluster.schemas import builtin
from berth.cluster.schemas.types import Field, ListOf, Scalar, Schema
from berth.cluster.strategies import pod_groups
from berth.cluster.strategies.by_schema import of_schema

VERSION: Final = "v1alpha2"
TYPES: Final = "io.k8s.api.scheduling.v1alpha2."


def _type(name: str, /, **fields: Field) -> Schema:
    return Schema(TYPES + name, lambda: fields)


_POLICY = _type(
    "PodGroupSchedulingPolicy",
    basic=field_of(1, _type("BasicSchedulingPolicy")),
    gang=field_of(
        2, _type("GangSchedulingPolicy", minCount=field_of(1, Scalar("int32"), is_required=True))
    ),
)
_CONSTRAINTS = _type(
    "PodGroupSchedulingConstraints",
    topology=field_of(1, ListOf(_type("TopologyConstraint", key=text(1, is_required=True)))),
)
_CLAIM = _type(
    "PodGroupResourceClaim",
    name=text(1, is_required=True),
    resourceClaimName=text(2),
    resourceClaimTemplateName=text(3),
)
_COMMON: Final = {
    "schedulingPolicy": field_of(2, _POLICY, is_required=True),
    "schedulingConstraints": field_of(3, _CONSTRAINTS),
    "resourceClaims": field_of(4, ListOf(_CLAIM), keys="name"),
    "disruptionMode": text(5),
    "priorityClassName": text(6),
    "priority": field_of(7, Scalar("int32")),
}
_TEMPLATE_REFERENCE = _type(
    "PodGroupTemplateReference",
    workload=field_of(
        1,
        _type(
            "WorkloadPodGroupTemplateReference",
            workloadName=text(1, is_required=True),
            podGroupTemplateName=text(2, is_required=True),
        ),
    ),
)


def _pod_group_schema() -> Schema:
    status = _type(
        "PodGroupStatus",
        conditions=field_of(1, ListOf(builtin.meta("Condition")), keys="type"),
        resourceClaimStatuses=field_of(
            2,
            ListOf(
                _type(
                    "PodGroupResourceClaimStatus",
                    name=text(1, is_required=True),
                    resourceClaimName=text(2),
                )
            ),
            keys="name",
        ),
    )
    spec = _type("PodGroupSpec", podGroupTemplateRef=field_of(1, _TEMPLATE_REFERENCE), **_COMMON)
    return kind_of(TYPES + "PodGroup", spec=field_of(2, spec), status=field_of(3, status))


def _workload_schema() -> Schema:
    reference = _type(
        "TypedLocalObjectReference",
        apiGroup=text(1),
        kind=text(2, is_required=True),
        name=text(3, is_required=True),
    )
    template = _type("PodGroupTemplate", name=text(1, is_required=True), **_COMMON)
    spec = _type(
        "WorkloadSpec",
        controllerRef=field_of(1, reference),
        podGroupTemplates=field_of(2, ListOf(template), is_required=True, keys="name"),
    )
    return kind_of(TYPES + "Workload", spec=field_of(2, spec))


_COLUMNS: Final = (
    Column("Name", "string", COMMON["Name"], "name"),
    Column("Age", "string", COMMON["Age"]),
)


def alpha_groups(features: Collection[str]) -> tuple[ResourceType, ...]:
    """Return the kinds of a server with *features* on."""
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
                check_update=pod_groups.check_unchanged,
                check_status=pod_groups.check_claim_statuses,
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
                check_update=pod_groups.check_unchanged,
            ),
            columns=_COLUMNS,
        ),
    )
