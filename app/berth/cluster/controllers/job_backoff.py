"""Backoff of a Job after failed pods (``backoff_utils.go``)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from berth.cluster.pods.controllers import ContainerStatusView, JobPodView, PodView
from berth.cluster.times import seconds_of

FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
"""Annotations of a pod: the failures of its index before it."""

FIRST_BACKOFF: Final = 10.0
LONGEST_BACKOFF: Final = 600.0
"""Seconds between a failure and the next pod, doubled with every failure in a row."""


@dataclass(frozen=True, slots=True)
class BackoffRecord:
    """The failures of a Job since its last success. It outlives the pods."""

    failures: int = 0
    last: float = 0.0
    """When the last of them was, in unix seconds."""
    counted: frozenset[str] = frozenset()
    """Uids of the pods that are part of this and have the finalizer still."""

    def with_ended(
        self, succeeded: Iterable[PodView], failed: Iterable[PodView]
    ) -> "BackoffRecord":
        """Count the pods that have ended and have the finalizer still, each once."""
        ends = {pod.metadata.uid: finish_time(pod) for pod in failed}
        successes = {pod.metadata.uid: finish_time(pod) for pod in succeeded}
        new = [time for uid, time in ends.items() if uid not in self.counted]
        new_successes = [time for uid, time in successes.items() if uid not in self.counted]
        failures, last = self.failures, self.last
        if new_successes:
            new = [time for time in new if time > max(new_successes)]
            failures, last = 0, 0.0
        return BackoffRecord(
            failures + len(new), max(new, default=last), frozenset(ends.keys() | successes.keys())
        )

    def wait(self, now: float) -> float:
        """Return the seconds until there may be another pod."""
        return _wait(self.failures, self.last, now)


def backoff_of_index(last_failure: PodView | None, now: float) -> float:
    """Return the seconds until the index of *last_failure* may have another pod."""
    if last_failure is None:
        return 0.0
    return _wait(all_failures(last_failure) + 1, finish_time(last_failure), now)


def all_failures(pod: PodView) -> int:
    """Return the failures of its index before *pod*, those that do not count included."""
    return number_in(pod, FAILURES) + number_in(pod, IGNORED_FAILURES)


def number_in(pod: PodView, annotation: str, *, missing: int = 0) -> int:
    text = (pod.metadata.annotations or {}).get(annotation, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 11 else missing


def finish_time(pod: PodView) -> float:
    """Return when *pod* ended, in unix seconds, as well as can be told.

    When its last container did; when it became unready; when its deletion was asked for; else when
    it was created.
    """
    if isinstance(pod, JobPodView):
        ends = [_finished_at(each) for each in _containers_that_end(pod)]
        if ends and all(ends):
            return seconds_of(max(ends))
    for condition in pod.status.conditions or ():
        if condition.type == "Ready" and condition.status == "False":
            if condition.last_transition_time:
                return seconds_of(condition.last_transition_time)
            break
    meta = pod.metadata
    if meta.deletion_timestamp:
        grace = pod.metadata.deletion_grace_period_seconds if isinstance(pod, JobPodView) else None
        return seconds_of(meta.deletion_timestamp) - (grace or 0)
    return seconds_of(meta.creation_timestamp) if meta.creation_timestamp else 0.0


def _containers_that_end(pod: JobPodView) -> list[ContainerStatusView]:
    """Return the containers that end with the pod: those of the app, and sidecars."""
    sidecars = {
        container.name
        for container in pod.spec.init_containers or ()
        if container.restart_policy == "Always"
    }
    started = pod.status.init_container_statuses or ()
    return [
        *(pod.status.container_statuses or ()),
        *(each for each in started if each.name in sidecars),
    ]


def _finished_at(container: ContainerStatusView) -> str:
    ended = container.state.terminated
    return (ended.finished_at or "") if ended is not None else ""


def _wait(failures: int, last: float, now: float) -> float:
    """Return the seconds to wait after so many *failures*, the last one at *last*."""
    if failures == 0:
        return 0.0
    wait = min(FIRST_BACKOFF * 2.0 ** min(failures - 1, 30), LONGEST_BACKOFF)
    return max(last + wait - now, 0.0)
