"""PodGroups, Workloads and CompositePodGroups, as Kubernetes has them since 1.37.

``v1beta1`` and ``v1alpha3`` are the same but for CompositePodGroups, which only the latter has. A
real server serves each version with a flag of its own; here the gates do (1.37 spec N7.1).
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, Final

from berth.cluster.columns.cells import COMMON
from berth.cluster.kinds.gates import SCHEDULING
from berth.cluster.resources import Column, Object, ResourceType, Subresource
from berth.cluster.schemas import builtin
from berth.cluster.schemas.types import Schema
from berth.cluster.strategies import pod_groups_beta as rules
from berth.cluster.strategies.by_schema import of_schema
from berth.cluster.strategies.pod_groups import check_claim_statuses

BETA: Final = "v1beta1"
"""The version in which objects are kept."""
ALPHA: Final = "v1alpha3"

_COLUMNS: Final = (
    Column("Name", "string", COMMON["Name"], "name"),
    Column("Age", "string", COMMON["Age"]),
)


def groups(features: Collection[str], release: str) -> Iterator[ResourceType]:
    """Yield the kinds of a server with *features* on."""
    pod_groups = _kind(
        BETA,
        "PodGroup",
        release,
        status=True,
        prepare=rules.prepare_pod_group(features),
        check_create=rules.check_gates_of_group(features),
        check_update=rules.check_group_update,
        check_status=check_claim_statuses,
    )
    of_workloads = _kind(
        BETA,
        "Workload",
        release,
        status=False,
        prepare=rules.prepare_workload(features),
        check_create=rules.check_gates_of_workload(features),
        check_update=rules.check_workload_update,
    )
    yield from (pod_groups, of_workloads)
    if rules.COMPOSITE_POD_GROUP in features:
        yield _kind(
            ALPHA,
            "CompositePodGroup",
            release,
            status=True,
            prepare=rules.prepare_composite(features),
            check_create=rules.check_gates_of_group(features),
            check_update=rules.check_group_update,
        )
        for kind in (pod_groups, of_workloads):
            yield replace(
                kind,
                version=ALPHA,
                schema=_schema(ALPHA, kind.kind, release),
                storage_version=kind.group_version,
                to_storage=_alike,
                from_storage=_alike,
            )


def _alike(obj: Object) -> Object:
    """Return the object in the other version, which has the same fields."""
    return {**obj}


def _kind(version: str, kind: str, release: str, *, status: bool, **rules: Any) -> ResourceType:
    schema, singular = _schema(version, kind, release), kind.lower()
    return ResourceType(
        group=SCHEDULING,
        version=version,
        kind=kind,
        plural=f"{singular}s",
        singular=singular,
        namespaced=True,
        schema=schema,
        subresources=(
            {"status": Subresource("status", ("get", "patch", "update"))} if status else {}
        ),
        strategy=of_schema(schema, namespaced=True, generation=True, status=status, **rules),
        columns=_COLUMNS,
    )


def _schema(version: str, kind: str, release: str) -> Schema:
    schema = builtin.schema_of(SCHEDULING, version, kind, release)
    if schema is None:
        raise LookupError(f"{SCHEDULING}/{version} {kind} has no schema")
    return schema
