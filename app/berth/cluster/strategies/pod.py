"""Pods: born Pending, and once created all but carved in stone."""

from typing import Final

from berth.cluster.resources import Object, Strategy
from berth.cluster.schemas import builtin
from berth.cluster.strategies.by_schema import of_schema
from berth.cluster.strategies.constraint_table import CONSTRAINTS
from berth.cluster.strategies.pod_groups import check_claim_statuses
from berth.cluster.strategies.pod_update import validate_spec_update
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects import pod_defaults
from berth.runtime.release import RELEASE

SCHEMA: Final = "io.k8s.api.core.v1.Pod"
SCHEDULING_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "lastTransitionTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
"""The condition of a new pod that waits for its gates; the scheduler writes none (spec §12.6)."""


def _prepare(new: Object, old: Object | None) -> None:
    """Keep the priority, which admission gave the pod, where an update does not say it."""
    if old is None:
        pod_defaults.merge_match_label_keys(new)
        return
    for field in ("priority", "preemptionPolicy"):
        if field in old["spec"]:
            new["spec"].setdefault(field, old["spec"][field])


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


def validate_whole(pod: Object) -> list[FieldError]:
    """Evaluate a pod by itself, but for its metadata."""
    return CONSTRAINTS.violations(
        builtin.schema(SCHEMA), {key: pod[key] for key in pod if key != "status"}
    )


def _check_create(pod: Object) -> list[FieldError]:
    if not (pod.get("spec") or {}).get("ephemeralContainers"):
        return []
    return [field_errors.forbidden("spec.ephemeralContainers", "cannot be set on create")]


def pod(release: str = RELEASE) -> Strategy:
    """Return the strategy of a server of *release*."""
    schema = builtin.schema(SCHEMA, release)

    def check_update(new: Object, old: Object) -> list[FieldError]:
        after, before = new.get("spec") or {}, old.get("spec") or {}
        return validate_spec_update(after, before, schema.fields["spec"].type)

    return of_schema(
        schema,
        namespaced=True,
        default=lambda pod: pod_defaults.default_pod(pod["spec"]),
        prepare=_prepare,
        check_create=_check_create,
        check_update=check_update,
        check_status=check_claim_statuses,
        generation=True,
        status=initial_status,
        graceful_seconds=graceful_seconds,
        kept_by_status=("ownerReferences",),
    )


POD: Final = pod()
"""That of the latest release."""
