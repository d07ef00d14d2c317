"""CronJobs: Jobs that are created on a schedule, and deleted when they are history."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from berth.cluster.actions import Action, Create, Delete, Patch
from berth.cluster.controllers.claims import owner_reference, reference_to
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.job import JOBS
from berth.cluster.controllers.job_pods import JobView
from berth.cluster.controllers.replica_set import is_terminating, status_patch
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import WorkloadView
from berth.cluster.cron import Schedule
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kinds.builtin import find
from berth.cluster.object_views import controllers_of, metadata_of
from berth.cluster.resources import Object
from berth.cluster.times import seconds_of
from berth.cluster.warnings import quoted
from berth.kube.client.errors import AlreadyExistsError
from berth.runtime.clock import Clock, rfc3339

CRON_JOBS: Final = find("batch", "v1", "cronjobs")
SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
"""Annotation of a Job: the time that it was created for."""

TOO_MANY: Final = 100
"""Missed times that are worth a warning."""
DELAY: Final = 0.1
"""Seconds after a scheduled time at which it is looked at, as upstream."""


class Times(NamedTuple):
    """The scheduled times around now, in unix seconds."""

    due: float | None
    """The latest that has come since the last Job; None: there is none."""
    missed: int
    """How many have come, were they as far apart as the first two."""
    next: float | None


class CronJobController:
    """Decides when to create which Job, and which old ones to delete. Writes nothing."""

    name = "cronjob"

    def __init__(
        self,
        cron_jobs: Table[WorkloadView],
        jobs: Table[JobView],
        *,
        clock: Clock,
        recorder: EventRecorder,
    ) -> None:
        self._cron_jobs = cron_jobs
        self._jobs = jobs
        self._clock = clock
        self._recorder = recorder
        self._asked: dict[str, float] = {}
        """By key: the time of the Job that was asked for last, in unix seconds."""
        self._told: dict[str, float] = {}
        """By key: the time that was reported as not to be used."""
        self._changed: dict[str, float] = {}
        """By key: when the schedule became what it is, if that was seen."""
        self._known: dict[str, set[str]] = {}
        """By key: uids of Jobs that were deleted from here, or that were told of already."""
        self._news: dict[str, list[tuple[str, str]]] = {}
        """By key: reasons and messages of what is to be told once the status is written."""

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def cron_job_changed(old: WorkloadView | None, new: WorkloadView | None) -> None:
            key = metadata_of(old, new).key
            if old is not None and new is not None and _timing(old) != _timing(new):
                self._changed[key] = self._clock.now()
            enqueue(key)

        def job_changed(old: JobView | None, new: JobView | None) -> None:
            for key in controllers_of("CronJob", old, new):
                enqueue(key)

        self._cron_jobs.listen(cron_job_changed)
        self._jobs.listen(job_changed)

    def plan(self, key: str) -> Plan:
        cron_job = self._cron_jobs.get(key)
        if cron_job is None:
            for memory in (self._asked, self._told, self._changed, self._known, self._news):
                memory.pop(key, None)
            return NOTHING
        jobs = list(self._jobs.controlled(cron_job.metadata.uid))
        actions: list[Action] = []
        status = _status(cron_job, jobs)
        changed = {k: v for k, v in status.items() if cron_job.status.get(k) != v}
        self._look_for_strangers(key, cron_job, jobs)
        self._news[key] = list(self._news_of_active(key, cron_job, jobs))
        if changed:
            actions.append(status_patch(CRON_JOBS, cron_job, changed))
        actions += _forget(cron_job, jobs)
        if cron_job.metadata.deletion_timestamp is not None:
            return Plan(actions)
        started, again = self._start(key, cron_job, jobs)
        return Plan([*actions, *started], again=again)

    def finished(self, key: str, outcome: Outcome) -> None:
        """Tell what happened; ask again for a Job that could not be created."""
        action, error, cron_job = outcome.action, outcome.error, self._cron_jobs.get(key)
        if isinstance(error, AlreadyExistsError):
            return  # intervals of less than a minute have one name, and one Job
        if isinstance(action, Create) and (error is not None or outcome.skipped):
            self._asked.pop(key, None)
        if cron_job is None or outcome.skipped:
            return
        about = reference_to(cron_job, CRON_JOBS)
        match action:
            case Create() if error is None:
                message = f"Created job {action.body['metadata']['name']}"
                self._recorder.event(about, reason="SuccessfulCreate", message=message)
            case Create() if error is not None and not is_terminating(error):
                message = f"Error creating job: {error}"
                self._recorder.event(about, type="Warning", reason="FailedCreate", message=message)
            case Delete() if error is None:
                self._known.setdefault(key, set()).add(action.uid)
                message = f"Deleted job {action.path.rpartition('/')[2]}"
                self._recorder.event(about, reason="SuccessfulDelete", message=message)
            case Delete():
                message = f"Deleted job: {error}"
                self._recorder.event(about, type="Warning", reason="FailedDelete", message=message)
            case Patch() if error is None:
                for reason, message in self._news.pop(key, ()):
                    self._recorder.event(about, reason=reason, message=message)

    def _look_for_strangers(
        self, key: str, cron_job: WorkloadView, jobs: Sequence[JobView]
    ) -> None:
        """Warn, once, of each Job that runs and was not created here."""
        listed = {each.get("uid", "") for each in cron_job.status.get("active") or ()}
        known = self._known.setdefault(key, set())
        known &= listed | {job.metadata.uid for job in jobs}
        for job in jobs:
            uid = job.metadata.uid
            if job.end is not None or _scheduled(job) or uid in listed | known:
                continue
            known.add(uid)
            text = f"Saw a job that the controller did not create or forgot: {job.metadata.name}"
            about = reference_to(cron_job, CRON_JOBS)
            self._recorder.event(about, type="Warning", reason="UnexpectedJob", message=text)

    def _news_of_active(
        self, key: str, cron_job: WorkloadView, jobs: Sequence[JobView]
    ) -> Iterator[tuple[str, str]]:
        """Yield what is to be told of Jobs that the status lists, and that have ended or gone."""
        present = {job.metadata.uid: job for job in jobs}
        for each in cron_job.status.get("active") or ():
            uid = each.get("uid", "")
            job = present.get(uid)
            if job is None:
                if uid not in self._known.get(key, ()):
                    yield "MissingJob", f"Active job went missing: {each.get('name', '')}"
            elif job.end is not None:
                message = f"Saw completed job: {job.metadata.name}, condition: {job.end['type']}"
                yield "SawCompletedJob", message

    def _start(
        self, key: str, cron_job: WorkloadView, jobs: Sequence[JobView]
    ) -> tuple[list[Action], float | None]:
        """Return what starts a Job that is due, and the seconds until the next one is."""
        now, zone = self._clock.now(), _zone(cron_job)
        if zone is None:
            name = cron_job.spec["timeZone"]
            message = f"invalid timeZone: {quoted(name)}: unknown time zone {name}"
            self._tell(key, cron_job, 0.0, "UnknownTimeZone", message)
        if cron_job.spec.get("suspend") or zone is None:
            return [], None
        times = times_of(cron_job, last_schedule(cron_job, jobs), zone, now)
        if times.next is None:
            self._tell(
                key, cron_job, 0.0, "InvalidSchedule",
                f"invalid schedule: {cron_job.spec.get('schedule')} : time difference between two "
                "schedules is less than 1 second",
            )  # fmt: skip
        again = None if times.next is None else times.next - now + DELAY
        due = times.due
        if times.missed > TOO_MANY:
            self._tell(
                key, cron_job, due or now, "TooManyMissedTimes",
                "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or "
                "check clock skew",
            )  # fmt: skip
        if due is None or due <= self._changed.get(key, 0.0) or self._asked.get(key) == due:
            return [], again
        active = [job for job in jobs if _is_active(job)]
        policy = cron_job.spec.get("concurrencyPolicy")
        if policy == "Forbid" and active:
            text = (
                "Not starting job because prior execution is running and concurrency policy is "
                "Forbid"
            )
            self._tell(key, cron_job, due, "JobAlreadyActive", text)
            return [], again
        actions: list[Action] = []
        if policy == "Replace":
            actions += [_delete(job) for job in active if not job.metadata.deletion_timestamp]
        self._asked[key] = due
        return [*actions, _create(cron_job, due, zone)], again

    def _tell(
        self, key: str, cron_job: WorkloadView, time: float, reason: str, message: str
    ) -> None:
        """Record, once, why there is no Job for *time*."""
        if self._told.get(key) == time:
            return
        self._told[key] = time
        normal = reason == "JobAlreadyActive"
        self._recorder.event(
            reference_to(cron_job, CRON_JOBS),
            type="Normal" if normal else "Warning",
            reason=reason,
            message=message,
        )


def new_controller(context: ControllerContext) -> CronJobController:
    return CronJobController(
        context.table("cronjobs.batch", WorkloadView),
        context.table("jobs.batch", JobView),
        clock=context.clock,
        recorder=context.recorder("cronjob-controller"),
    )


def times_of(cron_job: WorkloadView, last: float, zone: tzinfo, now: float) -> Times:
    """Return the scheduled times after *last*; of those missed, only the latest counts."""
    schedule = Schedule.parse(cron_job.spec.get("schedule") or "")
    deadline = cron_job.spec.get("startingDeadlineSeconds")
    if deadline is not None:
        last = max(last, now - float(deadline))
    due = schedule.latest(last, now, zone)
    upcoming = schedule.after(now if due is None else due, zone)
    if due is None:
        return Times(None, 0, upcoming)
    first = schedule.after(last, zone) or due
    second = schedule.after(first, zone) or due
    missed = int((now - first) // max(second - first, 1.0)) + 1
    return Times(due, missed, upcoming)


def last_schedule(cron_job: WorkloadView, jobs: Sequence[JobView]) -> float:
    """Return the time of the last Job or, before the first, when the CronJob was created."""
    known = [cron_job.status.get("lastScheduleTime"), *(_scheduled(job) for job in jobs)]
    times = [seconds_of(each) for each in known if each]
    return max(times, default=seconds_of(cron_job.metadata.creation_timestamp or rfc3339(0)))


def _status(cron_job: WorkloadView, jobs: Sequence[JobView]) -> Object:
    active = [
        {
            "apiVersion": JOBS.group_version,
            "kind": JOBS.kind,
            "name": job.metadata.name,
            "namespace": job.metadata.namespace,
            "resourceVersion": _listed_version(cron_job, job),
            "uid": job.metadata.uid,
        }
        for job in sorted(jobs, key=lambda job: job.metadata.name)
        if _is_active(job)
    ]
    scheduled = [seconds_of(each) for each in map(_scheduled, jobs) if each]
    ends = [job.status.get("completionTime") for job in jobs if job.condition("Complete")]
    done = [seconds_of(end) for end in ends if end]
    return {
        "active": active or None,
        "lastScheduleTime": _latest(cron_job.status.get("lastScheduleTime"), scheduled),
        "lastSuccessfulTime": _latest(cron_job.status.get("lastSuccessfulTime"), done),
    }


def _latest(known: str | None, times: Sequence[float]) -> str | None:
    if not times or (known and seconds_of(known) >= max(times)):
        return known
    return rfc3339(max(times))


def _is_active(job: JobView) -> bool:
    """Whether *job* was created on schedule and has not ended."""
    return job.end is None and bool(_scheduled(job))


def _listed_version(cron_job: WorkloadView, job: JobView) -> str:
    """Return the version with which the status lists *job*; that it changes is no news."""
    for each in cron_job.status.get("active") or ():
        if each.get("uid") == job.metadata.uid:
            return str(each.get("resourceVersion") or "")
    return job.metadata.resource_version


def _scheduled(job: JobView) -> str | None:
    text = (job.metadata.annotations or {}).get(SCHEDULED)
    try:
        return text if text and seconds_of(text) else None
    except ValueError:
        return None


def _timing(cron_job: WorkloadView) -> tuple[Any, Any]:
    return cron_job.spec.get("schedule"), cron_job.spec.get("timeZone")


def _zone(cron_job: WorkloadView) -> tzinfo | None:
    """Return the time zone of the schedule; None: there is none of that name any more."""
    name = cron_job.spec.get("timeZone")
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _forget(cron_job: WorkloadView, jobs: Sequence[JobView]) -> list[Delete]:
    """Return the deletion of Jobs that ended, beyond the limits of history; the oldest go."""
    gone: list[Delete] = []
    for type_, field in (
        ("Complete", "successfulJobsHistoryLimit"),
        ("Failed", "failedJobsHistoryLimit"),
    ):
        limit = cron_job.spec.get(field)
        if limit is None:
            continue
        ended = [job for job in jobs if job.condition(type_) is not None]
        ended.sort(key=_age)
        surplus = ended[: max(len(ended) - int(limit), 0)]
        gone += [_delete(job) for job in surplus if job.metadata.deletion_timestamp is None]
    return gone


def _age(job: JobView) -> tuple[bool, str, str]:
    """Return what sorts Jobs by their start; those that have not begun are the youngest."""
    started = job.status.get("startTime") or ""
    return not started, started, job.metadata.name


def _delete(job: JobView) -> Delete:
    return Delete(JOBS.path_of(job.metadata.namespace, job.metadata.name), job.metadata.uid)


def _create(cron_job: WorkloadView, time: float, zone: tzinfo) -> Create:
    """Return the creation of the Job for *time*: its name makes sure that there is only one."""
    meta = cron_job.metadata
    template: Object = cron_job.spec.get("jobTemplate") or {}
    of_template: Object = template.get("metadata") or {}
    stamp = datetime.fromtimestamp(time, zone).isoformat()
    body = {
        "apiVersion": JOBS.group_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": f"{meta.name}-{int(time) // 60}",
            "namespace": meta.namespace,
            "labels": of_template.get("labels") or {},
            "annotations": {
                **(of_template.get("annotations") or {}),
                SCHEDULED: stamp.replace("+00:00", "Z"),
            },
            "ownerReferences": [owner_reference(cron_job, CRON_JOBS)],
        },
        "spec": template.get("spec") or {},
    }
    return Create(JOBS.collection_path(meta.namespace), body)
