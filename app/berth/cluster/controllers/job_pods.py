"""Pods of a Job: which count, which have failed and what that means.

Pods are counted with the help of a finalizer (KEP-2307): one that has ended is noted in the status,
then loses the finalizer, then is counted. So none is counted twice, and none is forgotten.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from berth.cluster.controllers.job_backoff import FAILURES, all_failures, finish_time, number_in
from berth.cluster.controllers.views import WorkloadView
from berth.cluster.indexes import Indexes
from berth.cluster.pods.controllers import ContainerStatusView, JobPodView, PodView
from berth.cluster.resources import Object

FINALIZER: Final = "batch.kubernetes.io/job-tracking"
INDEX: Final = "batch.kubernetes.io/job-completion-index"
"""Annotation and label."""
MANAGER: Final = "kubernetes.io/job-controller"
"""The ``managedBy`` that means this controller, as no ``managedBy`` does."""


class JobView(WorkloadView, frozen=True):
    """A Job."""

    @property
    def parallelism(self) -> int:
        return self._number("parallelism", 1)

    @property
    def completions(self) -> int | None:
        wanted = self.spec.get("completions")
        return None if wanted is None else int(wanted)

    @property
    def is_indexed(self) -> bool:
        return self.spec.get("completionMode") == "Indexed" and self.completions is not None

    @property
    def is_suspended(self) -> bool:
        return bool(self.spec.get("suspend"))

    @property
    def backoff_limit(self) -> int:
        return self._number("backoffLimit", 6)

    @property
    def backoff_limit_per_index(self) -> int | None:
        limit = self.spec.get("backoffLimitPerIndex")
        return int(limit) if self.is_indexed and limit is not None else None

    @property
    def is_ours(self) -> bool:
        """Whether its ``managedBy`` leaves it to this controller."""
        return self.spec.get("managedBy") in (None, MANAGER)

    @property
    def replaces_only_failed(self) -> bool:
        """Whether a pod that is being deleted counts as failed only when it says so."""
        policy = self.spec.get("podReplacementPolicy")
        return policy == "Failed" or self.spec.get("podFailurePolicy") is not None

    @property
    def restart_policy(self) -> str:
        pod = (self.spec.get("template") or {}).get("spec") or {}
        return str(pod.get("restartPolicy") or "")

    def condition(self, type_: str) -> Object | None:
        """Return the condition of that type if it is true."""
        for each in self.status.get("conditions") or ():
            if each.get("type") == type_ and each.get("status") == "True":
                found: Object = each
                return found
        return None

    @property
    def end(self) -> Object | None:
        """The condition that says that it has ended."""
        return self.condition("Complete") or self.condition("Failed")

    def has_index(self, index: int | None) -> bool:
        return index is not None and self.completions is not None and index < self.completions

    def _number(self, field: str, default: int) -> int:
        value = self.spec.get(field)
        return default if value is None else int(value)


@dataclass(frozen=True, slots=True)
class Failure:
    """What the failure of a pod means by the Job's ``podFailurePolicy``."""

    counts: bool = True
    fails_index: bool = False
    fails_job: str = ""
    """Why, if it does."""


@dataclass(frozen=True, slots=True)
class Tally:
    """A Job's pods, sorted out."""

    active: list[PodView]
    terminating: list[PodView]
    ended_well: list[PodView]
    """Those with the finalizer that have succeeded, whether or not the status knows."""
    ended_badly: list[PodView]
    """Those with the finalizer that have failed, whether or not their failures count."""
    failed_now: list[PodView]
    """Those that have failed and are not in the Job's status yet; they count."""
    succeeded_now: list[PodView]
    uncounted_succeeded: list[str]
    uncounted_failed: list[str]
    """Uids in the status that are still to be counted, because their pods have the finalizer."""
    counted_succeeded: int
    counted_failed: int
    completed: Indexes
    """Including those of *succeeded_now*."""
    failed_indexes: Indexes
    last_failures: dict[int, PodView]
    """By index: a failed pod whose failures the next one is to continue."""
    held: list[PodView]
    """Those with the finalizer."""
    is_indexed: bool

    @property
    def succeeded(self) -> int:
        if self.is_indexed:
            return len(self.completed)
        return self.counted_succeeded + len(self.uncounted_succeeded) + len(self.succeeded_now)

    @property
    def failed(self) -> int:
        return self.counted_failed + len(self.uncounted_failed) + len(self.failed_now)


def tally(job: JobView, pods: Sequence[PodView]) -> Tally:
    """Sort out the *pods* that *job* controls."""
    status = job.status
    held = [pod for pod in pods if is_held(pod)]
    held_uids = {pod.metadata.uid for pod in held}
    noted = status.get("uncountedTerminatedPods") or {}
    succeeded: list[str] = noted.get("succeeded") or []
    failed: list[str] = noted.get("failed") or []
    still_succeeded = [uid for uid in succeeded if uid in held_uids]
    still_failed = [uid for uid in failed if uid in held_uids]
    active = [pod for pod in pods if pod.is_active]
    valid = [pod for pod in held if not job.is_indexed or job.has_index(index_of(pod))]
    completed = _stored_indexes(job, "completedIndexes")
    new_succeeded = [
        pod
        for pod in valid
        if pod.status.phase == "Succeeded"
        and pod.metadata.uid not in failed
        and pod.metadata.uid not in succeeded
        and (not job.is_indexed or index_of(pod) not in completed)
    ]
    all_failed = [pod for pod in valid if is_failed(pod, job)]
    completed |= Indexes.of(index for pod in new_succeeded for index in _indexes_of(pod))
    failed_indexes = _stored_indexes(job, "failedIndexes") | Indexes.of(
        index for pod in all_failed if _fails_index(pod, job) for index in _indexes_of(pod)
    )
    return Tally(
        active=active,
        terminating=[
            pod for pod in pods if pod.metadata.deletion_timestamp and not pod.is_finished
        ],
        ended_well=[pod for pod in valid if pod.status.phase == "Succeeded"],
        ended_badly=all_failed,
        failed_now=[
            pod
            for pod in all_failed
            if pod.metadata.uid not in failed and failure_of(pod, job).counts
        ],
        succeeded_now=new_succeeded,
        uncounted_succeeded=still_succeeded,
        uncounted_failed=still_failed,
        counted_succeeded=job.count("succeeded") + len(succeeded) - len(still_succeeded),
        counted_failed=job.count("failed") + len(failed) - len(still_failed),
        completed=completed,
        failed_indexes=failed_indexes,
        last_failures=_last_failures(job, all_failed, active, completed, failed_indexes),
        held=held,
        is_indexed=job.is_indexed,
    )


def settled(
    job: JobView, sorted_out: Tally, failing: Iterable[PodView], *, ending: bool
) -> Iterator[PodView]:
    """Yield the pods that may lose the finalizer: the status has what there is to know of them.

    Those in *failing* are still to be noted. The last failure of an index is kept until the next
    pod carries on counting, or nothing is to come (*ending*).
    """
    noted = job.status.get("uncountedTerminatedPods") or {}
    uids = {*(noted.get("succeeded") or ()), *(noted.get("failed") or ())}
    completed = _stored_indexes(job, "completedIndexes")
    kept = {pod.metadata.uid for pod in sorted_out.last_failures.values()}
    unnoted = {pod.metadata.uid for pod in (*failing, *sorted_out.succeeded_now)}
    for pod in sorted_out.held:
        index = index_of(pod)
        if pod.metadata.uid in uids or job.metadata.deletion_timestamp is not None:
            yield pod
        elif ending:
            if pod.metadata.uid not in unnoted:
                yield pod
        elif pod.metadata.uid in kept:
            continue
        elif job.is_indexed and not job.has_index(index):
            if pod.is_finished or is_failed(pod, job):
                yield pod
        elif pod.status.phase == "Succeeded":
            if job.is_indexed and index in completed:
                yield pod
        elif is_failed(pod, job) and not failure_of(pod, job).counts:
            yield pod


def is_held(pod: PodView) -> bool:
    return FINALIZER in (pod.metadata.finalizers or ())


def is_failed(pod: PodView, job: JobView) -> bool:
    """Whether *pod* has failed, or will never say how it ended."""
    if pod.status.phase == "Failed":
        return True
    is_leaving = pod.metadata.deletion_timestamp is not None and pod.status.phase != "Succeeded"
    return is_leaving and not job.replaces_only_failed


def index_of(pod: PodView) -> int | None:
    """Return the completion index; None: the pod has none."""
    index = number_in(pod, INDEX, missing=-1)
    return index if index >= 0 else None


def containers_of(pod: PodView) -> list[ContainerStatusView]:
    """Return what is known of the containers, those that prepare the pod last."""
    if not isinstance(pod, JobPodView):
        return []
    return [
        *(pod.status.container_statuses or ()),
        *(pod.status.init_container_statuses or ()),
    ]


def failure_of(pod: PodView, job: JobView) -> Failure:
    """Return what the failure of *pod* means: the first rule that fits says it."""
    policy = job.spec.get("podFailurePolicy") or {}
    for number, rule in enumerate(policy.get("rules") or ()):
        matched = _matches(pod, rule, number)
        if not matched:
            continue
        match rule.get("action"):
            case "Ignore":
                return Failure(counts=False)
            case "FailIndex" if job.backoff_limit_per_index is not None:
                return Failure(fails_index=True)
            case "FailJob":
                return Failure(fails_job=matched)
            case "Count":
                return Failure()
    return Failure()


def indexes_in_use(pods: Collection[PodView]) -> Indexes:
    return Indexes.of(index for pod in pods for index in _indexes_of(pod))


def _matches(pod: PodView, rule: Object, number: int) -> str:
    """Return how *pod* fits a rule, in the words of the API; empty if it does not."""
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    codes = rule.get("onExitCodes")
    if codes is not None:
        for each in containers_of(pod):
            ended = each.state.terminated
            if codes.get("containerName") not in (None, each.name):
                continue
            if ended is None or ended.exit_code == 0:
                continue
            if (ended.exit_code in codes["values"]) == (codes["operator"] == "In"):
                what = f"failed with exit code {ended.exit_code}"
                return (
                    f"Container {each.name} for pod {name} {what} "
                    f"matching {rule['action']} rule at index {number}"
                )
    patterns = [
        (on_pod_condition["type"], on_pod_condition.get("status", "True"))
        for on_pod_condition in rule.get("onPodConditions") or ()
    ]
    for condition in pod.status.conditions or ():
        if (condition.type, condition.status) in patterns:
            what = f"has condition {condition.type}"
            return f"Pod {name} {what} matching {rule['action']} rule at index {number}"
    return ""


def _fails_index(pod: PodView, job: JobView) -> bool:
    limit = job.backoff_limit_per_index
    if limit is None:
        return False
    failure = failure_of(pod, job)
    return failure.fails_index or (failure.counts and number_in(pod, FAILURES) >= limit)


def _last_failures(
    job: JobView,
    failed: Iterable[PodView],
    active: Collection[PodView],
    completed: Indexes,
    failed_indexes: Indexes,
) -> dict[int, PodView]:
    if job.backoff_limit_per_index is None:
        return {}
    settled_indexes = completed | failed_indexes | indexes_in_use(active)
    last: dict[int, PodView] = {}
    for pod in failed:
        index = index_of(pod)
        if index is None or index in settled_indexes:
            continue
        other = last.get(index)
        if other is None or _is_later(pod, other):
            last[index] = pod
    return last


def _is_later(pod: PodView, other: PodView) -> bool:
    """Whether *pod* has as many failures before it as *other*, and did not end before it."""
    is_older = all_failures(pod) < all_failures(other)
    return not is_older and finish_time(pod) >= finish_time(other)


def _indexes_of(pod: PodView) -> Iterator[int]:
    index = index_of(pod)
    if index is not None:
        yield index


def _stored_indexes(job: JobView, field: str) -> Indexes:
    """Return the indexes that the status says; none if it makes no sense."""
    text: Any = job.status.get(field) or ""
    try:
        return Indexes.parse(text).below(job.completions or 0)
    except ValueError:
        return Indexes()
