"""ReplicaSets: so many pods of one template."""

from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import metadata, workload
from berth.cluster.strategies.constraint_table import constrained, validate_status
from berth.cluster.strategies.metadata import ObjectMeta
from berth.cluster.strategies.shape import Shape, validated
from berth.cluster.strategies.workload import WorkloadSpec
from berth.kube.field_errors import FieldError


class ReplicaSet(Shape, frozen=True):
    metadata: ObjectMeta | None = None
    spec: WorkloadSpec | None = None


def default(obj: Object) -> None:
    workload.default(obj)


def prepare(new: Object, old: Object | None) -> None:
    changed = old is not None and new.get("spec") != old.get("spec")
    metadata.set_generation(new, old, changed=changed)


def validate(new: ReplicaSet, old: ReplicaSet | None) -> list[FieldError]:
    errors = metadata.validate(new.metadata, old.metadata if old else None)
    return errors + workload.validate_spec(
        new.spec or WorkloadSpec(), old.spec if old else None, kind="ReplicaSet"
    )


REPLICA_SET = Strategy(
    default=default,
    prepare=prepare,
    validate=constrained("apps", "v1", "ReplicaSet", validated(ReplicaSet, validate)),
    validate_status=validate_status("apps", "v1", "ReplicaSet"),
    initial_status=lambda _obj: {"replicas": 0},
)
