"""DaemonSets: a pod on every node that is fit for it. The scheduler binds them."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from berth.cluster.actions import Action, Create, Delete
from berth.cluster.controllers.availability import seconds_until_available
from berth.cluster.controllers.claims import claim, reference_to, selector_of
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.daemon_nodes import (
    DAEMON_SETS,
    HASH,
    Eligibility,
    Verdict,
    node_of,
    pod_for,
)
from berth.cluster.controllers.daemon_update import NodePods, limits_of, next_step, sort_pods
from berth.cluster.controllers.expectations import Expectations, new_name, sooner
from berth.cluster.controllers.history import (
    forget_revisions,
    names_of_others,
    present_revision,
    revision_path,
)
from berth.cluster.controllers.replica_set import pod_path, status_patch, tell_of_pod
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import NodeView, RevisionView, WorkloadView
from berth.cluster.events.correlator import Reference
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.object_views import controllers_of, metadata_of
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object
from berth.cluster.strategies.selectors import matches
from berth.kube.objects.taints import COMPARISONS
from berth.runtime.clock import Clock

BURST: Final = 250
"""Pods created or deleted in one plan, as upstream's."""

FIRST_BACKOFF: Final = 1.0
LONGEST_BACKOFF: Final = 900.0
"""Seconds before a failed pod on the same node is replaced again, doubled each time."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A DaemonSet, the nodes and its pods."""

    daemon_set: WorkloadView
    revision: str
    """The hash of its template."""
    verdicts: Mapping[str, Verdict]
    """What it means to each node."""
    pods: Mapping[str, list[PodView]]
    """By node, the oldest first; also those of nodes that are gone."""
    available: Mapping[str, bool]
    """By uid: whether a pod has been ready for long enough."""
    until_available: float | None
    """Seconds until the next one has."""

    def is_new(self, pod: PodView) -> bool:
        return (pod.metadata.labels or {}).get(HASH) == self.revision

    def sorted_pods(self, node: str) -> NodePods | None:
        return sort_pods(self.pods.get(node, ()), self.is_new)


class DaemonSetController:
    """Decides which nodes get a pod, and which pods go. Reads tables, writes nothing."""

    name = "daemonset"

    def __init__(
        self,
        daemon_sets: Table[WorkloadView],
        pods: Table[PodView],
        nodes: Table[NodeView],
        revisions: Table[RevisionView],
        *,
        clock: Clock,
        rng: random.Random,
        recorder: EventRecorder,
        comparisons: bool = False,
    ) -> None:
        """*comparisons* as in :func:`berth.kube.objects.taints.tolerates`."""
        self._comparisons = comparisons
        self._daemon_sets = daemon_sets
        self._pods = pods
        self._nodes = nodes
        self._revisions = revisions
        self._clock = clock
        self._rng = rng
        self._recorder = recorder
        self._expectations = Expectations(clock)
        self._eligibility: dict[str, Eligibility] = {}
        self._failures: dict[tuple[str, str], tuple[int, float]] = {}
        """By DaemonSet and node: how often its pod failed, and when the last was deleted."""

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def daemon_set_changed(old: WorkloadView | None, new: WorkloadView | None) -> None:
            enqueue(metadata_of(old, new).key)

        def owned_changed(
            old: PodView | RevisionView | None, new: PodView | RevisionView | None
        ) -> None:
            for key in controllers_of("DaemonSet", old, new):
                enqueue(key)

        def pod_changed(old: PodView | None, new: PodView | None) -> None:
            if old is None and new is not None:
                self._expectations.see(new)
            owned_changed(old, new)
            if new is not None and new.metadata.controller is None:
                for each in self._daemon_sets.in_namespace(new.metadata.namespace):
                    if matches(selector_of(each), new.metadata.labels or {}):
                        enqueue(each.metadata.key)

        def node_changed(old: NodeView | None, new: NodeView | None) -> None:
            if old is None or new is None or _differ(old, new):
                for daemon_set in self._daemon_sets.values():
                    enqueue(daemon_set.metadata.key)
            if new is None and old is not None:
                for eligibility in self._eligibility.values():
                    eligibility.forget(old.metadata.name)

        self._daemon_sets.listen(daemon_set_changed)
        self._pods.listen(pod_changed)
        self._revisions.listen(owned_changed)
        self._nodes.listen(node_changed)

    def plan(self, key: str) -> Plan:
        daemon_set = self._daemon_sets.get(key)
        if daemon_set is None:
            self._expectations.forget(key)
            self._eligibility.pop(key, None)
            for entry in [failure for failure in self._failures if failure[0] == key]:
                del self._failures[entry]
            return NOTHING
        claimed = claim(daemon_set, DAEMON_SETS, self._pods, path=pod_path)
        kept = claim(daemon_set, DAEMON_SETS, self._revisions, path=revision_path)
        taken = names_of_others(self._revisions, daemon_set)
        revision = present_revision(
            daemon_set, DAEMON_SETS, kept.owned, hash_label=HASH, taken=taken
        )
        now = self._situation(key, daemon_set, claimed.owned, revision.hash)
        status = _status(now)
        actions: list[Action] = []
        if any(daemon_set.status.get(field) != count for field, count in status.items()):
            actions.append(status_patch(DAEMON_SETS, daemon_set, status))
        actions += [*claimed.actions, *kept.actions]
        again = None
        if daemon_set.metadata.deletion_timestamp is None:
            actions += revision.actions
            changes, again = self._manage(key, now)
            if not changes and self._is_quiet(key, claimed.owned):
                changes = self._roll_out(key, now)
            actions += changes
            live = {revision.name, *_revisions_in_use(daemon_set, claimed.owned)}
            limit = int(daemon_set.spec.get("revisionHistoryLimit") or 0)
            actions += forget_revisions(kept.owned, live, limit)
        waits = sooner(again, now.until_available, self._expectations.wait(key))
        return Plan(actions, again=waits)

    def finished(self, key: str, outcome: Outcome) -> None:
        """Tell what happened; forget what was asked for if it certainly did not happen."""
        daemon_set, action = self._daemon_sets.get(key), outcome.action
        if daemon_set is not None and not outcome.skipped:
            about = reference_to(daemon_set, DAEMON_SETS)
            if isinstance(action, Create | Delete) and "/pods" in action.path:
                tell_of_pod(outcome, about, self._recorder)
        self._expectations.finished(key, outcome)

    def _situation(
        self, key: str, daemon_set: WorkloadView, pods: Sequence[PodView], revision: str
    ) -> Situation:
        template = daemon_set.spec.get("template") or {}
        eligibility = self._eligibility.get(key)
        if eligibility is None or eligibility.template != template:
            eligibility = self._eligibility[key] = Eligibility(
                template, comparisons=self._comparisons
            )
        by_node: dict[str, list[PodView]] = defaultdict(list)
        for pod in sorted(pods, key=_age):
            by_node[node_of(pod)].append(pod)
        seconds = float(daemon_set.spec.get("minReadySeconds") or 0)
        now = self._clock.now()
        waits = {pod.metadata.uid: seconds_until_available(pod, seconds, now) for pod in pods}
        return Situation(
            daemon_set,
            revision,
            {node.metadata.name: eligibility.verdict(node) for node in self._nodes.values()},
            by_node,
            {uid: wait == 0 for uid, wait in waits.items()},
            min((wait for wait in waits.values() if wait), default=None),
        )

    def _manage(self, key: str, now: Situation) -> tuple[list[Action], float | None]:
        """Return what gives each node its pod and takes the others away, and when to look again."""
        expected = set(self._expectations.unseen(key).values())
        missing: list[str] = []
        doomed: list[PodView] = []
        again: float | None = None
        for node, verdict in now.verdicts.items():
            here = now.pods.get(node)
            if not here:
                if verdict.gets_pod and node not in expected:
                    missing.append(node)
            elif verdict.keeps_pod and len(here) == 1 and not here[0].is_finished:
                continue  # as it should be
            elif verdict.keeps_pod:
                surplus, wait = self._surplus(key, now, node, here)
                doomed += surplus
                again = sooner(again, wait)
            else:
                doomed += here
        for node, here in now.pods.items():
            if node not in now.verdicts:
                doomed += here
        deletes = self._delete(key, now, doomed[:BURST])
        return [*deletes, *self._create(key, now, missing[:BURST])], again

    def _surplus(
        self, key: str, now: Situation, node: str, here: Sequence[PodView]
    ) -> tuple[list[PodView], float | None]:
        """Return which pods of a node that is to have one go, and when another may have to."""
        active = [pod for pod in here if pod.metadata.deletion_timestamp is None]
        running = [pod for pod in active if not pod.is_finished]
        finished = [pod for pod in active if pod.is_finished]
        again: float | None = None
        if any(pod.status.phase == "Failed" for pod in finished):
            again = self._backoff(key, node)
            if again:
                finished = [pod for pod in finished if pod.status.phase == "Succeeded"]
        limits = limits_of(now.daemon_set.spec, len(now.verdicts))
        if not limits.surge:
            return [*finished, *running[1:]], again
        new = [pod for pod in running if now.is_new(pod)]
        old = [pod for pod in running if not now.is_new(pod)]
        lost = [pod for pod in old[:1] if new and pod.ready_since is None]
        return [*finished, *new[1:], *lost, *old[1:]], again

    def _roll_out(self, key: str, now: Situation) -> list[Action]:
        """Return the next step towards the present template."""
        spec = now.daemon_set.spec
        if (spec.get("updateStrategy") or {}).get("type") == "OnDelete":
            return []
        if all(now.is_new(pod) for here in now.pods.values() for pod in here):
            return []
        nodes = [node for node, verdict in now.verdicts.items() if verdict.gets_pod]
        pods = {node: now.sorted_pods(node) or NodePods() for node in nodes}
        step = next_step(pods, now.available, limits_of(spec, len(nodes)))
        deletes = self._delete(key, now, step.doomed[:BURST])
        return [*deletes, *self._create(key, now, step.nodes[:BURST])]

    def _create(self, key: str, now: Situation, nodes: Sequence[str]) -> list[Action]:
        meta = now.daemon_set.metadata
        names: dict[str, str] = {}
        unseen = self._expectations.unseen(key)

        def is_taken(name: str) -> bool:
            is_asked_for = name in names or name in unseen
            return is_asked_for or self._pods.get(f"{meta.namespace}/{name}") is not None

        for node in nodes:
            names[new_name(self._rng, f"{meta.name}-", is_taken)] = node
        self._expectations.create(key, names)
        path = f"/api/v1/namespaces/{meta.namespace}/pods"
        return [
            Create(path, pod_for(now.daemon_set, name, node, now.revision))
            for name, node in names.items()
        ]

    def _delete(self, key: str, now: Situation, pods: Sequence[PodView]) -> list[Action]:
        """Return the deletion of *pods*; who would end those of nodes that are gone is gone too."""
        active = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
        active = self._expectations.remaining(key, active)
        self._expectations.delete(key, active)
        about = reference_to(now.daemon_set, DAEMON_SETS)
        for pod in active:
            if pod.is_finished:
                self._tell_of_failure(about, pod)
        return [
            Delete(
                pod_path(pod),
                pod.metadata.uid,
                grace_seconds=None if node_of(pod) in now.verdicts else 0,
            )
            for pod in active
        ]

    def _tell_of_failure(self, about: Reference, pod: PodView) -> None:
        name = f"{pod.metadata.namespace}/{pod.metadata.name} on node {pod.spec.node_name}"
        if pod.status.phase == "Failed":
            message = f"Found failed daemon pod {name}, will try to kill it"
            self._recorder.event(about, type="Warning", reason="FailedDaemonPod", message=message)
        else:
            message = f"Found succeeded daemon pod {name}, will try to delete it"
            self._recorder.event(about, reason="SucceededDaemonPod", message=message)

    def _backoff(self, key: str, node: str) -> float | None:
        """Return the seconds to wait before a failed pod of *node* goes; None: it goes now."""
        count, last = self._failures.get((key, node), (0, 0.0))
        now = self._clock.monotonic()
        pause = min(FIRST_BACKOFF * 2.0 ** min(count - 1, 30), LONGEST_BACKOFF)
        if count and last + pause > now:
            return last + pause - now
        if count and last + 2 * LONGEST_BACKOFF < now:
            count = 0
        self._failures[key, node] = (count + 1, now)
        return None

    def _is_quiet(self, key: str, pods: Sequence[PodView]) -> bool:
        """Whether all that was asked for has been seen."""
        return not self._expectations.unseen(key) and len(
            self._expectations.remaining(key, pods)
        ) == len(pods)


def new_controller(context: ControllerContext) -> DaemonSetController:
    return DaemonSetController(
        context.table("daemonsets.apps", WorkloadView),
        context.table("pods", PodView),
        context.table("nodes", NodeView),
        context.table("controllerrevisions.apps", RevisionView),
        clock=context.clock,
        rng=context.rng,
        recorder=context.recorder("daemonset-controller"),
        comparisons=COMPARISONS in context.features,
    )


def _differ(old: NodeView, new: NodeView) -> bool:
    """Whether a change of a node may change who is fit for it."""
    return old.spec != new.spec or old.metadata.labels != new.metadata.labels


def _age(pod: PodView) -> tuple[bool, str]:
    """Return what pods are sorted by: those with a node first, then the oldest."""
    return not pod.spec.node_name, pod.metadata.creation_timestamp or ""


def _revisions_in_use(daemon_set: WorkloadView, pods: Iterable[PodView]) -> set[str]:
    hashes = {(pod.metadata.labels or {}).get(HASH, "") for pod in pods}
    return {f"{daemon_set.metadata.name}-{each}" for each in hashes}


def _status(now: Situation) -> Object:
    desired = current = misscheduled = ready = available = updated = 0
    for node, verdict in now.verdicts.items():
        here = now.pods.get(node)
        if not verdict.gets_pod:
            misscheduled += bool(here)
            continue
        desired += 1
        if not here:
            continue
        current += 1
        first = here[0]
        if first.ready_since is not None:
            ready += 1
            available += now.available[first.metadata.uid]
        updated += now.is_new(first)
    status: Object = {
        "currentNumberScheduled": current,
        "numberMisscheduled": misscheduled,
        "desiredNumberScheduled": desired,
        "numberReady": ready,
        "observedGeneration": now.daemon_set.metadata.generation,
    }
    optional = {
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
        "numberUnavailable": desired - available,
    }
    return {**status, **{field: count or None for field, count in optional.items()}}
