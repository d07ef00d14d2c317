"""StatefulSets: pods with names and volumes of their own, one after the other or all at once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from berth.cluster.actions import Action, Create, Delete
from berth.cluster.controllers.availability import seconds_until_available
from berth.cluster.controllers.claim_retention import owners_of_claim, retention_patches
from berth.cluster.controllers.claims import claim, owner_reference, reference_to
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.history import (
    forget_revisions,
    names_of_others,
    present_revision,
    revision_path,
    template_of,
)
from berth.cluster.controllers.replica_set import BURST, pod_path, status_differs, status_patch
from berth.cluster.controllers.rollout import absolute
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView, RevisionView, WorkloadView
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kinds.builtin import find
from berth.cluster.object_views import controllers_of, metadata_of
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object
from berth.kube.client.errors import AlreadyExistsError, NotFoundError
from berth.runtime.clock import Clock

STATEFUL_SETS: Final = find("apps", "v1", "statefulsets")
REVISION: Final = "controller-revision-hash"
"""Label of a pod: the name of the ControllerRevision that it was made from."""
HASH: Final = "controller.kubernetes.io/hash"
"""Label of a ControllerRevision."""
POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"


@dataclass(frozen=True, slots=True)
class Versions:
    """The templates that pods are made from, and the names of their revisions."""

    update: str
    """Of the present template."""
    template: Object
    current: str
    """Of the template before the rollout that is under way."""
    current_template: Object
    below: int
    """Pods of lower ordinals keep the current template."""

    def of(self, ordinal: int) -> tuple[str, Object]:
        """Return the revision and template of a pod that is to be made."""
        if ordinal < self.below:
            return self.current, self.current_template
        return self.update, self.template


@dataclass(frozen=True, slots=True)
class Members:
    """The pods of a StatefulSet."""

    pods: Mapping[str, PodView]
    """By name."""
    waits: Mapping[str, float | None]
    """By uid: seconds until a pod is available; None: it is not ready."""

    def is_healthy(self, pod: PodView | None) -> bool:
        """Whether it runs and is available: the next one may be made, or the one before go."""
        return pod is not None and pod.is_active and self.waits[pod.metadata.uid] == 0

    @property
    def until_available(self) -> float | None:
        """Seconds until the next one is."""
        return min((wait for wait in self.waits.values() if wait), default=None)


class StatefulSetController:
    """Decides which pods and claims to make and to delete. Reads tables, writes nothing."""

    name = "statefulset"

    def __init__(
        self,
        stateful_sets: Table[WorkloadView],
        pods: Table[PodView],
        volume_claims: Table[ResourceView],
        revisions: Table[RevisionView],
        *,
        clock: Clock,
        recorder: EventRecorder,
    ) -> None:
        self._clock = clock
        self._stateful_sets = stateful_sets
        self._pods = pods
        self._volume_claims = volume_claims
        self._revisions = revisions
        self._recorder = recorder

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def stateful_set_changed(old: WorkloadView | None, new: WorkloadView | None) -> None:
            enqueue(metadata_of(old, new).key)

        def owned_changed(
            old: PodView | RevisionView | None, new: PodView | RevisionView | None
        ) -> None:
            for key in controllers_of("StatefulSet", old, new):
                enqueue(key)

        def pod_changed(old: PodView | None, new: PodView | None) -> None:
            owned_changed(old, new)
            if new is not None and new.metadata.controller is None:
                enqueue(f"{new.metadata.namespace}/{_parent(new.metadata.name)}")

        def claim_changed(old: ResourceView | None, new: ResourceView | None) -> None:
            meta = metadata_of(old, new)
            if old is not None and old.metadata.owner_references == meta.owner_references and new:
                return
            for each in self._stateful_sets.in_namespace(meta.namespace):
                if any(meta.name.startswith(f"{t}-{each.metadata.name}-") for t in _claims(each)):
                    enqueue(each.metadata.key)

        self._stateful_sets.listen(stateful_set_changed)
        self._pods.listen(pod_changed)
        self._revisions.listen(owned_changed)
        self._volume_claims.listen(claim_changed)

    def plan(self, key: str) -> Plan:
        stateful_set = self._stateful_sets.get(key)
        if stateful_set is None:
            return NOTHING
        claimed = claim(
            stateful_set,
            STATEFUL_SETS,
            self._pods,
            path=pod_path,
            fits=lambda pod: _parent(pod.metadata.name) == stateful_set.metadata.name,
        )
        members = self._members(stateful_set, claimed.owned)
        kept = claim(stateful_set, STATEFUL_SETS, self._revisions, path=revision_path)
        update = present_revision(
            stateful_set,
            STATEFUL_SETS,
            kept.owned,
            hash_label=HASH,
            taken=names_of_others(self._revisions, stateful_set),
        )
        actions: list[Action] = []
        if stateful_set.metadata.deletion_timestamp is None:
            versions = _versions(stateful_set, update.name, kept.owned)
            actions = [*claimed.actions, *kept.actions, *update.actions]
            actions += self._retain(stateful_set, members)
            actions += self._change(stateful_set, members, versions)
            known = stateful_set.status.get("currentRevision") or update.name
            live = {update.name, known, *_revisions_in_use(claimed.owned)}
            limit = int(stateful_set.spec.get("revisionHistoryLimit") or 0)
            actions += forget_revisions(kept.owned, live, limit)
        status = _status(stateful_set, members, update.name)
        if status_differs(stateful_set.status, status):
            actions.append(status_patch(STATEFUL_SETS, stateful_set, status))
        return Plan(actions, again=members.until_available)

    def _members(self, stateful_set: WorkloadView, pods: Iterable[PodView]) -> Members:
        seconds = float(stateful_set.spec.get("minReadySeconds") or 0)
        by_name = {pod.metadata.name: pod for pod in pods}
        now = self._clock.now()
        waits = {
            pod.metadata.uid: seconds_until_available(pod, seconds, now) for pod in by_name.values()
        }
        return Members(by_name, waits)

    def finished(self, key: str, outcome: Outcome) -> None:
        """Tell of pods and claims. Nothing to remember: a name can be given only once."""
        stateful_set, action = self._stateful_sets.get(key), outcome.action
        if stateful_set is None or outcome.skipped or not isinstance(action, Create | Delete):
            return
        if isinstance(action, Create):
            verb, kind, name = "create", action.body["kind"], action.body["metadata"]["name"]
        else:
            verb, kind, name = "delete", "Pod", action.path.rpartition("/")[2]
        is_old_news = isinstance(outcome.error, AlreadyExistsError | NotFoundError)
        if "/controllerrevisions" in action.path or is_old_news:
            return
        reason = f"{'Failed' if outcome.error else 'Successful'}{verb.capitalize()}"
        what = f"{'Claim' if kind == 'PersistentVolumeClaim' else kind} {name}"
        if kind == "PersistentVolumeClaim":
            ordinal = name.rpartition("-")[2]
            what += f" Pod {stateful_set.metadata.name}-{ordinal}"
        message = f"{verb} {what} in StatefulSet {stateful_set.metadata.name}"
        about = reference_to(stateful_set, STATEFUL_SETS)
        if outcome.error is not None:
            text = f"{message} failed error: {outcome.error}"
            self._recorder.event(about, type="Warning", reason=reason, message=text)
        else:
            end = "success" if kind == "PersistentVolumeClaim" else "successful"
            self._recorder.event(about, reason=reason, message=f"{message} {end}")

    def _change(
        self, stateful_set: WorkloadView, members: Members, versions: Versions
    ) -> list[Action]:
        """Return what to do first about the lowest ordinal that is not as it should be.

        In parallel all ordinals are seen to at once, BURST of them, but for changes of the
        template.
        """
        pods = members.pods
        parallel = stateful_set.spec.get("podManagementPolicy") == "Parallel"
        wanted = ordinals(stateful_set)
        actions: list[Action] = []
        for ordinal in wanted:
            if len(actions) >= BURST:
                return actions  # what comes of them wakes this controller again
            name = _name(stateful_set, ordinal)
            pod = pods.get(name)
            if pod is None:
                actions += self._make(stateful_set, name, ordinal, versions)
            elif pod.is_finished and pod.metadata.deletion_timestamp is None:
                self._tell_of_end(stateful_set, pod)
                actions.append(_delete(pod))
            if not parallel and not members.is_healthy(pod):
                return actions
        surplus = [
            pods[name]
            for name in sorted(pods, key=_ordinal)
            if _ordinal(name) not in wanted or name != _name(stateful_set, _ordinal(name))
        ]
        if surplus and parallel:
            leaving = [pod for pod in surplus if pod.is_active]
            actions += self._let_go(stateful_set, leaving)[:BURST]
        elif surplus and _may_go(surplus, members):
            actions += self._let_go(stateful_set, surplus[-1:])
        if parallel or not (actions or surplus):
            gone = {action.path for action in actions if isinstance(action, Delete)}
            outdated = self._roll_out(stateful_set, members, versions.update)
            actions += [each for each in outdated if each.path not in gone]
        return actions

    def _let_go(self, stateful_set: WorkloadView, pods: Iterable[PodView]) -> list[Action]:
        """Return the deletion of *pods* or, before it, what has their claims go with them."""
        actions: list[Action] = []
        for pod in pods:
            claims = self._claims_of(stateful_set, pod.metadata.name)
            patches = retention_patches(stateful_set, pod, claims, is_wanted=False)
            actions += list(patches) or [_delete(pod)]
        return actions

    def _claims_of(self, stateful_set: WorkloadView, pod: str) -> list[ResourceView]:
        """Return the claims that there are of the pod of that name."""
        namespace = stateful_set.metadata.namespace
        keys = [f"{namespace}/{template}-{pod}" for template in _claims(stateful_set)]
        return [claim for claim in map(self._volume_claims.get, keys) if claim is not None]

    def _retain(self, stateful_set: WorkloadView, members: Members) -> list[Action]:
        """Return what has the claims of the members go, or stay, when the StatefulSet goes."""
        wanted = ordinals(stateful_set)
        return [
            patch
            for name, pod in members.pods.items()
            if _ordinal(name) in wanted
            for patch in retention_patches(
                stateful_set, pod, self._claims_of(stateful_set, name), is_wanted=True
            )
        ]

    def _make(
        self, stateful_set: WorkloadView, name: str, ordinal: int, versions: Versions
    ) -> list[Action]:
        """Create the claims that are missing or, once all are seen, the pod."""
        meta = stateful_set.metadata
        selector = (stateful_set.spec.get("selector") or {}).get("matchLabels") or {}
        claims: list[Action] = []
        for template_name, template in _claims(stateful_set).items():
            claim_name = f"{template_name}-{name}"
            if self._volume_claims.get(f"{meta.namespace}/{claim_name}") is not None:
                continue
            of_template = template.get("metadata") or {}
            body: Object = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": claim_name,
                    "namespace": meta.namespace,
                    "labels": {**(of_template.get("labels") or {}), **selector},
                    "annotations": of_template.get("annotations") or {},
                },
                "spec": template.get("spec") or {},
            }
            owners = owners_of_claim(stateful_set, None, is_wanted=True)
            if owners:
                body["metadata"]["ownerReferences"] = owners
            path = f"/api/v1/namespaces/{meta.namespace}/persistentvolumeclaims"
            claims.append(Create(path, body))
        return claims or [_create(stateful_set, name, ordinal, *versions.of(ordinal))]

    def _roll_out(
        self, stateful_set: WorkloadView, members: Members, revision: str
    ) -> list[Delete]:
        """Return the deletion of pods of other templates, the highest first.

        They are made anew from the present one. So many go that no more than ``maxUnavailable`` of
        all are missing or not available.
        """
        strategy: Object = stateful_set.spec.get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return []
        rolling: Object = strategy.get("rollingUpdate") or {}
        most = absolute(rolling.get("maxUnavailable", 1), stateful_set.replicas, round_up=False)
        wanted, pods = ordinals(stateful_set), members.pods
        present = {_ordinal(name): pod for name, pod in pods.items() if _ordinal(name) in wanted}
        missing = len(wanted) - sum(map(members.is_healthy, present.values()))
        first = _start(stateful_set) + int(rolling.get("partition") or 0)
        outdated = [
            _delete(present[ordinal])
            for ordinal in sorted(present, reverse=True)
            if ordinal >= first
            and not _is_of(present[ordinal], revision)
            and present[ordinal].metadata.deletion_timestamp is None
        ]
        return outdated[: max(max(most, 1) - missing, 0)]

    def _tell_of_end(self, stateful_set: WorkloadView, pod: PodView) -> None:
        """Record that a pod is made anew because it has ended."""
        failed = pod.status.phase == "Failed"
        what = "failed" if failed else "terminated"
        self._recorder.event(
            reference_to(stateful_set, STATEFUL_SETS),
            type="Warning" if failed else "Normal",
            reason="RecreatingFailedPod" if failed else "RecreatingTerminatedPod",
            message=f"StatefulSet {stateful_set.metadata.key} is recreating {what} Pod "
            f"{pod.metadata.name}",
        )


def _may_go(surplus: Sequence[PodView], members: Members) -> bool:
    """Whether the last of pods that are too many may go, one after the other.

    One that is not healthy must become so first, unless it is the only such one.
    """
    last = surplus[-1]
    unhealthy = [pod for pod in surplus if not members.is_healthy(pod)]
    return last.is_active and unhealthy in ([], [last])


def new_controller(context: ControllerContext) -> StatefulSetController:
    return StatefulSetController(
        context.table("statefulsets.apps", WorkloadView),
        context.table("pods", PodView),
        context.table("persistentvolumeclaims", ResourceView),
        context.table("controllerrevisions.apps", RevisionView),
        clock=context.clock,
        recorder=context.recorder("statefulset-controller"),
    )


def _versions(
    stateful_set: WorkloadView, update: str, revisions: Iterable[RevisionView]
) -> Versions:
    """Return what pods are made from; below the partition of a rollout it is what was before."""
    template: Object = stateful_set.spec.get("template") or {}
    current = stateful_set.status.get("currentRevision") or update
    strategy: Object = stateful_set.spec.get("updateStrategy") or {}
    partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
    known = next((revision for revision in revisions if revision.metadata.name == current), None)
    if known is None or strategy.get("type") == "OnDelete":
        return Versions(update, template, update, template, below=0)
    below = _start(stateful_set) + partition
    return Versions(update, template, current, template_of(known), below)


def _revisions_in_use(pods: Iterable[PodView]) -> set[str]:
    return {(pod.metadata.labels or {}).get(REVISION, "") for pod in pods}


def ordinals(stateful_set: WorkloadView) -> range:
    """Return the ordinals of the pods that there should be. There may be billions."""
    first = _start(stateful_set)
    return range(first, first + stateful_set.replicas)


def _name(stateful_set: WorkloadView, ordinal: int) -> str:
    return f"{stateful_set.metadata.name}-{ordinal}"


def _start(stateful_set: WorkloadView) -> int:
    return int((stateful_set.spec.get("ordinals") or {}).get("start") or 0)


def _ordinal(name: str) -> int:
    """Return the number at the end of a pod's name; -1 for a name that we did not give."""
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isascii() and digits.isdigit() else -1


def _parent(name: str) -> str:
    """Return the name of the StatefulSet that a pod of that name belongs to; empty: to none."""
    return name.rpartition("-")[0] if _ordinal(name) >= 0 else ""


def _claims(stateful_set: WorkloadView) -> dict[str, Any]:
    """Return the templates of volume claims by name."""
    templates = stateful_set.spec.get("volumeClaimTemplates") or ()
    return {(template.get("metadata") or {}).get("name", ""): template for template in templates}


def _is_of(pod: PodView, revision: str) -> bool:
    return (pod.metadata.labels or {}).get(REVISION) == revision


def _delete(pod: PodView) -> Delete:
    return Delete(pod_path(pod), pod.metadata.uid)


def _create(
    stateful_set: WorkloadView, name: str, ordinal: int, revision: str, template: Object
) -> Create:
    meta = stateful_set.metadata
    of_template: Object = template.get("metadata") or {}
    spec: Object = {**(template.get("spec") or {})}
    claims = _claims(stateful_set)
    volumes = [volume for volume in spec.get("volumes") or () if volume.get("name") not in claims]
    volumes += [
        {"name": each, "persistentVolumeClaim": {"claimName": f"{each}-{name}"}} for each in claims
    ]
    labels = {
        **(of_template.get("labels") or {}),
        POD_NAME: name,
        POD_INDEX: str(ordinal),
        REVISION: revision,
    }
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": f"{meta.name}-",
            "namespace": meta.namespace,
            "labels": labels,
            "annotations": of_template.get("annotations") or {},
            "ownerReferences": [owner_reference(stateful_set, STATEFUL_SETS)],
        },
        "spec": {
            **spec,
            "hostname": name,
            "subdomain": stateful_set.spec.get("serviceName") or "",
            **({"volumes": volumes} if volumes else {}),
        },
    }
    return Create(f"/api/v1/namespaces/{meta.namespace}/pods", body)


def _status(stateful_set: WorkloadView, members: Members, revision: str) -> Object:
    pods = members.pods.values()
    active = [pod for pod in pods if pod.is_active]
    running = [pod for pod in pods if pod.status.phase == "Running"]
    ready = sum(1 for pod in running if pod.ready_since is not None)
    updated = sum(1 for pod in active if _is_of(pod, revision))
    strategy: Object = stateful_set.spec.get("updateStrategy") or {}
    is_rolling = strategy.get("type") != "OnDelete"
    is_done = is_rolling and updated == ready == len(pods) == stateful_set.replicas
    current = revision if is_done else stateful_set.status.get("currentRevision") or revision
    return {
        "replicas": len(pods),
        "readyReplicas": ready,
        "availableReplicas": sum(map(members.is_healthy, pods)),
        "currentReplicas": sum(1 for pod in active if _is_of(pod, current)),
        "updatedReplicas": updated,
        "currentRevision": current,
        "updateRevision": revision,
        "collisionCount": stateful_set.status.get("collisionCount") or 0,
        "observedGeneration": stateful_set.metadata.generation,
    }
