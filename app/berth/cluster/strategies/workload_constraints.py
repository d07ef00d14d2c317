"""The constraints of workloads (pkg/apis/apps, batch): a part of :mod:`.constraint_table`."""

import re
from collections.abc import Iterator
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from berth.cluster import percent
from berth.cluster.cron import LONGEST, Schedule
from berth.cluster.resources import Object
from berth.cluster.schemas import builtin
from berth.cluster.strategies import job_policies, selectors
from berth.cluster.strategies.constraints import (
    ITSELF,
    If,
    Owners,
    Rule,
    Table,
    Within,
    amount,
    anything,
    at_least,
    at_most_all,
    counted,
    domain_path,
    empty,
    known,
    one_of,
    present,
    required,
    selector,
    shown,
)
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

Errors = Iterator[FieldError]
_Fields: TypeAlias = dict[str, tuple[Rule, ...]]

MOST_PARALLEL: Final = 100_000
MANY_COMPLETIONS: Final = 100_000
MOST_OF_MANY: Final = 10_000
"""Of parallelism and failed indexes, where there are many completions and limits per index."""
LONGEST_MANAGER: Final = 63

_ZONE_PART: Final = re.compile(r"(?!-)[A-Za-z._0-9+-]{1,14}", re.ASCII)
_COUNT: Final = at_least(0)


# Selectors and templates.


def _selector(value: Object | None, path: str, kind: str, unreadable: str | None) -> Errors:
    """Evaluate the selector of a workload, which may not be empty; *kind* is for the message.

    *unreadable* is said of one that cannot be used.
    """
    complaints = selector(value, path)
    yield from complaints
    if value is not None and not (value.get("matchLabels") or value.get("matchExpressions")):
        yield field_errors.invalid(path, value, f"empty selector is invalid for {kind}")
    elif complaints and unreadable is not None:
        yield field_errors.invalid(path, in_order(value), unreadable)


def in_order(value: Any) -> Any:
    """Return JSON as Go shows it, where maps are sorted: here of labels."""
    if isinstance(value, dict) and value.get("matchLabels"):
        return {**value, "matchLabels": dict(sorted(value["matchLabels"].items()))}
    return value


def selects(value: Object | None, labels: dict[str, str]) -> bool:
    """Whether a selector, which can be used, selects *labels*; one that is missing selects none."""
    if value is None:
        return False
    return selectors.matches(msgspec.convert(value, selectors.LabelSelector), labels)


def labels_of(template: Object | None) -> Any:
    return ((template or {}).get("metadata") or {}).get("labels")


def _selected(template: Object | None, path: str, owners: Owners) -> Errors:
    """Refuse a template that its selector, if it can be used, does not select."""
    value, labels = owners[-1].get("selector"), labels_of(template)
    if not selector(value, path) and not selects(value, labels or {}):
        detail = "`selector` does not match template `labels`"
        yield field_errors.invalid(f"{path}.metadata.labels", labels, detail)


def _endless(kind: str) -> Rule:
    """Refuse pods that end: there would be new ones for ever."""

    def rule(workload: Object, path: str) -> Errors:
        spec, here = (workload.get("template") or {}).get("spec") or {}, f"{path}.template.spec"
        policy, seconds = spec.get("restartPolicy"), spec.get("activeDeadlineSeconds")
        if policy not in (None, "", "Always"):
            yield field_errors.not_supported(f"{here}.restartPolicy", policy, ("Always",))
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        yield from empty(detail)(seconds, f"{here}.activeDeadlineSeconds")

    return rule


def _workload(kind: str, name: str, unreadable: str = "invalid label selector") -> _Fields:
    """Return the rules of ``selector`` and ``template`` of a workload, called *name* to the user.

    Without a selector that can be used, nothing is said of its template.
    """
    return {
        "selector": (
            present(),
            lambda value, path: _selector(value, path, name, unreadable),
        ),
        "template": (If(_is_usable), Within(_selected), Within(_claim_names)),
        ITSELF: (_endless(kind),),
    }


def _claim_names(_template: Object | None, path: str, owners: Owners) -> Errors:
    """Refuse claims without a name, which become volumes of the pods."""
    for index, claim in enumerate(owners[-1].get("volumeClaimTemplates") or ()):
        if not (claim.get("metadata") or {}).get("name"):
            here = f"{path}.spec.volumes[{index}]"
            yield field_errors.required(f"{here}.persistentVolumeClaim.claimName")
            yield field_errors.required(f"{here}.name")


def _is_usable(_template: Object | None, owners: Owners) -> bool:
    return not selector(owners[-1].get("selector"), "")


def _selects_map(template: Object | None, path: str, owners: Owners) -> Errors:
    wanted, labels = owners[-1].get("selector") or {}, labels_of(template) or {}
    if template is not None and not wanted.items() <= labels.items():
        detail = "`selector` does not match template `labels`"
        yield field_errors.invalid(f"{path}.metadata.labels", labels_of(template), detail)


# How to move from one template to the next.


def _number(value: int | str | None) -> int:
    """Return the number of a valid amount, percent or not."""
    return percent.number_of(value) if isinstance(value, str) else value or 0


def _deployment_strategy(strategy: Object, path: str) -> Errors:
    kind, rolling, here = (
        strategy.get("type") or "", strategy.get("rollingUpdate"), f"{path}.rollingUpdate",
    )  # fmt: skip
    if kind == "Recreate":
        yield from empty("may not be specified when strategy `type` is 'Recreate'")(rolling, here)
    elif kind == "RollingUpdate":
        yield from present("this should be defaulted and never be nil")(rolling, here)
        yield from _rolling_deployment(rolling or {}, here)
    else:
        yield field_errors.not_supported(path, kind, ("Recreate", "RollingUpdate"))


def _rolling_deployment(rolling: Object, path: str) -> Errors:
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    here = f"{path}.maxUnavailable"
    errors = [*amount(unavailable, here), *amount(surge, f"{path}.maxSurge")]
    yield from errors
    if not errors and _number(unavailable) == 0 == _number(surge):
        yield field_errors.invalid(here, unavailable, "may not be 0 when `maxSurge` is 0")
    elif not errors:
        yield from at_most_all(unavailable, here)


def _deadline(seconds: int | None, path: str, owners: Owners) -> Errors:
    yield from _COUNT(seconds, path)
    if seconds is not None and seconds <= (owners[-1].get("minReadySeconds") or 0):
        yield field_errors.invalid(path, seconds, "must be greater than minReadySeconds")


def _daemon_strategy(strategy: Object, path: str) -> Errors:
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate")
    if kind == "RollingUpdate":
        yield from present()(rolling, f"{path}.rollingUpdate")
        yield from _rolling_daemon(rolling or {}, f"{path}.rollingUpdate")
    elif kind != "OnDelete":
        schema = builtin.schema("io.k8s.api.apps.v1.DaemonSetUpdateStrategy")
        yield field_errors.not_supported(
            path, shown(schema, strategy), ("RollingUpdate", "OnDelete")
        )


def _rolling_daemon(rolling: Object, path: str) -> Errors:
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    errors: list[FieldError] = []
    for field in ("maxUnavailable", "maxSurge"):
        errors += amount(rolling.get(field), f"{path}.{field}")
    for field in ("maxUnavailable", "maxSurge"):
        errors += at_most_all(rolling.get(field), f"{path}.{field}")
    yield from errors
    if errors:
        return
    if _number(unavailable) and _number(surge):
        detail = "may not be set when maxUnavailable is non-zero"
        yield field_errors.invalid(f"{path}.maxSurge", surge, detail)
    elif not _number(unavailable) and not _number(surge):
        yield field_errors.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _managed(policy: str | None, path: str) -> Errors:
    if policy not in ("OrderedReady", "Parallel"):
        yield field_errors.invalid(path, policy or "", "must be 'OrderedReady' or 'Parallel'")


def _stateful_strategy(strategy: Object, path: str) -> Errors:
    schema = builtin.schema("io.k8s.api.apps.v1.StatefulSetUpdateStrategy")
    value, kind, rolling = (
        shown(schema, strategy), strategy.get("type"), strategy.get("rollingUpdate"),
    )  # fmt: skip
    here = f"{path}.rollingUpdate"
    if kind not in ("RollingUpdate", "OnDelete"):
        yield field_errors.invalid(path, value, "must be 'RollingUpdate' or 'OnDelete'")
    elif kind == "OnDelete" and rolling is not None:
        detail = "only allowed for updateStrategy 'RollingUpdate'"
        yield field_errors.invalid(here, value["RollingUpdate"], detail)
    elif rolling:
        yield from _COUNT(rolling.get("partition"), f"{here}.partition")
        most = rolling.get("maxUnavailable")
        errors = [*amount(most, f"{here}.maxUnavailable")]
        if most is not None and not errors and not _number(most):
            errors.append(field_errors.invalid(f"{here}.maxUnavailable", most, "cannot be 0"))
        yield from errors
        yield from at_most_all(most, f"{here}.maxUnavailable")


# Jobs.


def _restarts(spec: Object, path: str) -> Errors:
    here = f"{path}.template.spec.restartPolicy"
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
    if policy in (None, "", "Always"):
        yield field_errors.required(here, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield field_errors.not_supported(here, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        yield field_errors.invalid(here, policy, detail)


def _manager(name: str | None, path: str) -> Errors:
    """Evaluate the name of the controller that runs a Job: ``example.com/queue``."""
    yield from domain_path(name, path)
    if name and len(name) > LONGEST_MANAGER:
        yield field_errors.too_long(path, LONGEST_MANAGER)


def _indexing(mode: str | None, at: str, owners: Owners) -> Errors:
    """Evaluate what has a meaning only, or has limits, where completions have an index."""
    spec, path = owners[-1], at.rpartition(".")[0]
    failed = spec.get("maxFailedIndexes")
    if failed is not None and spec.get("backoffLimitPerIndex") is None:
        detail = "when maxFailedIndexes is specified"
        yield field_errors.required(f"{path}.backoffLimitPerIndex", detail)
    yield from _manager(spec.get("managedBy"), f"{path}.managedBy")
    if mode != "Indexed":
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(field) is not None:
                detail = "requires indexed completion mode"
                yield field_errors.invalid(f"{path}.{field}", spec[field], detail)
        return
    completions, parallelism = spec.get("completions"), spec.get("parallelism") or 0
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


def _schedule(schedule: str | None, path: str) -> Errors:
    if not schedule:
        yield field_errors.required(path)
    elif len(schedule.encode(errors="replace")) > LONGEST:
        yield field_errors.too_long(path, LONGEST)
    elif "TZ" in schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield field_errors.invalid(path, schedule, detail)
    else:
        try:
            Schedule.parse(schedule)
        except ValueError as exc:
            yield field_errors.invalid(path, schedule, str(exc))


def _time_zone(zone: str | None, path: str) -> Errors:
    if zone is None:
        return
    if not zone:
        yield field_errors.invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    if zone.lower() == "local":
        detail = (
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        )
        yield field_errors.invalid(path, zone, detail)
        return
    parts = zone.split("/")
    try:
        if not all(part not in (".", "..") and _ZONE_PART.fullmatch(part) for part in parts):
            raise ValueError(zone)
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        yield field_errors.invalid(path, zone, f"unknown time zone {zone}")


def _without_selector(spec: Object, path: str) -> Errors:
    """Evaluate the template of the Jobs of a CronJob, whose selectors are generated."""
    job = spec.get("spec") or {}
    if job.get("selector") is not None:
        detail = "`selector` will be auto-generated"
        yield field_errors.invalid(f"{path}.spec.selector", job["selector"], detail)
    if job.get("manualSelector"):
        here = f"{path}.spec.manualSelector"
        yield field_errors.not_supported(here, "true", ("nil", "false"))


# The table.


def _counts(*fields: str) -> _Fields:
    return dict.fromkeys(fields, (_COUNT,))


_REPLICA_SET_STATUS: Final = counted(
    "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas",
    "terminatingReplicas", "observedGeneration",
    most={
        "fullyLabeledReplicas readyReplicas availableReplicas": ("replicas", "status.replicas"),
        "availableReplicas": ("readyReplicas", "readyReplicas"),
    },
)  # fmt: skip

WORKLOAD_TABLE: Final[Table] = {
    "apps.v1.DaemonSetSpec": {
        "selector": (lambda value, path: _selector(value, path, "daemonset", None),),
        "template": (Within(_selected),),
        ITSELF: (_endless("DaemonSet"),),
        **_counts("minReadySeconds"),
        "updateStrategy": (),
        **_counts("revisionHistoryLimit"),
    },
    "apps.v1.DaemonSetUpdateStrategy": {ITSELF: (_daemon_strategy,), "type": (anything,)},
    "apps.v1.DaemonSetStatus": {
        ITSELF: (
            counted(
                "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled",
                "numberReady", "observedGeneration", "updatedNumberScheduled", "numberAvailable",
                "numberUnavailable", "collisionCount",
                most={},
            ),
        ),
    },
    "apps.v1.DeploymentSpec": {
        **_counts("replicas"),
        **_workload("ReplicaSet", "deployment"),
        "strategy": (),
        **_counts("minReadySeconds", "revisionHistoryLimit"),
        "progressDeadlineSeconds": (Within(_deadline),),
    },
    "apps.v1.DeploymentStrategy": {ITSELF: (_deployment_strategy,), "type": (anything,)},
    "apps.v1.DeploymentStatus": {
        ITSELF: (
            counted(
                "observedGeneration", "replicas", "updatedReplicas", "readyReplicas",
                "availableReplicas", "unavailableReplicas", "terminatingReplicas",
                "collisionCount",
                most={
                    "updatedReplicas readyReplicas availableReplicas": (
                        "replicas", "status.replicas",
                    ),
                    "availableReplicas": ("readyReplicas", "readyReplicas"),
                },
            ),
        ),
    },
    "apps.v1.ReplicaSetSpec": {
        **_counts("replicas", "minReadySeconds"),
        **_workload("ReplicaSet", "deployment"),
    },
    "apps.v1.ReplicaSetStatus": {ITSELF: (_REPLICA_SET_STATUS,)},
    "core.v1.ReplicationControllerStatus": {ITSELF: (_REPLICA_SET_STATUS,)},
    "core.v1.ReplicationControllerSpec": {
        **_counts("minReadySeconds"),
        "selector": (required(),),
        **_counts("replicas"),
        "template": (present(), Within(_selects_map)),
        ITSELF: (_endless("ReplicationController"),),
    },
    "apps.v1.StatefulSetSpec": {
        "podManagementPolicy": (_managed,),
        "updateStrategy": (),
        "persistentVolumeClaimRetentionPolicy": (),
        **_counts("replicas"),
        **_counts("minReadySeconds"),
        "ordinals": (),
        "volumeClaimTemplates": (),
        **_workload("StatefulSet", "statefulset", ""),
        **_counts("revisionHistoryLimit"),
    },
    "apps.v1.StatefulSetOrdinals": _counts("start"),
    "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy": {
        "whenDeleted": (one_of("Retain", "Delete"),),
        "whenScaled": (one_of("Retain", "Delete"),),
    },
    "apps.v1.StatefulSetUpdateStrategy": {ITSELF: (_stateful_strategy,), "type": (anything,)},
    "apps.v1.StatefulSetStatus": {
        ITSELF: (
            counted(
                "replicas", "readyReplicas", "currentReplicas", "updatedReplicas",
                "availableReplicas", "observedGeneration", "collisionCount",
                most={
                    "readyReplicas currentReplicas updatedReplicas availableReplicas": (
                        "replicas", "status.replicas",
                    ),
                    "availableReplicas": ("readyReplicas", "status.readyReplicas"),
                },
            ),
        ),
    },
    "apps.v1.ControllerRevision": {
        "data": (present("data is mandatory"),),
        "revision": (_COUNT,),
    },
    "batch.v1.CronJobSpec": {
        "schedule": (_schedule,),
        "timeZone": (_time_zone,),
        **_counts(
            "startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"
        ),
        "concurrencyPolicy": (known("Allow", "Forbid", "Replace"),),
        "jobTemplate": (),
    },
    "batch.v1.JobTemplateSpec": {"spec": (), ITSELF: (_without_selector,)},
    "batch.v1.JobSpec": {
        **_counts(
            "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
            "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes",
        ),
        "completionMode": (one_of("Indexed", "NonIndexed"), Within(_indexing)),
        "podFailurePolicy": (Within(job_policies.check_failure_policy),),
        "successPolicy": (Within(job_policies.check_success_policy),),
        "template": (),
        ITSELF: (_restarts,),
    },
}  # fmt: skip
