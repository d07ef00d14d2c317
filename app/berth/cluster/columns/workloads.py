"""Workloads: how many pods are wanted, and how many there are."""

from berth.cluster.columns.cells import (
    NONE,
    UNKNOWN,
    UNSET,
    Cells,
    Since,
    dig,
    labels_text,
    length,
    listed,
    selector_text,
    text,
)
from berth.cluster.resources import Object
from berth.cluster.times import seconds_of
from berth.runtime.duration import human_duration


def count(obj: Object, path: str) -> int:
    """Return the number at *path*; what nobody reported is zero."""
    return dig(obj, path) or 0


def of_containers(obj: Object, key: str) -> str:
    """Return one field of every container of the pod template."""
    return ",".join(each.get(key, "") for each in listed(obj, "spec.template.spec.containers"))


POD_CELLS: Cells = {
    "Containers": lambda obj: of_containers(obj, "name"),
    "Images": lambda obj: of_containers(obj, "image"),
}

TEMPLATE_CELLS: Cells = {
    **POD_CELLS,
    "Selector": lambda obj: selector_text(dig(obj, "spec.selector")) or NONE,
}

DEPLOYMENT_CELLS: Cells = {
    "Ready": lambda obj: f"{count(obj, 'status.readyReplicas')}/{count(obj, 'spec.replicas')}",
    "Up-to-date": lambda obj: count(obj, "status.updatedReplicas"),
    "Available": lambda obj: count(obj, "status.availableReplicas"),
    **TEMPLATE_CELLS,
    "Selector": lambda obj: selector_text(dig(obj, "spec.selector")),
}

REPLICA_CELLS: Cells = {
    "Desired": lambda obj: count(obj, "spec.replicas"),
    "Current": lambda obj: count(obj, "status.replicas"),
    "Ready": lambda obj: count(obj, "status.readyReplicas"),
}

REPLICA_SET_CELLS: Cells = {
    **REPLICA_CELLS,
    **TEMPLATE_CELLS,
}

REPLICATION_CONTROLLER_CELLS: Cells = {
    **REPLICA_CELLS,
    **POD_CELLS,
    "Selector": lambda obj: labels_text(dig(obj, "spec.selector")) or NONE,
}

STATEFUL_SET_CELLS: Cells = {
    "Ready": lambda obj: f"{count(obj, 'status.readyReplicas')}/{count(obj, 'spec.replicas')}",
    **POD_CELLS,
}

DAEMON_SET_CELLS: Cells = {
    "Desired": lambda obj: count(obj, "status.desiredNumberScheduled"),
    "Current": lambda obj: count(obj, "status.currentNumberScheduled"),
    "Ready": lambda obj: count(obj, "status.numberReady"),
    "Up-to-date": lambda obj: count(obj, "status.updatedNumberScheduled"),
    "Available": lambda obj: count(obj, "status.numberAvailable"),
    "Node Selector": lambda obj: labels_text(dig(obj, "spec.template.spec.nodeSelector")) or NONE,
    **TEMPLATE_CELLS,
}


def job_status(job: Object) -> str:
    """Return what has become of a job, in a word."""
    conditions = {
        each.get("type")
        for each in listed(job, "status.conditions")
        if each.get("status") == "True"
    }
    if "Complete" in conditions:
        return "Complete"
    if "Failed" in conditions:
        return "Failed"
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    other = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((each for each in other if each in conditions), "Running")


def completions(job: Object) -> str:
    """Return ``1/3``: pods that have succeeded, of those that must."""
    done, wanted = count(job, "status.succeeded"), dig(job, "spec.completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = count(job, "spec.parallelism")
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def duration(job: Object) -> str | Since:
    """Return how long a job took, or has been running."""
    started, ended = dig(job, "status.startTime"), dig(job, "status.completionTime")
    if not started:
        return ""
    return human_duration(seconds_of(ended) - seconds_of(started)) if ended else Since(started)


JOB_CELLS: Cells = {
    "Status": job_status,
    "Completions": completions,
    "Duration": duration,
    **TEMPLATE_CELLS,
}


def of_job_containers(cron_job: Object, key: str) -> str:
    found = listed(cron_job, "spec.jobTemplate.spec.template.spec.containers")
    return ",".join(each.get(key, "") for each in found)


def last_schedule(cron_job: Object) -> str | Since:
    last = dig(cron_job, "status.lastScheduleTime")
    return Since(last) if last else NONE


CRON_JOB_CELLS: Cells = {
    "Schedule": text("spec.schedule"),
    "Timezone": text("spec.timeZone", empty=NONE),
    "Suspend": lambda obj: {True: "True", False: "False"}.get(dig(obj, "spec.suspend"), UNSET),
    "Active": length("status.active"),
    "Last Schedule": last_schedule,
    "Containers": lambda obj: of_job_containers(obj, "name"),
    "Images": lambda obj: of_job_containers(obj, "image"),
    "Selector": lambda obj: selector_text(dig(obj, "spec.jobTemplate.spec.selector")) or NONE,
}


def scale_target(autoscaler: Object) -> str:
    """Return ``Deployment/web``."""
    target = dig(autoscaler, "spec.scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def metrics(autoscaler: Object) -> str:
    """Return ``cpu: <unknown>/80%``: what is measured, and what it should be."""
    found = []
    current = listed(autoscaler, "status.currentMetrics")
    for index, metric in enumerate(listed(autoscaler, "spec.metrics")):
        source = metric.get("type", "")
        field = source[:1].lower() + source[1:]
        measured = (current[index] if index < len(current) else {}).get(field) or {}
        wanted = metric.get(field) or {}
        name = wanted.get("name") or dig(wanted, "metric.name") or ""
        target, value = wanted.get("target") or {}, measured.get("current") or {}
        if target.get("averageUtilization") is not None:
            now = value.get("averageUtilization")
            found.append(
                f"{name}: {UNKNOWN if now is None else f'{now}%'}/{target['averageUtilization']}%"
            )
            continue
        average = "averageValue" in target
        key = "averageValue" if average else "value"
        suffix = " (avg)" if average else ""
        prefix = f"{name}: " if source in ("Resource", "ContainerResource") else ""
        found.append(f"{prefix}{value.get(key, UNKNOWN)}/{target.get(key, '')}{suffix}")
    if not found:
        return NONE
    if len(found) > MOST_METRICS:
        return f"{', '.join(found[:MOST_METRICS])} + {len(found) - MOST_METRICS} more..."
    return ", ".join(found)


MOST_METRICS = 2

AUTOSCALER_CELLS: Cells = {
    "Reference": scale_target,
    "Targets": metrics,
    "MinPods": text("spec.minReplicas", empty="<unset>"),
    "MaxPods": lambda obj: count(obj, "spec.maxReplicas"),
    "Replicas": lambda obj: count(obj, "status.currentReplicas"),
}
