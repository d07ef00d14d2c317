"""Updates of a Job's status (``ValidateJobUpdateStatus`` in pkg/apis/batch/validation).

Controllers other than Kubernetes' own may run Jobs (``managedBy``); clients are to find the states
that they know. What has not changed is not evaluated, so that a status that is wrong already can
still be mended.
"""

from collections.abc import Iterator
from typing import Any, Final

from berth.cluster.indexes import Indexes
from berth.cluster.resources import Object
from berth.cluster.times import seconds_of
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

COUNTS: Final = ("active", "succeeded", "failed", "ready", "terminating")
CONDITIONS: Final = "status.conditions"

FINAL: Final = (("Failed", "FailureTarget"), ("Complete", "SuccessCriteriaMet"))
"""Conditions with the one that has to be there before them."""
EXCLUSIVE: Final = (
    ("Complete", "Failed"),
    ("Complete", "FailureTarget"),
    ("SuccessCriteriaMet", "Failed"),
    ("SuccessCriteriaMet", "FailureTarget"),
)


def check(new: Object, old: Object) -> list[FieldError]:
    """Evaluate the status of *new*, which was that of *old*."""
    after, before = _Status(new), _Status(old)
    return [
        *_counts(after, before),
        *_uncounted(after),
        *_conditions(after, before),
        *_times(after, before),
        *_end(after, before),
        *_indexes(after, before),
    ]


class _Status:
    """The status of a Job, and what of its spec has a bearing on it."""

    def __init__(self, job: Object) -> None:
        self.spec: Object = job.get("spec") or {}
        self.status: Object = job.get("status") or {}
        self.completions: int | None = self.spec.get("completions")
        self.is_indexed = self.spec.get("completionMode") == "Indexed"

    def get(self, field: str) -> Any:
        return self.status.get(field)

    def count(self, field: str) -> int:
        return self.status.get(field) or 0

    def has(self, type_: str, status: str = "True") -> bool:
        """Whether it has that condition in that state."""
        return any(
            condition.get("type") == type_ and condition.get("status") == status
            for condition in self.status.get("conditions") or ()
        )

    def differs(self, before: "_Status", *fields: str) -> bool:
        """Whether one of *fields* is not as it was."""
        return any(self.get(field) != before.get(field) for field in fields)

    @property
    def is_finished(self) -> bool:
        return self.has("Complete") or self.has("Failed")

    def seconds(self, field: str) -> float | None:
        """Return a time in unix seconds."""
        text = self.status.get(field)
        return seconds_of(text) if text else None


def _counts(after: _Status, before: _Status) -> Iterator[FieldError]:
    for name in COUNTS:
        count = after.count(name)
        if count < 0:
            detail = "must be greater than or equal to 0"
            yield field_errors.invalid(f"status.{name}", count, detail)
    # An elastic Job may shrink, and with it the number of indexes that have succeeded.
    is_elastic = after.is_indexed and after.completions == after.spec.get("parallelism")
    for name, may_shrink in (("failed", False), ("succeeded", is_elastic)):
        if after.count(name) < before.count(name) and not may_shrink:
            detail = f"cannot decrease the {name} counter"
            yield field_errors.invalid(f"status.{name}", after.count(name), detail)
    if after.differs(before, "ready", "active") and after.count("ready") > after.count("active"):
        detail = "cannot set more ready pods than active"
        yield field_errors.invalid("status.ready", after.count("ready"), detail)


def _uncounted(after: _Status) -> Iterator[FieldError]:
    seen = set()
    for name in ("succeeded", "failed"):
        uids = (after.get("uncountedTerminatedPods") or {}).get(name) or ()
        for place, uid in enumerate(uids):
            path = f"status.uncountedTerminatedPods.{name}[{place}]"
            if not uid:
                yield field_errors.invalid(path, uid, "must not be empty")
            elif uid in seen:
                yield field_errors.duplicate(path, uid)
            seen.add(uid)


def _conditions(after: _Status, before: _Status) -> Iterator[FieldError]:
    """Evaluate which conditions may be true together, and that none of them is taken back."""
    for one, other in EXCLUSIVE:
        was = before.has(one) and before.has(other)
        if after.has(one) and after.has(other) and not was:
            shown = f"{one}=True and {other}=true"
            yield _impossible(f"cannot set {shown} conditions")
    for final, interim in FINAL:
        was = before.has(final) and not before.has(interim)
        if after.has(final) and not after.has(interim) and not was:
            detail = f"cannot set {final}=True condition without the {interim}=true condition"
            yield _impossible(detail)
    for type_ in ("Failed", "Complete", "FailureTarget"):
        if before.has(type_) and not after.has(type_):
            yield _impossible(f"cannot disable the terminal {type_}=True condition")
    if before.has("SuccessCriteriaMet") and not after.has("SuccessCriteriaMet"):
        yield _impossible("cannot disable the SuccessCriteriaMet=True condition")


def _times(after: _Status, before: _Status) -> Iterator[FieldError]:
    started, completed = after.seconds("startTime"), after.seconds("completionTime")
    was_started, was_completed = before.seconds("startTime"), before.seconds("completionTime")
    path, shown = "status.completionTime", after.get("completionTime")
    is_complete = after.has("Complete")
    if is_complete != before.has("Complete") or after.differs(before, "completionTime"):
        if completed is not None and not is_complete:
            detail = "cannot set completionTime when there is no Complete=True condition"
            yield field_errors.invalid(path, shown, detail)
        if completed is None and is_complete:
            yield field_errors.required(path, "completionTime is required for Complete jobs")
    is_before = started is not None and completed is not None and completed < started
    if is_before and after.differs(before, "startTime", "completionTime"):
        yield field_errors.invalid(path, shown, "completionTime cannot be set before startTime")
    if completed is not None and was_completed is not None and completed != was_completed:
        yield field_errors.invalid(path, shown, "completionTime cannot be mutated")
    is_resumed = before.has("Suspended") and after.has("Suspended", "False")
    may_change = was_started is None or after.spec.get("suspend") or is_resumed
    if started != was_started and not may_change:
        detail = "startTime cannot be removed for unsuspended job"
        yield field_errors.required("status.startTime", detail)


def _end(after: _Status, before: _Status) -> Iterator[FieldError]:
    """Evaluate what a Job that has ended may still have."""
    if not after.is_finished:
        return
    ends_now = not before.is_finished
    for name in ("active", "terminating"):
        if after.count(name) > 0 and (ends_now or after.differs(before, name)):
            detail = f"{name}>0 is invalid for finished job"
            yield field_errors.invalid(f"status.{name}", after.count(name), detail)
    if after.get("startTime") is None and (ends_now or after.differs(before, "startTime")):
        yield field_errors.required("status.startTime", "startTime is required for finished job")
    uncounted = after.get("uncountedTerminatedPods") or {}
    is_news = ends_now or after.differs(before, "uncountedTerminatedPods")
    if any(uncounted.values()) and is_news:
        detail = "uncountedTerminatedPods needs to be empty for finished job"
        yield field_errors.invalid("status.uncountedTerminatedPods", uncounted, detail)


def _indexes(after: _Status, before: _Status) -> Iterator[FieldError]:
    completed, failed = after.get("completedIndexes") or "", after.get("failedIndexes")
    path, failed_path = "status.completedIndexes", "status.failedIndexes"
    if after.differs(before, "completedIndexes"):
        if completed and not after.is_indexed:
            detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
            yield field_errors.invalid(path, completed, detail)
        yield from _format(after, completed, path)
    if after.differs(before, "failedIndexes") and failed is not None:
        if after.spec.get("backoffLimitPerIndex") is None:
            detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            yield field_errors.invalid(failed_path, failed, detail)
        else:
            yield from _format(after, failed, failed_path)
    if after.differs(before, "completedIndexes", "failedIndexes") and failed and completed:
        shared = _first_shared(completed, failed)
        if shared is not None:
            detail = f"failedIndexes and completedIndexes overlap at index: {shared}"
            yield field_errors.invalid(failed_path, failed, detail)


def _format(after: _Status, text: str, path: str) -> Iterator[FieldError]:
    if after.completions is None:
        return
    try:
        Indexes.parse(text, below=after.completions)
    except ValueError as exc:
        detail = f"error parsing {path.rpartition('.')[2]}: {exc}"
        yield field_errors.invalid(path, text, detail)


def _first_shared(one: str, other: str) -> int | None:
    """Return the first index that both texts name; None also if a text makes no sense."""
    try:
        mine, others = Indexes.parse(one), Indexes.parse(other)
    except ValueError:
        return None
    shared = (
        max(first, start)
        for first, last in mine.intervals
        for start, end in others.intervals
        if first <= end and start <= last
    )
    return next(shared, None)


def _impossible(detail: str) -> FieldError:
    return FieldError(CONDITIONS, "FieldValueInvalid", f"Invalid value: {detail}")
