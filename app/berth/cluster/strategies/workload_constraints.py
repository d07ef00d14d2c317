"""The constraints of workloads (pkg/apis/apps, batch): a part of :mod:`.constraint_table`."""

import re
from collections.abc import Iterator
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from berth.cluster import percent
from berth.cluster.cron import LONGEST, Schedule
from berth.cluster.resources import Object
from berth.cluster.schemas import builtin
from berth.cluster.strategies import selectors
from berth.cluster.strategies.constraints import (
    Owners,
    Plain,
    Rule,
    amount,
    at_least,
    at_most_all,
    domain_path,
    empty,
    present,
    selector,
    shown,
)
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

Errors = Iterator[FieldError]

MOST_PARALLEL: Final = 100_000
MANY_COMPLETIONS: Final = 100_000
MOST_OF_MANY: Final = 10_000
"""Of parallelism and failed indexes, where there are many completions and limits per index."""
LONGEST_MANAGER: Final = 63

_ZONE_PART: Final = re.compile(r"(?!-)[A-Za-z._0-9+-]{1,14}", re.ASCII)
_COUNT: Final = at_least(0)


# Selectors and templates.


def selected_by(kind: str, unreadable: str | None = None) -> Plain:
    """Evaluate the selector of a workload, which may not be empty; *kind* is for the message.

    *unreadable* is said of one that cannot be used.
    """

    def rule(value: Object | None, path: str) -> Errors:
        complaints = selector(value, path)
        yield from complaints
        if value is not None and not (value.get("matchLabels") or value.get("matchExpressions")):
            yield field_errors.invalid(path, value, f"empty selector is invalid for {kind}")
        elif complaints and unreadable is not None:
            yield field_errors.invalid(path, in_order(value), unreadable)

    return rule


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


def check_selected(template: Object | None, path: str, owners: Owners) -> Errors:
    """Refuse a template that its selector, if it can be used, does not select."""
    value, labels = owners[-1].get("selector"), labels_of(template)
    if not selector(value, path) and not selects(value, labels or {}):
        detail = "`selector` does not match template `labels`"
        yield field_errors.invalid(f"{path}.metadata.labels", labels, detail)


def endless(kind: str) -> Rule:
    """Refuse pods that end: there would be new ones for ever."""

    def rule(workload: Object, path: str) -> Errors:
        spec, here = (workload.get("template") or {}).get("spec") or {}, f"{path}.template.spec"
        policy, seconds = spec.get("restartPolicy"), spec.get("activeDeadlineSeconds")
        if policy not in (None, "", "Always"):
            yield field_errors.not_supported(f"{here}.restartPolicy", policy, ("Always",))
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        yield from empty(detail)(seconds, f"{here}.activeDeadlineSeconds")

    return rule


def check_claim_names(_template: Object | None, path: str, owners: Owners) -> Errors:
    """Refuse claims without a name, which become volumes of the pods."""
    for index, claim in enumerate(owners[-1].get("volumeClaimTemplates") or ()):
        if not (claim.get("metadata") or {}).get("name"):
            here = f"{path}.spec.volumes[{index}]"
            yield field_errors.required(f"{here}.persistentVolumeClaim.claimName")
            yield field_errors.required(f"{here}.name")


def is_usable(_template: Object | None, owners: Owners) -> bool:
    return not selector(owners[-1].get("selector"), "")


def check_selects_map(template: Object | None, path: str, owners: Owners) -> Errors:
    wanted, labels = owners[-1].get("selector") or {}, labels_of(template) or {}
    if template is not None and not wanted.items() <= labels.items():
        detail = "`selector` does not match template `labels`"
        yield field_errors.invalid(f"{path}.metadata.labels", labels_of(template), detail)


# How to move from one template to the next.


def _number(value: int | str | None) -> int:
    """Return the number of a valid amount, percent or not."""
    return percent.number_of(value) if isinstance(value, str) else value or 0


def check_deployment_strategy(strategy: Object, path: str) -> Errors:
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


def check_deadline(seconds: int | None, path: str, owners: Owners) -> Errors:
    yield from _COUNT(seconds, path)
    if seconds is not None and seconds <= (owners[-1].get("minReadySeconds") or 0):
        yield field_errors.invalid(path, seconds, "must be greater than minReadySeconds")


def check_daemon_strategy(strategy: Object, path: str) -> Errors:
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


def check_managed(policy: str | None, path: str) -> Errors:
    if policy not in ("OrderedReady", "Parallel"):
        yield field_errors.invalid(path, policy or "", "must be 'OrderedReady' or 'Parallel'")


def check_stateful_strategy(strategy: Object, path: str) -> Errors:
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


def check_restarts(spec: Object, path: str) -> Errors:
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


def check_indexing(mode: str | None, at: str, owners: Owners) -> Errors:
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


def check_schedule(schedule: str | None, path: str) -> Errors:
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


def check_time_zone(zone: str | None, path: str) -> Errors:
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


def check_without_selector(spec: Object, path: str) -> Errors:
    """Evaluate the template of the Jobs of a CronJob, whose selectors are generated."""
    job = spec.get("spec") or {}
    if job.get("selector") is not None:
        detail = "`selector` will be auto-generated"
        yield field_errors.invalid(f"{path}.spec.selector", job["selector"], detail)
    if job.get("manualSelector"):
        here = f"{path}.spec.manualSelector"
        yield field_errors.not_supported(here, "true", ("nil", "false"))
