"""Jobs and CronJobs: pods that end, once or on a schedule."""

from berth import field_errors
from berth.cluster.resources import Object
from berth.cluster.strategies.shape import section
from berth.field_errors import FieldError
from berth.objects import pod_defaults

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
OLD_LABELS = {CONTROLLER_UID: "controller-uid", JOB_NAME: "job-name"}
"""How the labels were called before they had a prefix; both are set."""

RESTART_POLICIES = ("Never", "OnFailure")


def default_job(obj: Object) -> None:
    default_job_spec(section(obj, "spec"))


def default_job_spec(spec: Object) -> None:
    """Fill in the spec of a Job, or of the Jobs of a CronJob."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    if spec.get("backoffLimitPerIndex") is None:
        spec.setdefault("backoffLimit", 6)
    else:
        spec.setdefault("backoffLimit", 2**31 - 1)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    has_policy = spec.get("podFailurePolicy") is not None
    spec.setdefault("podReplacementPolicy", "Failed" if has_policy else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)
    pod_defaults.default_template(section(spec, "template", "spec"))
    section(spec, "template", "metadata")


def prepare_job(new: Object, old: Object | None) -> None:
    """Have a new Job select the pods that it makes, by its uid."""
    if old is not None or new["spec"].get("manualSelector"):
        return
    meta, spec = new["metadata"], new["spec"]
    labels = section(spec, "template", "metadata", "labels")
    for label, value in ((CONTROLLER_UID, meta["uid"]), (JOB_NAME, meta["name"])):
        labels.setdefault(label, value)
        labels.setdefault(OLD_LABELS[label], value)
    spec.setdefault("selector", {"matchLabels": {CONTROLLER_UID: meta["uid"]}})


def check_job(obj: Object) -> list[FieldError]:
    return check_job_spec(obj.get("spec") or {}, "spec")


def check_job_spec(spec: Object, path: str) -> list[FieldError]:
    """Evaluate the numbers, and that the pods may end."""
    errors = []
    for field in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds"):
        value = spec.get(field)
        if value is not None and value < 0:
            detail = "must be greater than or equal to 0"
            errors.append(field_errors.invalid(f"{path}.{field}", value, detail))
    pod = (spec.get("template") or {}).get("spec") or {}
    policy = pod.get("restartPolicy")
    here = f"{path}.template.spec"
    if policy not in RESTART_POLICIES:
        valid = ", ".join(f'"{each}"' for each in ("OnFailure", "Never"))
        detail = f"Required value: valid values: {valid}"
        if policy in (None, "", "Always"):
            text = f'Unsupported value: "{policy or ""}": supported values: {valid}'
            reason = "FieldValueNotSupported" if policy else "FieldValueRequired"
            detail = text if policy else detail
            errors.append(FieldError(f"{here}.restartPolicy", reason, detail))
        else:
            errors.append(
                field_errors.not_supported(f"{here}.restartPolicy", policy, RESTART_POLICIES)
            )
    if not pod.get("containers"):
        errors.append(field_errors.required(f"{here}.containers"))
    return errors


def check_job_update(new: Object, old: Object) -> list[FieldError]:
    """Refuse to change what the pods of a Job are, once it may have some."""
    after, before = new.get("spec") or {}, old.get("spec") or {}
    fields = ["selector", "completionMode"]
    if not before.get("suspend"):
        fields.append("template")
    if before.get("completionMode") != "Indexed":
        fields.append("completions")
    return [
        field_errors.invalid(f"spec.{field}", after.get(field), "field is immutable")
        for field in fields
        if after.get(field) != before.get(field)
    ]


def default_cron_job(obj: Object) -> None:
    spec = section(obj, "spec")
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    section(spec, "jobTemplate", "metadata")
    template = section(spec, "jobTemplate", "spec", "template")
    pod_defaults.default_template(section(template, "spec"))
    section(template, "metadata")


def check_cron_job(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = []
    if not spec.get("schedule"):
        errors.append(field_errors.required("spec.schedule"))
    path = "spec.jobTemplate.spec"
    return errors + check_job_spec((spec.get("jobTemplate") or {}).get("spec") or {}, path)
