"""The common parts of Deployments and ReplicaSets: selector, pod template, replicas."""

from collections.abc import Collection
from typing import TypeVar

from berth.cluster.resources import Object
from berth.cluster.strategies import metadata, pod_spec, selectors
from berth.cluster.strategies.metadata import ObjectMeta
from berth.cluster.strategies.pod_spec import NO_SPEC, PodSpec
from berth.cluster.strategies.selectors import LabelSelector
from berth.cluster.strategies.shape import Int32, Shape, section
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects import pod_defaults


class PodTemplate(Shape, frozen=True):
    metadata: ObjectMeta | None = None
    spec: PodSpec | None = None


class WorkloadSpec(Shape, frozen=True):
    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplate | None = None
    min_ready_seconds: Int32 | None = None


SpecT = TypeVar("SpecT", bound=WorkloadSpec)


def default(obj: Object) -> None:
    """Fill in a workload's spec. *obj* fits its shape."""
    spec = section(obj, "spec")
    spec.setdefault("replicas", 1)
    pod_defaults.default_template(section(spec, "template", "spec"))
    section(spec, "template", "metadata")


def validate_spec(
    new: SpecT,
    old: SpecT | None,
    *,
    kind: str,
    unreadable: str = "invalid label selector",
    claimed_volumes: Collection[str] = (),
) -> list[FieldError]:
    """Evaluate the shared part of ``spec``; *kind* is how messages name the workload.

    *unreadable* is what they say of a selector that cannot be used, and whose template is not
    evaluated.
    *claimed_volumes* are those that the workload adds to each pod.
    """
    errors = _not_negative(new.replicas, "spec.replicas")
    errors += _not_negative(new.min_ready_seconds, "spec.minReadySeconds")
    template = new.template or PodTemplate()
    labels = (template.metadata or metadata.NO_METADATA).labels
    is_readable = True
    if new.selector is None:
        errors.append(field_errors.required("spec.selector"))
    else:
        complaints = selectors.validate(new.selector, "spec.selector")
        if new.selector.is_empty:
            detail = f"empty selector is invalid for {kind}"
            complaints.append(field_errors.invalid("spec.selector", new.selector, detail))
        elif complaints:
            is_readable = False
            complaints.append(field_errors.invalid("spec.selector", new.selector, unreadable))
        errors += complaints
    if is_readable:
        # What is not there selects nothing, and what is empty everything.
        if new.selector is None or not selectors.matches(new.selector, labels or {}):
            path = "spec.template.metadata.labels"
            detail = "`selector` does not match template `labels`"
            errors.append(field_errors.invalid(path, labels, detail))
        errors += validate_template(template, "spec.template", claimed_volumes=claimed_volumes)
    errors += _validate_endless(template.spec or NO_SPEC)
    if old is not None and new.selector != old.selector:
        errors.append(field_errors.invalid("spec.selector", new.selector, "field is immutable"))
    return errors


def _not_negative(count: int | None, path: str) -> list[FieldError]:
    if count is None or count >= 0:
        return []
    return [field_errors.invalid(path, count, "must be greater than or equal to 0")]


def validate_template(
    template: PodTemplate, path: str, *, claimed_volumes: Collection[str] = ()
) -> list[FieldError]:
    """Evaluate the pod template at *path*."""
    meta, spec = template.metadata or metadata.NO_METADATA, template.spec or NO_SPEC
    errors = metadata.validate_labels(meta.labels, f"{path}.labels")
    errors += metadata.validate_annotations(meta.annotations, f"{path}.annotations")
    return errors + pod_spec.validate(spec, f"{path}.spec", claimed_volumes=claimed_volumes)


def _validate_endless(spec: PodSpec) -> list[FieldError]:
    """Refuse pods that end: there would be new ones for ever."""
    errors = []
    path = "spec.template.spec"
    if spec.restart_policy in ("OnFailure", "Never"):
        here = f"{path}.restartPolicy"
        errors.append(field_errors.not_supported(here, spec.restart_policy, ("Always",)))
    if spec.active_deadline_seconds is not None:
        here = f"{path}.activeDeadlineSeconds"
        errors.append(
            field_errors.forbidden(here, "activeDeadlineSeconds in ReplicaSet is not Supported")
        )
    return errors
