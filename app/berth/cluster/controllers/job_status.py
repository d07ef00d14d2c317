"""The end of a Job and its reason, and its status."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from berth.cluster.controllers.job_pods import (
    JobView,
    Tally,
    containers_of,
    failure_of,
    index_of,
    is_failed,
)
from berth.cluster.events.correlator import Type
from berth.cluster.indexes import Indexes
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object
from berth.cluster.times import seconds_of
from berth.runtime.clock import rfc3339

SUCCESS: Final = "SuccessCriteriaMet"
FAILURE: Final = "FailureTarget"
FINAL: Final = {SUCCESS: "Complete", FAILURE: "Failed"}
"""What is certain, and what is true once the last pod is gone."""

_TOLD: Final = ("status", "reason", "message")

MOST_UNCOUNTED: Final = 500
"""Pods noted in the status at a time, so that it does not grow too large."""


class End(NamedTuple):
    """That a Job is to end, SUCCESS or FAILURE, and why."""

    type: str
    reason: str
    message: str


REACHED: Final = End(SUCCESS, "CompletionsReached", "Reached expected number of succeeded pods")


def end_of(
    job: JobView, tally: Tally, pods: Sequence[PodView], *, until_deadline: float | None
) -> End | None:
    """Return why *job* ends although pods may be missing; None: it goes on."""
    for type_ in FINAL:
        known = job.condition(type_)
        if known is not None:
            return End(type_, known.get("reason") or "", known.get("message") or "")
    return (
        _failed_by_policy(job, pods)
        or _failed_too_often(job, tally, pods)
        or _took_too_long(until_deadline)
        or _failed_by_index(job, tally)
        or _succeeded_by_policy(job, tally)
    )


def is_complete(job: JobView, tally: Tally, active: int) -> bool:
    """Whether all has been done that was to be done; *active* pods are still at it."""
    if job.completions is None:
        return tally.succeeded > 0 and active == 0
    return tally.succeeded >= job.completions


def start_time(job: JobView, *, now: float) -> str | None:
    """Return when the present run of *job* began or begins; None: it is suspended.

    That is at the first look at it, or at the first one after it was resumed.
    """
    if job.is_suspended:
        return None
    started: str | None = job.status.get("startTime")
    is_resumed = job.condition("Suspended") is not None
    return started if started and not is_resumed else rfc3339(now)


def seconds_until_deadline(job: JobView, started: str | None, *, now: float) -> float | None:
    """Return when *job*, which began at *started*, is out of time; None when never."""
    allowed = job.spec.get("activeDeadlineSeconds")
    if allowed is None or started is None:
        return None
    return max(seconds_of(started) + float(allowed) - now, 0.0)


def failing_pods(job: JobView, tally: Tally, end: End | None) -> list[PodView]:
    """Return the pods whose failure is to be noted.

    The last failure of an index has to wait for the pod that carries on counting. When a Job fails,
    so do the pods that have not ended.
    """
    if end is None:
        kept = {pod.metadata.uid for pod in tally.last_failures.values()}
        return [pod for pod in tally.failed_now if pod.metadata.uid not in kept]
    if end.type == SUCCESS:
        return tally.failed_now
    known = {*tally.uncounted_failed, *(pod.metadata.uid for pod in tally.failed_now)}
    left = [
        pod
        for pod in tally.held
        if not pod.is_finished
        and pod.metadata.uid not in known
        and (not tally.is_indexed or job.has_index(index_of(pod)))
        and failure_of(pod, job).counts
    ]
    return [*tally.failed_now, *left]


def status_of(
    job: JobView,
    tally: Tally,
    *,
    end: End | None,
    failing: Iterable[PodView],
    started: str | None,
    present: Collection[PodView],
    is_over: bool,
    now: float,
) -> Object:
    """Return the fields of the status that are the controller's.

    *failing*: what :func:`failing_pods` says; *started*: what :func:`start_time` says; *present*:
    pods that run or are to; *is_over*: no pod is left that could change anything, or that has the
    finalizer.
    """
    stamp = rfc3339(now)
    room = max(MOST_UNCOUNTED - len(tally.uncounted_succeeded) - len(tally.uncounted_failed), 0)
    succeeded = [] if tally.is_indexed else [pod.metadata.uid for pod in tally.succeeded_now]
    failed = [pod.metadata.uid for pod in failing]
    succeeded, failed = succeeded[:room], failed[: max(room - len(succeeded), 0)]
    uncounted = {
        "succeeded": [*tally.uncounted_succeeded, *succeeded] or None,
        "failed": [*tally.uncounted_failed, *failed] or None,
    }
    is_over = is_over and not any(uncounted.values())
    ready, terminating = sum(1 for pod in present if pod.ready_since is not None), 0
    if end is not None:
        # All that are left are being deleted.
        present, ready, terminating = (), 0, len(present)
        started = job.status.get("startTime") or started or stamp
    elif job.metadata.deletion_timestamp is not None:
        started = job.status.get("startTime") or started
    status: Object = {
        "active": len(present) or None,
        "ready": ready,
        "terminating": len(tally.terminating) + terminating,
        "succeeded": _counted(tally) or None,
        "failed": tally.counted_failed or None,
        "uncountedTerminatedPods": uncounted,
        "conditions": _conditions(job, end=end, is_over=is_over, stamp=stamp) or None,
        "startTime": started,
    }
    if tally.is_indexed:
        status["completedIndexes"] = str(tally.completed) or None
    if job.backoff_limit_per_index is not None:
        status["failedIndexes"] = str(tally.failed_indexes)
    if is_over and end is not None and end.type == SUCCESS:
        status["completionTime"] = stamp
    return status


def changes(job: JobView, status: Object) -> Object:
    """Return what of *status* differs from what is stored, as a merge patch has it."""
    return {
        field: value
        for field, value in status.items()
        if _present(job.status.get(field)) != _present(value) or field not in job.status
        if not (value is None and field not in job.status)
    }


class News(NamedTuple):
    """An event that tells of a change of the status."""

    type: Type
    reason: str
    message: str


def news_of(job: JobView, changed: Object) -> list[News]:
    """Return the events that tell of the conditions in *changed* that are new, or new in status."""
    before = {
        condition.get("type"): condition.get("status")
        for condition in job.status.get("conditions") or ()
    }
    conditions: list[Object] = changed.get("conditions") or []
    return [
        news
        for condition in conditions
        if before.get(condition["type"]) != condition["status"]
        for news in _news_of(job, condition, changed.get("succeeded") or job.count("succeeded"))
    ]


def _news_of(job: JobView, condition: Object, succeeded: int) -> Iterator[News]:
    match condition["type"], condition["status"]:
        case "Complete", _:
            if job.completions is not None and succeeded > job.completions:
                text = "Too many succeeded pods running after completion count reached"
                yield News("Warning", "TooManySucceededPods", text)
            yield News("Normal", "Completed", "Job completed")
        case "Failed", _:
            yield News("Warning", condition["reason"], condition["message"])
        case "Suspended", "True":
            yield News("Normal", "Suspended", "Job suspended")
        case "Suspended", _:
            yield News("Normal", "Resumed", "Job resumed")


def _present(value: Any) -> Any:
    """Return *value* without the fields that are null, and so are not stored."""
    if isinstance(value, dict):
        return {key: each for key, each in value.items() if each is not None}
    return value


def _counted(tally: Tally) -> int:
    return len(tally.completed) if tally.is_indexed else tally.counted_succeeded


def _conditions(job: JobView, *, end: End | None, is_over: bool, stamp: str) -> list[Object]:
    conditions: list[Object] = [*(job.status.get("conditions") or ())]
    if end is None:
        if job.metadata.deletion_timestamp is not None:
            return conditions
        if job.is_suspended:
            _set(conditions, "Suspended", "True", "JobSuspended", "Job suspended", stamp)
        elif any(condition.get("type") == "Suspended" for condition in conditions):
            _set(conditions, "Suspended", "False", "JobResumed", "Job resumed", stamp)
        return conditions
    _set(conditions, end.type, "True", end.reason, end.message, stamp)
    if is_over:
        _set(conditions, FINAL[end.type], "True", end.reason, end.message, stamp)
    return conditions


def _set(
    conditions: list[Object], type_: str, status: str, reason: str, message: str, stamp: str
) -> None:
    condition = {
        "type": type_,
        "status": status,
        "lastProbeTime": stamp,
        "lastTransitionTime": stamp,
        "reason": reason,
        "message": message,
    }
    for place, each in enumerate(conditions):
        if each.get("type") == type_:
            if any(each.get(field) != condition[field] for field in _TOLD):
                conditions[place] = condition
            return
    conditions.append(condition)


def _failed_by_policy(job: JobView, pods: Sequence[PodView]) -> End | None:
    if job.spec.get("podFailurePolicy") is None:
        return None
    for pod in pods:
        message = failure_of(pod, job).fails_job if is_failed(pod, job) else ""
        if message:
            return End(FAILURE, "PodFailurePolicy", message)
    return None


def _failed_too_often(job: JobView, tally: Tally, pods: Sequence[PodView]) -> End | None:
    end = End(FAILURE, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    limit = job.backoff_limit
    if tally.failed > limit:
        return end
    if job.restart_policy != "OnFailure":
        return None
    restarts = sum(
        each.restart_count
        for pod in pods
        if pod.status.phase in ("Running", "Pending")
        for each in containers_of(pod)
    )
    return end if restarts >= max(limit, 1) else None


def _took_too_long(until_deadline: float | None) -> End | None:
    if until_deadline != 0.0:
        return None
    return End(FAILURE, "DeadlineExceeded", "Job was active longer than specified deadline")


def _failed_by_index(job: JobView, tally: Tally) -> End | None:
    if job.backoff_limit_per_index is None:
        return None
    failed, most = len(tally.failed_indexes), job.spec.get("maxFailedIndexes")
    if most is not None and failed > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return End(FAILURE, "MaxFailedIndexesExceeded", message)
    if failed and failed + len(tally.completed) >= (job.completions or 0):
        return End(FAILURE, "FailedIndexes", "Job has failed indexes")
    return None


def _succeeded_by_policy(job: JobView, tally: Tally) -> End | None:
    if not job.is_indexed or not tally.completed:
        return None
    rules = (job.spec.get("successPolicy") or {}).get("rules") or ()
    for number, rule in enumerate(rules):
        text, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        done = len(tally.completed)
        if text is not None:
            wanted = Indexes.parse(text).below(job.completions or 0)
            if not wanted:
                continue
            done = wanted.count_in(tally.completed)
            count = len(wanted) if count is None else min(count, len(wanted))
        if count is not None and done >= count:
            return End(SUCCESS, "SuccessPolicy", f"Matched rules at index {number}")
    return None
