"""StatefulSets: pods of one template that have names of their own."""

from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import metadata, workload
from berth.cluster.strategies.constraint_table import validate_status
from berth.cluster.strategies.metadata import ObjectMeta
from berth.cluster.strategies.shape import Shape, section, validated
from berth.cluster.strategies.storage import FILESYSTEM
from berth.cluster.strategies.workload import WorkloadSpec
from berth.kube.field_errors import FieldError


class ClaimTemplate(Shape, frozen=True):
    metadata: ObjectMeta | None = None


class StatefulSetSpec(WorkloadSpec, frozen=True):
    pod_management_policy: str | None = None
    volume_claim_templates: list[ClaimTemplate] | None = None


class StatefulSet(Shape, frozen=True):
    metadata: ObjectMeta | None = None
    spec: StatefulSetSpec | None = None


def default(obj: Object) -> None:
    workload.default(obj)
    spec = section(obj, "spec")
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = section(spec, "updateStrategy")
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        section(strategy, "rollingUpdate").setdefault("partition", 0)
    retention = section(spec, "persistentVolumeClaimRetentionPolicy")
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    for claim in spec.get("volumeClaimTemplates") or []:
        claim.update(apiVersion="v1", kind="PersistentVolumeClaim")
        section(claim, "spec").setdefault("volumeMode", FILESYSTEM)
        section(claim, "status").setdefault("phase", "Pending")


def prepare(new: Object, old: Object | None) -> None:
    changed = old is not None and new.get("spec") != old.get("spec")
    metadata.set_generation(new, old, changed=changed)


def validate(new: StatefulSet, old: StatefulSet | None) -> list[FieldError]:
    spec = new.spec or StatefulSetSpec()
    named = [claim.metadata or metadata.NO_METADATA for claim in spec.volume_claim_templates or []]
    errors = metadata.validate(new.metadata, old.metadata if old else None)
    return errors + workload.validate_spec(
        spec,
        old.spec if old else None,
        kind="statefulset",
        claimed_volumes=[each.name for each in named if each.name],
    )


STATEFUL_SET = Strategy(
    default=default,
    prepare=prepare,
    validate=validated(StatefulSet, validate),
    validate_status=validate_status("apps", "v1", "StatefulSet"),
    initial_status=lambda _obj: {"replicas": 0},
)
