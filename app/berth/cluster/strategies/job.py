"""Jobs: pods that end. The rules of pkg/apis/batch/validation and of the strategy upstream."""

import re
from collections.abc import Iterator
from typing import Any, Final

from berth.cluster.resources import Object
from berth.cluster.strategies import job_policies, metadata, selectors, workload
from berth.cluster.strategies.metadata import ObjectMeta
from berth.cluster.strategies.selectors import LabelSelector
from berth.cluster.strategies.shape import Shape, section, validated
from berth.cluster.strategies.syntax import dns1123_label, dns1123_subdomain
from berth.cluster.strategies.workload import PodTemplate
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects import pod_defaults

CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_NAME: Final = "batch.kubernetes.io/job-name"
OLD_LABELS: Final = {CONTROLLER_UID: "controller-uid", JOB_NAME: "job-name"}
"""How the labels were called before they had a prefix; both are set."""

COUNTS: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
HTTP_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", re.ASCII)
LONGEST_MANAGER: Final = 63
UNLIMITED: Final = 2**31 - 1
MOST_PARALLEL: Final = 100_000
MANY_COMPLETIONS: Final = 100_000
MOST_OF_MANY: Final = 10_000
"""Of parallelism and failed indexes, where there are many completions and limits per index."""


class JobSpec(Shape, frozen=True):
    selector: LabelSelector | None = None
    template: PodTemplate | None = None


class Job(Shape, frozen=True):
    metadata: ObjectMeta | None = None
    spec: JobSpec | None = None


def default(obj: Object) -> None:
    spec = section(obj, "spec")
    default_spec(spec)
    labels, meta = spec["template"]["metadata"].get("labels"), section(obj, "metadata")
    if labels and not meta.get("labels"):
        meta["labels"] = dict(labels)


def default_spec(spec: Object) -> None:
    """Fill in the spec of a Job."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    per_index = spec.get("backoffLimitPerIndex") is not None
    spec.setdefault("backoffLimit", UNLIMITED if per_index else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    policy = spec.get("podFailurePolicy")
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed" if policy is None else "Failed")
    spec.setdefault("manualSelector", False)
    default_failure_policy(spec)
    pod_defaults.default_template(section(spec, "template", "spec"))
    section(spec, "template", "metadata")


def default_failure_policy(spec: Object) -> None:
    """Have a condition of a pod that a rule is about be true, unless it says otherwise."""
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern.setdefault("status", "True")


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
    errors = [*_generated_labels(obj), *check_spec(spec, "spec"), *_selection(obj, None)]
    completions = spec.get("completions") or 0
    if spec.get("completionMode") == "Indexed" and completions > 0:
        name = (obj.get("metadata") or {}).get("name") or ""
        hostname = f"{name}-{completions - 1}"
        if dns1123_label(hostname):
            detail = f"will not able to create pod with invalid DNS label: {hostname}"
            errors.append(field_errors.invalid("metadata.name", name, detail))
    return errors


def check_spec(spec: Object, path: str) -> list[FieldError]:
    """Evaluate the spec of a Job, or of the Jobs of a CronJob, but for the selector."""
    errors = [
        field_errors.invalid(f"{path}.{field}", spec[field], "must be greater than or equal to 0")
        for field in COUNTS
        if spec.get(field) is not None and spec[field] < 0
    ]
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        detail = "when maxFailedIndexes is specified"
        errors.append(field_errors.required(f"{path}.backoffLimitPerIndex", detail))
    errors += _manager(spec.get("managedBy"), f"{path}.managedBy")
    errors += _indexing(spec, path)
    errors += job_policies.check_failure_policy(spec, path)
    errors += job_policies.check_success_policy(spec, path)
    errors += _template({"template": spec.get("template")}, path)
    errors += _restart_policy(spec, path)
    return errors


def check_update(new: Object, old: Object) -> list[FieldError]:
    """Refuse to change what the pods of a Job are, once it may have some."""
    after, before = new.get("spec") or {}, old.get("spec") or {}
    errors = list(_completions(after, before))
    errors += _immutable("spec.selector", after.get("selector"), before.get("selector"))
    template = before.get("template") or {}
    if _may_be_redirected(old):
        template = _redirected(template, after.get("template") or {})
    errors += _immutable("spec.template", after.get("template"), template)
    for field in (
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ):
        errors += _immutable(f"spec.{field}", after.get(field), before.get(field))
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
    yield from _is_generated(obj, wanted)


def _is_generated(obj: Object, wanted: dict[str, str]) -> list[FieldError]:
    def check_selector(job: Job, _old: Job | None) -> list[FieldError]:
        selector = (job.spec or JobSpec()).selector
        if selector is None or selectors.matches(selector, wanted):
            return []
        return [field_errors.invalid("spec.selector", selector, "`selector` not auto-generated")]

    return validated(Job, check_selector)(obj, None)


def _select(job: Job, _old: Job | None) -> list[FieldError]:
    spec = job.spec or JobSpec()
    if spec.selector is None:
        return [field_errors.required("spec.selector")]
    errors = selectors.validate(spec.selector, "spec.selector")
    template = spec.template or PodTemplate()
    labels = (template.metadata or metadata.NO_METADATA).labels or {}
    if not errors and not selectors.matches(spec.selector, labels):
        path, detail = (
            "spec.template.metadata.labels",
            "`selector` does not match template `labels`",
        )
        errors.append(field_errors.invalid(path, labels, detail))
    return errors


_selection = validated(Job, _select)


def _template(spec: Object, path: str) -> list[FieldError]:
    def check_template(job: JobSpec, _old: JobSpec | None) -> list[FieldError]:
        return workload.validate_template(job.template or PodTemplate(), f"{path}.template")

    return validated(JobSpec, check_template)(spec, None)


def _restart_policy(spec: Object, path: str) -> Iterator[FieldError]:
    here = f"{path}.template.spec.restartPolicy"
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
    if policy in (None, "", "Always"):
        yield field_errors.required(here, 'valid values: "OnFailure", "Never"')
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        yield field_errors.invalid(here, policy, detail)


def _manager(name: str | None, path: str) -> Iterator[FieldError]:
    """Evaluate the name of the controller that runs a Job: ``example.com/queue``."""
    if name is None:
        return
    host, _, rest = name.partition("/")
    if not name:
        yield field_errors.required(path)
    elif not host or not rest:
        detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
        yield field_errors.invalid(path, name, detail)
    else:
        for text in dns1123_subdomain(host):
            yield field_errors.invalid(path, host, text)
        if not HTTP_PATH.fullmatch(rest):
            detail = f"Invalid path (regex used for validation is '{HTTP_PATH.pattern}')"
            yield field_errors.invalid(path, rest, detail)
    if len(name) > LONGEST_MANAGER:
        yield field_errors.too_long(path, LONGEST_MANAGER)


def _indexing(spec: Object, path: str) -> Iterator[FieldError]:
    """Evaluate what has a meaning only, or has limits, where completions have an index."""
    if spec.get("completionMode", "NonIndexed") == "NonIndexed":
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(field) is not None:
                detail = "requires indexed completion mode"
                yield field_errors.invalid(f"{path}.{field}", spec[field], detail)
        return
    completions, parallelism = spec.get("completions"), spec.get("parallelism") or 0
    failed = spec.get("maxFailedIndexes")
    if completions is None:
        yield field_errors.required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism > MOST_PARALLEL:
        detail = f"must be less than or equal to {MOST_PARALLEL} when completion mode is Indexed"
        yield field_errors.invalid(f"{path}.parallelism", parallelism, detail)
    if failed is not None:
        here = f"{path}.maxFailedIndexes"
        if completions is not None and failed > completions:
            detail = "must be less than or equal to completions"
            yield field_errors.invalid(here, failed, detail)
        if failed > MOST_PARALLEL:
            detail = f"must be less than or equal to {MOST_PARALLEL}"
            yield field_errors.invalid(here, failed, detail)
    if (completions or 0) > MANY_COMPLETIONS and spec.get("backoffLimitPerIndex") is not None:
        if failed is None:
            detail = f"must be specified when completions is above {MANY_COMPLETIONS}"
            yield field_errors.required(f"{path}.maxFailedIndexes", detail)
        for field, number in (("parallelism", parallelism), ("maxFailedIndexes", failed or 0)):
            if number > MOST_OF_MANY:
                detail = (
                    f"must be less than or equal to {MOST_OF_MANY} when completions are above "
                    f"{MANY_COMPLETIONS} and used with backoff limit per index"
                )
                yield field_errors.invalid(f"{path}.{field}", number, detail)


def _completions(after: Object, before: Object) -> Iterator[FieldError]:
    """Evaluate a change of completions: an Indexed Job may grow and shrink as a whole."""
    new, old = after.get("completions"), before.get("completions")
    if after.get("completionMode") != "Indexed":
        yield from _immutable("spec.completions", new, old)
    elif new not in (None, old) and new != after.get("parallelism"):
        detail = "can only be modified in tandem with spec.parallelism"
        yield field_errors.invalid("spec.completions", new, detail)


def _immutable(path: str, new: Any, old: Any) -> Iterator[FieldError]:
    if new != old:
        yield field_errors.invalid(path, new, "field is immutable")


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
