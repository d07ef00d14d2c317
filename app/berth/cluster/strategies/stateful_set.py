"""StatefulSets: pods of one template that have names of their own."""

from collections.abc import Iterator
from typing import Final

from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import metadata, syntax, workload
from berth.cluster.strategies.constraint_table import constrained, validate_status
from berth.cluster.strategies.constraints import at_least, one_of, text
from berth.cluster.strategies.metadata import ObjectMeta
from berth.cluster.strategies.shape import Shape, section, validated
from berth.cluster.strategies.storage import FILESYSTEM
from berth.cluster.strategies.workload import WorkloadSpec
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

MUTABLE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
IMMUTABLE: Final = (
    "updates to statefulset spec for fields other than "
    + ", ".join(f"'{field}'" for field in MUTABLE[:-1])
    + f" and '{MUTABLE[-1]}' are forbidden"
)


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
        unreadable="",
        claimed_volumes=[each.name for each in named if each.name],
    )


_validate_shape = validated(StatefulSet, validate)


def validate_all(new: Object, old: Object | None) -> list[FieldError]:
    """Evaluate what is particular to StatefulSets before what workloads have in common."""
    spec = new["spec"]
    errors = list(_policies(spec))
    if old is None:
        errors += text(syntax.dns1123_label)(spec.get("serviceName"), "spec.serviceName")
        return errors + _validate_shape(new, old)
    kept, before = (
        {k: v for k, v in each["spec"].items() if k not in MUTABLE} for each in (new, old)
    )
    errors += _validate_shape(
        new, {**old, "spec": {**old["spec"], "selector": spec.get("selector")}}
    )
    if kept != before:
        errors.append(field_errors.forbidden("spec", IMMUTABLE))
    return errors


def _policies(spec: Object) -> Iterator[FieldError]:
    if spec["podManagementPolicy"] not in ("OrderedReady", "Parallel"):
        detail = "must be 'OrderedReady' or 'Parallel'"
        policy = spec["podManagementPolicy"]
        yield field_errors.invalid("spec.podManagementPolicy", policy, detail)
    update = spec["updateStrategy"]
    rolling = update.get("rollingUpdate")
    shown = rolling and {
        "Partition": rolling.get("partition"),
        "MaxUnavailable": rolling.get("maxUnavailable"),
    }  # as Go calls them
    path = "spec.updateStrategy"
    if update["type"] not in ("RollingUpdate", "OnDelete"):
        value = {"Type": update["type"], "RollingUpdate": shown}
        yield field_errors.invalid(path, value, "must be 'RollingUpdate' or 'OnDelete'")
    elif update["type"] == "OnDelete" and rolling is not None:
        detail = "only allowed for updateStrategy 'RollingUpdate'"
        yield field_errors.invalid(f"{path}.rollingUpdate", shown, detail)
    elif rolling:
        yield from at_least(0)(rolling.get("partition"), f"{path}.rollingUpdate.partition")
    path = "spec.persistentVolumeClaimRetentionPolicy"
    for field in ("whenDeleted", "whenScaled"):
        value = spec["persistentVolumeClaimRetentionPolicy"].get(field)
        yield from one_of("Retain", "Delete")(value, f"{path}.{field}")
    yield from at_least(0)((spec.get("ordinals") or {}).get("start"), "spec.ordinals.start")


STATEFUL_SET = Strategy(
    default=default,
    prepare=prepare,
    validate=constrained("apps", "v1", "StatefulSet", validate_all),
    validate_status=validate_status("apps", "v1", "StatefulSet"),
    initial_status=lambda _obj: {"replicas": 0},
)
