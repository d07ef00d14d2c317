"""Jobs: pods that end. The rules of pkg/apis/batch/validation and of the strategy upstream."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from berth.cluster.resources import Object, Strategy, section
from berth.cluster.schemas import builtin
from berth.cluster.schemas.go_value import go_value
from berth.cluster.schemas.types import Schema
from berth.cluster.strategies import job_status
from berth.cluster.strategies.by_schema import of_schema
from berth.cluster.strategies.constraint_table import CONSTRAINTS
from berth.cluster.strategies.constraints import selector as check_selector
from berth.cluster.strategies.syntax import dns1123_label
from berth.cluster.strategies.workload_constraints import labels_of, selects
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_NAME: Final = "batch.kubernetes.io/job-name"
OLD_LABELS: Final = {CONTROLLER_UID: "controller-uid", JOB_NAME: "job-name"}
"""How the labels were called before they had a prefix; both are set."""

SPEC: Final = "io.k8s.api.batch.v1.JobSpec"
UNLIMITED: Final = 2**31 - 1


def default(job: Object) -> None:
    """Fill in what depends on other fields, and have a Job be labelled like its pods."""
    spec, meta = job["spec"], section(job, "metadata")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    per_index = spec.get("backoffLimitPerIndex") is not None
    policy = spec.get("podFailurePolicy")
    for field, value in (
        ("parallelism", 1),
        ("backoffLimit", UNLIMITED if per_index else 6),
        ("completionMode", "NonIndexed"),
        ("suspend", False),
        ("podReplacementPolicy", "TerminatingOrFailed" if policy is None else "Failed"),
        ("manualSelector", False),
    ):
        spec.setdefault(field, value)
    labels = labels_of(spec["template"])
    if labels and not meta.get("labels"):
        meta["labels"] = dict(labels)


def prepare(new: Object, old: Object | None) -> None:
    """Have a new Job select the pods that it makes, by its uid."""
    if old is not None or new["spec"].get("manualSelector"):
        return
    meta, spec = new["metadata"], new["spec"]
    labels = section(spec, "template", "metadata", "labels")
    for label, value in ((CONTROLLER_UID, meta["uid"]), (JOB_NAME, meta["name"])):
        labels.setdefault(label, value)
        labels.setdefault(OLD_LABELS[label], value)
    section(spec, "selector", "matchLabels")[CONTROLLER_UID] = meta["uid"]
    if not meta.get("labels"):
        meta["labels"] = dict(labels)


def check(obj: Object) -> list[FieldError]:
    """Evaluate a Job."""
    spec = obj.get("spec") or {}
    errors = [*_generated_labels(obj), *_selection(spec)]
    completions = spec.get("completions") or 0
    if spec.get("completionMode") == "Indexed" and completions > 0:
        name = (obj.get("metadata") or {}).get("name") or ""
        hostname = f"{name}-{completions - 1}"
        if dns1123_label(hostname):
            detail = f"will not able to create pod with invalid DNS label: {hostname}"
            errors.append(field_errors.invalid("metadata.name", name, detail))
    return errors


def job(release: str) -> Strategy:
    """Return the strategy of a server of *release*."""
    schema = builtin.schema("io.k8s.api.batch.v1.Job", release)
    return of_schema(
        schema,
        namespaced=True,
        default=default,
        prepare=prepare,
        check=check,
        check_update=partial(_check_update, builtin.schema(SPEC, release)),
        check_status=job_status.check,
        whole_first=True,
        generation=True,
        status=True,
    )


def _check_update(schema: Schema, new: Object, old: Object) -> list[FieldError]:
    """Refuse to change what the pods of a Job are, once it may have some."""
    unchanged = partial(_immutable, schema)
    after, before = new.get("spec") or {}, old.get("spec") or {}
    if after == before:
        return []
    errors = [*CONSTRAINTS.violations(schema, after, "spec"), *_selection(after)]  # once more
    errors += _completions(schema, after, before)
    errors += unchanged("spec.selector", after.get("selector"), before.get("selector"))
    template = before.get("template") or {}
    if _may_be_redirected(old):
        template = _redirected(template, after.get("template") or {})
    errors += unchanged("spec.template", after.get("template"), template)
    for field in (
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ):
        errors += unchanged(f"spec.{field}", after.get(field), before.get(field))
    return errors


def is_gang(spec: Object) -> bool:
    """Whether all pods of a Job run at once, and it does not say their group itself (KEP-5547)."""
    pod = (spec.get("template") or {}).get("spec") or {}
    parallelism = spec.get("parallelism") or 1
    return (
        spec.get("completionMode") == "Indexed"
        and parallelism > 1
        and spec.get("completions") == parallelism
        and pod.get("schedulingGroup") is None
    )


def _generated_labels(obj: Object) -> Iterator[FieldError]:
    """Evaluate the labels and the selector that the server sets."""
    spec, meta = obj.get("spec") or {}, obj.get("metadata") or {}
    if spec.get("manualSelector") or not spec.get("selector"):
        return
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    wanted: dict[str, str] = {}
    for label, field in ((CONTROLLER_UID, "uid"), (JOB_NAME, "name")):
        for key in (OLD_LABELS[label], label):
            wanted[key] = value = meta.get(field) or ""
            path = f"spec.template.metadata.labels[{key}]"
            if key not in labels:
                yield field_errors.required(path, f"must be '{value}'")
            elif labels[key] != value:
                yield field_errors.invalid(path, labels, f"must be '{value}'")
    if not selects(spec["selector"], wanted):
        detail = "`selector` not auto-generated"
        yield field_errors.invalid("spec.selector", spec["selector"], detail)


def _selection(spec: Object) -> Iterator[FieldError]:
    value, labels = spec.get("selector"), labels_of(spec.get("template"))
    complaints = check_selector(value, "spec.selector")
    if value is None:
        yield field_errors.required("spec.selector")
    yield from complaints
    if not complaints and not selects(value, labels or {}):
        detail = "`selector` does not match template `labels`"
        yield field_errors.invalid("spec.template.metadata.labels", labels, detail)


def _completions(schema: Schema, after: Object, before: Object) -> Iterator[FieldError]:
    """Evaluate a change of completions: an Indexed Job may grow and shrink as a whole."""
    new, old = after.get("completions"), before.get("completions")
    if after.get("completionMode") != "Indexed":
        yield from _immutable(schema, "spec.completions", new, old)
    elif new not in (None, old) and new != after.get("parallelism"):
        detail = "can only be modified in tandem with spec.parallelism"
        yield field_errors.invalid("spec.completions", new, detail)


def _immutable(schema: Schema, path: str, new: Any, old: Any) -> Iterator[FieldError]:
    if new != old:
        field = schema.fields[path.removeprefix("spec.")]
        yield field_errors.invalid(path, go_value(field.type, new), "field is immutable")


def _may_be_redirected(job: Object) -> bool:
    """Whether it is suspended and has no pods, so that a queue may say where they are to run."""
    status = job.get("status") or {}
    if not (job.get("spec") or {}).get("suspend") or status.get("active"):
        return False
    is_known_as_suspended = any(
        condition.get("type") == "Suspended" and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )
    return is_known_as_suspended or not status.get("startTime")


def _redirected(old: Object, new: Object) -> Object:
    """Return template *old* with what queues may change (KEP-2926, KEP-5440) as in *new*."""
    meta = _with(old.get("metadata") or {}, new.get("metadata") or {}, "annotations", "labels")
    before, after = old.get("spec") or {}, new.get("spec") or {}
    spec = _with(before, after, "nodeSelector", "tolerations", "schedulingGates")
    affinity = _with(before.get("affinity") or {}, after.get("affinity") or {}, "nodeAffinity")
    spec.pop("affinity", None)
    if affinity or after.get("affinity") is not None:
        spec["affinity"] = affinity
    for field in ("containers", "initContainers"):
        if spec.get(field):
            resources = {each.get("name"): each for each in after.get(field) or ()}
            spec[field] = [
                _with(each, resources.get(each.get("name"), each), "resources")
                for each in spec[field]
            ]
    return {**old, "metadata": meta, "spec": spec}


def _with(old: Object, new: Object, *fields: str) -> Object:
    """Return *old* with *fields* as in *new*."""
    kept = {key: value for key, value in old.items() if key not in fields}
    return {**kept, **{key: new[key] for key in fields if key in new}}
