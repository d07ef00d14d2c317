"""Pods: born Pending, and once created all but carved in stone."""

from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import metadata, pod_spec
from berth.cluster.strategies.constraint_table import constrained
from berth.cluster.strategies.metadata import ObjectMeta
from berth.cluster.strategies.pod_spec import NO_SPEC, PodSpec
from berth.cluster.strategies.pod_update import validate_spec_update
from berth.cluster.strategies.shape import Int64, Shape, section, validated
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects import pod_defaults

SCHEDULING_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "lastTransitionTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
"""The condition of a new pod that waits for its gates; the scheduler writes none (spec §12.6)."""

PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")


class Condition(Shape, frozen=True):
    """Of pods and nodes. Times are as the API writes them."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None
    observed_generation: Int64 | None = None


class ContainerStatus(Shape, frozen=True):
    name: str | None = None
    ready: bool | None = None


class PodStatus(Shape, frozen=True):
    phase: str | None = None
    conditions: list[Condition] | None = None
    nominated_node_name: str | None = None
    start_time: str | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Pod(Shape, frozen=True):
    metadata: ObjectMeta | None = None
    spec: PodSpec | None = None


class PodWithStatus(Shape, frozen=True):
    status: PodStatus | None = None


def default(obj: Object) -> None:
    spec = section(obj, "spec")
    pod_defaults.default_template(spec)
    pod_defaults.default_pod(spec)


def prepare(new: Object, old: Object | None) -> None:
    if old is None:
        pod_defaults.merge_match_label_keys(new)
    changed = old is not None and new.get("spec") != old.get("spec")
    metadata.set_generation(new, old, changed=changed)


def initial_status(obj: Object) -> Object:
    """Return the status of a pod nobody has looked at."""
    status: Object = {"phase": "Pending"}
    spec = obj.get("spec") or {}
    if spec.get("schedulingGates"):
        status["conditions"] = [dict(SCHEDULING_GATED)]
    try:
        status["qosClass"] = pod_defaults.qos_class(spec)
    except ValueError:  # a malformed quantity, which validate refuses
        return status
    return status


def graceful_seconds(obj: Object) -> int:
    """Return how long the pod may go on after its deletion; 0 when nothing of it runs."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    seconds = spec.get("terminationGracePeriodSeconds")
    return 30 if seconds is None else max(int(seconds), 0)


def _validate_pod(new: Pod, old: Pod | None) -> list[FieldError]:
    errors = metadata.validate(new.metadata, old.metadata if old else None)
    return errors + pod_spec.validate(new.spec or NO_SPEC, "spec")


_validate = constrained("", "v1", "Pod", validated(Pod, _validate_pod))


def validate_whole(new: Object) -> list[FieldError]:
    """Evaluate a pod by itself."""
    return _validate(new, None)


def validate(new: Object, old: Object | None) -> list[FieldError]:
    errors = _validate(new, old)
    if old is None and (new.get("spec") or {}).get("ephemeralContainers"):
        errors.append(field_errors.forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if old is not None and not errors:
        errors = validate_spec_update(new.get("spec") or {}, old.get("spec") or {})
    return errors


def _validate_pod_status(new: PodWithStatus, _old: PodWithStatus | None) -> list[FieldError]:
    status = new.status or PodStatus()
    errors = []
    if status.phase and status.phase not in PHASES:
        errors.append(field_errors.not_supported("status.phase", status.phase, PHASES))
    return errors + validate_conditions(status.conditions or [])


def validate_conditions(conditions: list[Condition]) -> list[FieldError]:
    """Evaluate the conditions of a pod or node: each says which it is, and no two the same."""
    errors = []
    seen = set()
    for index, condition in enumerate(conditions):
        path = f"status.conditions[{index}].type"
        if not condition.type:
            errors.append(field_errors.required(path))
        elif condition.type in seen:
            errors.append(field_errors.duplicate(path, condition.type))
        seen.add(condition.type)
    return errors


POD = Strategy(
    default=default,
    prepare=prepare,
    validate=validate,
    validate_status=validated(PodWithStatus, _validate_pod_status),
    initial_status=initial_status,
    graceful_seconds=graceful_seconds,
    kept_by_status=("ownerReferences",),
)
