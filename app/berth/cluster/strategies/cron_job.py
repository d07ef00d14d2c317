"""CronJobs: Jobs on a schedule."""

import re
from collections.abc import Iterator
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from berth.cluster.cron import LONGEST, Schedule
from berth.cluster.resources import Object
from berth.cluster.strategies.job import check_spec, default_failure_policy
from berth.cluster.strategies.shape import section
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects import pod_defaults

LONGEST_NAME: Final = 52
"""The controller appends eleven characters to it for the name of a Job."""

COUNTS: Final = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")

_ZONE_PART: Final = re.compile(r"(?!-)[A-Za-z._0-9+-]{1,14}", re.ASCII)


def default(obj: Object) -> None:
    spec = section(obj, "spec")
    spec["concurrencyPolicy"] = spec.get("concurrencyPolicy") or "Allow"
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    section(spec, "jobTemplate", "metadata")
    default_failure_policy(section(spec, "jobTemplate", "spec"))
    template = section(spec, "jobTemplate", "spec", "template")
    pod_defaults.default_template(section(template, "spec"))
    section(template, "metadata")


def check(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = list(_schedule(spec))
    errors += [
        field_errors.invalid(f"spec.{field}", spec[field], "must be greater than or equal to 0")
        for field in COUNTS
        if spec.get(field) is not None and spec[field] < 0
    ]
    path = "spec.jobTemplate.spec"
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    errors += check_spec(job, path)
    if job.get("selector") is not None:
        detail = "`selector` will be auto-generated"
        errors.append(field_errors.invalid(f"{path}.selector", job["selector"], detail))
    if job.get("manualSelector"):
        supported = field_errors.not_supported(f"{path}.manualSelector", "true", ("nil", "false"))
        errors.append(supported)
    return errors


def check_create(obj: Object) -> list[FieldError]:
    """Evaluate the name, which may have been longer once."""
    name = (obj.get("metadata") or {}).get("name") or ""
    if len(name) <= LONGEST_NAME:
        return []
    detail = f"must be no more than {LONGEST_NAME} characters"
    return [field_errors.invalid("metadata.name", name, detail)]


def _schedule(spec: Object) -> Iterator[FieldError]:
    schedule, zone = spec.get("schedule"), spec.get("timeZone")
    if not schedule:
        yield field_errors.required("spec.schedule")
    elif len(schedule.encode(errors="replace")) > LONGEST:
        yield field_errors.too_long("spec.schedule", LONGEST)
    elif "TZ" in schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield field_errors.invalid("spec.schedule", schedule, detail)
    else:
        try:
            Schedule.parse(schedule)
        except ValueError as exc:
            yield field_errors.invalid("spec.schedule", schedule, str(exc))
    if zone is not None:
        yield from _time_zone(zone)


def _time_zone(zone: str) -> Iterator[FieldError]:
    path = "spec.timeZone"
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
    if not all(part not in (".", "..") and _ZONE_PART.fullmatch(part) for part in parts):
        yield field_errors.invalid(path, zone, f"unknown time zone {zone}")
        return
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        yield field_errors.invalid(path, zone, f"unknown time zone {zone}")
