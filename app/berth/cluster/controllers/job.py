"""Jobs: pods that run until enough of them have succeeded, or too many have failed."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from berth.cluster.actions import STRATEGIC_MERGE, Action, Create, Delete, Patch
from berth.cluster.controllers import job_status
from berth.cluster.controllers.claims import claim, owner_reference, reference_to, selector_of
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.deletion_order import in_order_of_deletion
from berth.cluster.controllers.expectations import (
    PREFIX_LENGTH,
    Expectations,
    new_name,
    sooner,
)
from berth.cluster.controllers.job_backoff import (
    FAILURES,
    IGNORED_FAILURES,
    BackoffRecord,
    backoff_of_index,
    number_in,
)
from berth.cluster.controllers.job_pods import (
    FINALIZER,
    INDEX,
    JobView,
    Tally,
    failure_of,
    index_of,
    indexes_in_use,
    is_held,
    settled,
    tally,
)
from berth.cluster.controllers.job_workload import ALONE, POD_GROUPS, WORKLOADS, JobWorkloads
from berth.cluster.controllers.replica_set import (
    BURST,
    may_be_adopted,
    pod_path,
    tell_of_pod,
)
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.indexes import Indexes
from berth.cluster.kinds.builtin import find
from berth.cluster.kinds.gates import SCHEDULING, WORKLOAD_WITH_JOB
from berth.cluster.object_views import OwnerReference, metadata_of
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object
from berth.cluster.strategies.selectors import matches
from berth.runtime.clock import Clock

JOBS: Final = find("batch", "v1", "jobs")
ORPHAN: Final = "pod:"
"""Before the key of a pod that has the finalizer and no controller."""
INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"


class JobController:
    """Decides which pods to make and to delete, and what has come of them. Writes nothing."""

    name = "job"

    def __init__(
        self,
        jobs: Table[JobView],
        pods: Table[PodView],
        *,
        clock: Clock,
        rng: random.Random,
        recorder: EventRecorder,
        workloads: JobWorkloads | None = None,
    ) -> None:
        """*workloads* has pods that belong together name a PodGroup; None: they do not."""
        self._workloads = workloads
        self._jobs = jobs
        self._pods = pods
        self._clock = clock
        self._rng = rng
        self._recorder = recorder
        self._expectations = Expectations(clock)
        self._backoffs: dict[str, BackoffRecord] = {}
        self._news: dict[str, list[job_status.News]] = {}
        """By key: what is to be told once the status is written."""
        self._owners: dict[str, set[str]] = {}
        """By key: uids of Jobs of that name whose pods may have the finalizer still."""

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def job_changed(old: JobView | None, new: JobView | None) -> None:
            meta = metadata_of(old, new)
            self._owners.setdefault(meta.key, set()).add(meta.uid)
            enqueue(meta.key)

        def pod_changed(old: PodView | None, new: PodView | None) -> None:
            if old is None and new is not None:
                self._expectations.see(new)
            for pod in (old, new):
                controller = pod.metadata.controller if pod is not None else None
                if pod is not None and controller is not None and _is_job(controller):
                    key = f"{pod.metadata.namespace}/{controller.name}"
                    self._owners.setdefault(key, set()).add(controller.uid)
                    enqueue(key)
            if new is None or new.metadata.controller is not None:
                return
            if is_held(new):
                enqueue(ORPHAN + new.metadata.key)
            if may_be_adopted(old, new):
                for job in self._selecting(new):
                    enqueue(job.metadata.key)

        self._jobs.listen(job_changed)
        self._pods.listen(pod_changed)
        if self._workloads is not None:
            self._workloads.subscribe(enqueue)

    def plan(self, key: str) -> Plan:
        if key.startswith(ORPHAN):
            return self._orphan(key.removeprefix(ORPHAN))
        job = self._jobs.get(key)
        actions: list[Action] = [*self._released(key, job)]
        if job is None:
            self._expectations.forget(key)
            self._news.pop(key, None)
        if job is None or job.end is not None:
            self._backoffs.pop(key, None)
            return Plan(actions)
        if not job.is_ours:
            return Plan(actions)
        return self._sync(key, job, actions)

    def finished(self, key: str, outcome: Outcome) -> None:
        """Tell what happened; forget what was asked for if it certainly did not happen."""
        self._expectations.finished(key, outcome)
        job, action = self._jobs.get(key), outcome.action
        if job is None or outcome.skipped:
            return
        about = reference_to(job, JOBS)
        if isinstance(action, Create) and action.body["kind"] != "Pod":
            if outcome.error is None and action.body["kind"] == "Workload":
                name = action.body["metadata"]["name"]
                message = f"Created Workload {name} for Job {job.metadata.name}"
                self._recorder.event(about, reason="WorkloadCreated", message=message)
            return
        tell_of_pod(outcome, about, self._recorder)
        if isinstance(action, Patch) and action.path.endswith("/status"):
            for news in self._news.pop(key, ()) if outcome.error is None else ():
                self._recorder.event(
                    about, type=news.type, reason=news.reason, message=news.message
                )

    def _released(self, key: str, job: JobView | None) -> list[Patch]:
        """Return the release of pods that no Job counts: it is gone, or has ended."""
        owners = self._owners.get(key, set())
        patches: list[Patch] = []
        for uid in list(owners):
            is_present = job is not None and job.metadata.uid == uid
            if is_present and job is not None and (job.end is None or not job.is_ours):
                continue
            found = [_release(pod) for pod in self._pods.controlled(uid) if is_held(pod)]
            patches += found
            if not found and not is_present:
                owners.discard(uid)
        if not owners:
            self._owners.pop(key, None)
        return patches

    def _orphan(self, key: str) -> Plan:
        """Let a pod go that no Job controls, and none is going to adopt."""
        pod = self._pods.get(key)
        if pod is None or pod.metadata.controller is not None or not is_held(pod):
            return NOTHING
        if any(self._selecting(pod)):
            return NOTHING
        return Plan([_release(pod)])

    def _selecting(self, pod: PodView) -> Iterator[JobView]:
        """Yield the Jobs that would adopt *pod*."""
        labels = pod.metadata.labels or {}
        for job in self._jobs.in_namespace(pod.metadata.namespace):
            if job.end is None and matches(selector_of(job), labels):
                yield job

    def _sync(self, key: str, job: JobView, actions: list[Action]) -> Plan:
        now = self._clock.now()
        claimed = claim(job, JOBS, self._pods, path=pod_path, finalizer=FINALIZER)
        pods = claimed.owned
        gang = ALONE if self._workloads is None else self._workloads.of(job, pods)
        if gang.create is not None:
            return Plan([*actions, *claimed.actions, gang.create])
        sorted_out = tally(job, pods)
        unseen = self._expectations.unseen(key)
        present = self._expectations.remaining(key, sorted_out.active)
        started = job_status.start_time(job, now=now)
        until_deadline = job_status.seconds_until_deadline(job, started, now=now)
        end = job_status.end_of(job, sorted_out, pods, until_deadline=until_deadline)
        backoff = self._backoffs[key] = self._backoffs.get(key, BackoffRecord()).with_ended(
            sorted_out.ended_well, sorted_out.ended_badly
        )
        again: float | None = None
        changes: list[Action] = []
        if end is None and job_status.is_complete(job, sorted_out, len(present) + len(unseen)):
            end = job_status.REACHED
        if end is not None:
            changes = self._end(key, end, present)
        elif job.metadata.deletion_timestamp is None:
            changes, wait = self._manage(
                key, job, sorted_out, present, unseen, backoff=backoff, group=gang.group
            )
            again = sooner(until_deadline, wait)
        failing = job_status.failing_pods(job, sorted_out, end)
        is_over = not (unseen or sorted_out.active or sorted_out.terminating or sorted_out.held)
        status = job_status.status_of(
            job,
            sorted_out,
            end=end,
            failing=failing,
            started=started,
            present=present,
            is_over=is_over,
            now=now,
        )
        changed = job_status.changes(job, status)
        self._news[key] = job_status.news_of(job, changed)
        actions += _status_patch(job, changed)
        actions += claimed.actions
        actions += changes
        actions += [
            _release(pod) for pod in settled(job, sorted_out, failing, ending=end is not None)
        ]
        return Plan(actions, again=sooner(again, self._expectations.wait(key)))

    def _manage(
        self,
        key: str,
        job: JobView,
        sorted_out: Tally,
        present: list[PodView],
        unseen: Mapping[str, str],
        *,
        backoff: BackoffRecord,
        group: str,
    ) -> tuple[list[Action], float | None]:
        """Return the pods to make or to delete, and the seconds until there may be more."""
        active = len(present) + len(unseen)
        wanted = 0 if job.is_suspended else _wanted(job, sorted_out, active)
        if unseen and active > wanted:
            return [], None  # the choice would fall on those that run
        surplus = _surplus(job, present, max(active - wanted, 0))[:BURST]
        if surplus:
            return self._remove(key, surplus), None
        if job.replaces_only_failed:
            wanted -= len(sorted_out.terminating)
        missing = min(wanted - active, BURST)
        if missing <= 0 or job.is_suspended:
            return [], None
        now = self._clock.now()
        if job.backoff_limit_per_index is None:
            wait = backoff.wait(now)
            if wait > 0:
                return [], wait
        if not job.is_indexed:
            return self._make(key, job, [None] * missing, sorted_out, unseen, group), None
        used = indexes_in_use(present) | Indexes.of(int(use) for use in unseen.values() if use)
        if job.replaces_only_failed:
            used |= indexes_in_use(sorted_out.terminating)
        used = used | sorted_out.completed | sorted_out.failed_indexes
        indexes = used.missing(job.completions or 0, missing)
        waits = {
            index: backoff_of_index(sorted_out.last_failures.get(index), now) for index in indexes
        }
        due = [index for index, wait in waits.items() if wait <= 0]
        later = min((wait for wait in waits.values() if wait > 0), default=None)
        return self._make(key, job, due, sorted_out, unseen, group), later

    def _end(self, key: str, end: job_status.End, present: Sequence[PodView]) -> list[Action]:
        """Return how the pods that are left go.

        Those of a Job that has succeeded do not count as failed: they lose the finalizer first.
        """
        if end.type == job_status.SUCCESS:
            present = [pod for pod in present if not is_held(pod)]
        self._expectations.delete(key, present)
        return [_delete(pod) for pod in present]

    def _remove(self, key: str, surplus: Sequence[PodView]) -> list[Action]:
        """Return how pods go that are not to count as failed: without the finalizer first."""
        free = [pod for pod in surplus if not is_held(pod)]
        self._expectations.delete(key, free)
        return [
            *(_release(pod) for pod in surplus if is_held(pod)),
            *(_delete(pod) for pod in free),
        ]

    def _make(
        self,
        key: str,
        job: JobView,
        indexes: Sequence[int | None],
        sorted_out: Tally,
        unseen: Mapping[str, str],
        group: str,
    ) -> list[Action]:
        meta = job.metadata
        names: dict[str, str] = {}
        creates: list[Action] = []

        def is_taken(name: str) -> bool:
            is_asked_for = name in names or name in unseen
            return is_asked_for or self._pods.get(f"{meta.namespace}/{name}") is not None

        for index in indexes:
            prefix = _prefix(meta.name, index)
            name = new_name(self._rng, prefix, is_taken)
            names[name] = "" if index is None else str(index)
            last = None if index is None else sorted_out.last_failures.get(index)
            body = _pod(job, name, prefix, index, last)
            if group:
                body["spec"] = {**body["spec"], "schedulingGroup": {"podGroupName": group}}
            creates.append(Create(f"/api/v1/namespaces/{meta.namespace}/pods", body))
        self._expectations.create(key, names)
        return creates


def new_controller(context: ControllerContext) -> JobController:
    return JobController(
        context.table("jobs.batch", JobView),
        context.table("pods", PodView),
        clock=context.clock,
        rng=context.rng,
        recorder=context.recorder("job-controller"),
        workloads=_workloads(context),
    )


def _workloads(context: ControllerContext) -> JobWorkloads | None:
    workloads = context.registry.stored(SCHEDULING, WORKLOADS)
    groups = context.registry.stored(SCHEDULING, POD_GROUPS)
    if workloads is None or groups is None or WORKLOAD_WITH_JOB not in context.features:
        return None
    return JobWorkloads(
        context.table(workloads.storage_key, ResourceView),
        context.table(groups.storage_key, ResourceView),
        api_version=groups.group_version,
    )


def _is_job(owner: OwnerReference) -> bool:
    """Whether *owner* is a Job of ours; others call theirs so too."""
    return (owner.api_version, owner.kind) == (JOBS.group_version, JOBS.kind)


def _wanted(job: JobView, sorted_out: Tally, active: int) -> int:
    """Return how many pods there should be at a time."""
    if job.completions is None:
        # A queue that one of them has found empty is left to the others.
        return active if sorted_out.succeeded > 0 else job.parallelism
    left = job.completions - sorted_out.succeeded - len(sorted_out.failed_indexes)
    return max(min(left, job.parallelism), 0)


def _surplus(job: JobView, active: Sequence[PodView], at_least: int) -> list[PodView]:
    """Return the pods to delete: without a valid index of their own, then as few as will do.

    Those that have lost the finalizer are on their way out already.
    """
    surplus: list[PodView] = []
    left = in_order_of_deletion(active)
    if job.is_indexed:
        by_index: dict[int | None, list[PodView]] = {}
        for pod in left:
            index = index_of(pod)
            by_index.setdefault(index if job.has_index(index) else None, []).append(pod)
        for index, pods in by_index.items():
            surplus += pods if index is None else pods[:-1]
        left = [pod for pod in left if pod not in surplus]
    left.sort(key=is_held)
    return surplus + left[: max(at_least - len(surplus), 0)]


def _prefix(name: str, index: int | None) -> str:
    if index is None:
        return f"{name}-"
    suffix = f"-{index}-"
    return name[: PREFIX_LENGTH - len(suffix)] + suffix


def _pod(
    job: JobView, name: str, prefix: str, index: int | None, last_failure: PodView | None
) -> Object:
    meta = job.metadata
    template: Object = job.spec.get("template") or {}
    of_template: Object = template.get("metadata") or {}
    spec: Object = template.get("spec") or {}
    labels = {**(of_template.get("labels") or {})}
    annotations = {**(of_template.get("annotations") or {})}
    if index is not None:
        annotations[INDEX] = labels[INDEX] = str(index)
        spec = {**spec, "hostname": f"{meta.name}-{index}"}
        for field in ("initContainers", "containers"):
            if spec.get(field):
                spec[field] = [_with_index(each) for each in spec[field]]
    if job.backoff_limit_per_index is not None:
        annotations |= _failure_counts(job, last_failure)
    finalizers = [*(of_template.get("finalizers") or ())]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": prefix,
            "namespace": meta.namespace,
            "labels": labels,
            **({"annotations": annotations} if annotations else {}),
            "finalizers": finalizers if FINALIZER in finalizers else [*finalizers, FINALIZER],
            "ownerReferences": [owner_reference(job, JOBS)],
        },
        "spec": spec,
    }


def _failure_counts(job: JobView, last: PodView | None) -> dict[str, str]:
    """Return the annotations that carry on counting the failures of an index."""
    failures = 0 if last is None else number_in(last, FAILURES)
    ignored = 0 if last is None else number_in(last, IGNORED_FAILURES)
    if last is not None:
        counts = failure_of(last, job).counts
        failures, ignored = failures + counts, ignored + (not counts)
    return {FAILURES: str(failures), **({IGNORED_FAILURES: str(ignored)} if ignored else {})}


def _with_index(container: Object) -> Object:
    """Return *container* with the variable that says its index, unless it has one."""
    variables: list[Any] = container.get("env") or []
    if any(variable.get("name") == INDEX_VARIABLE for variable in variables):
        return container
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*variables, {"name": INDEX_VARIABLE, "valueFrom": source}]}


def _delete(pod: PodView) -> Delete:
    return Delete(pod_path(pod), pod.metadata.uid)


def _release(pod: PodView) -> Patch:
    """Return the patch that lets *pod* go."""
    metadata = {
        "uid": pod.metadata.uid,
        "$deleteFromPrimitiveList/finalizers": [FINALIZER],
    }
    return Patch(pod_path(pod), {"metadata": metadata}, STRATEGIC_MERGE)


def _status_patch(job: JobView, changed: Object) -> list[Patch]:
    """Return the patch of the status, made for the state that was looked at and no other."""
    if not changed:
        return []
    meta = job.metadata
    metadata = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    path = f"{JOBS.path_of(meta.namespace, meta.name)}/status"
    return [Patch(path, {"metadata": metadata, "status": changed})]
