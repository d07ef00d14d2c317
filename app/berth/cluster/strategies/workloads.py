"""Workloads: what the server counts, copies and keeps, beyond defaults and constraints."""

from typing import Any, Final

from berth.cluster.resources import Object, section
from berth.cluster.strategies import syntax
from berth.cluster.strategies.constraints import text
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
DAEMON_SET_COUNTS: Final = (
    "currentNumberScheduled",
    "desiredNumberScheduled",
    "numberMisscheduled",
    "numberReady",
)
MUTABLE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
"""Of StatefulSets."""
IMMUTABLE: Final = (
    "updates to statefulset spec for fields other than "
    + ", ".join(f"'{field}'" for field in MUTABLE[:-1])
    + f" and '{MUTABLE[-1]}' are forbidden"
)
LONGEST_CRON_JOB_NAME: Final = 52
"""The controller appends eleven characters to it for the name of a Job."""


def deployment_wanted(deployment: Object) -> Any:
    """Annotations count as what is wanted: they are copied to ReplicaSets."""
    annotations = (deployment.get("metadata") or {}).get("annotations") or {}
    return deployment.get("spec"), annotations


def default_daemon_set(daemon_set: Object) -> None:
    section(daemon_set, "metadata", "annotations").setdefault(TEMPLATE_GENERATION, "0")


def prepare_daemon_set(new: Object, old: Object | None) -> None:
    """Set the annotation that counts changes of the template, as the server has always done."""
    generation = 1
    if old is not None:
        annotations = (old.get("metadata") or {}).get("annotations") or {}
        before: str = annotations.get(TEMPLATE_GENERATION) or ""
        generation = int(before) if before.isdecimal() else 0
        generation += (old.get("spec") or {}).get("template") != new["spec"].get("template")
    section(new, "metadata", "annotations")[TEMPLATE_GENERATION] = str(generation)


def default_replication_controller(controller: Object) -> None:
    """Select by the template's labels, and be labelled like it, if nothing else is said."""
    spec, meta = controller["spec"], section(controller, "metadata")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        spec["selector"] = spec.get("selector") or dict(labels)
        meta["labels"] = meta.get("labels") or dict(labels)


def check_stateful_set_update(new: Object, old: Object) -> list[FieldError]:
    kept, before = (
        {field: value for field, value in each["spec"].items() if field not in MUTABLE}
        for each in (new, old)
    )
    return [field_errors.forbidden("spec", IMMUTABLE)] if kept != before else []


def check_stateful_set_create(stateful_set: Object) -> list[FieldError]:
    name = stateful_set["spec"].get("serviceName")
    return list(text(syntax.dns1123_label)(name, "spec.serviceName"))


def check_cron_job_create(cron_job: Object) -> list[FieldError]:
    """Evaluate the name, which may have been longer once."""
    name = (cron_job.get("metadata") or {}).get("name") or ""
    if len(name) <= LONGEST_CRON_JOB_NAME:
        return []
    detail = f"must be no more than {LONGEST_CRON_JOB_NAME} characters"
    return [field_errors.invalid("metadata.name", name, detail)]
