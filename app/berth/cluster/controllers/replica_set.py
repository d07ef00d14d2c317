"""ReplicaSets and ReplicationControllers: as many pods of a template as are wanted."""

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from berth.cluster.actions import Action, Create, Delete, Patch
from berth.cluster.controllers.availability import seconds_until_available
from berth.cluster.controllers.claims import claim, owner_reference, reference_to, selector_of
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.deletion_order import ranked
from berth.cluster.controllers.expectations import Expectations, new_name, sooner
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ReplicationControllerView, WorkloadView
from berth.cluster.events.correlator import Reference
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kinds.builtin import find
from berth.cluster.object_views import controllers_of, metadata_of
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas.types import object_of
from berth.cluster.strategies.selectors import matches
from berth.kube.client.errors import ApiError, ForbiddenError, NotFoundError
from berth.runtime.clock import Clock, rfc3339

BURST: Final = 500
"""Pods created or deleted in one plan, as upstream's; the rest follows in the next."""

REPLICA_FAILURE: Final = "ReplicaFailure"
"""The condition that pods cannot be created, or deleted."""

REPLICA_SETS: Final = find("apps", "v1", "replicasets")


class ReplicaSetController:
    """Decides what to create, delete, adopt, release and report. Reads tables, writes nothing."""

    def __init__(
        self,
        replica_sets: Table[WorkloadView],
        pods: Table[PodView],
        *,
        clock: Clock,
        rng: random.Random,
        recorder: EventRecorder,
        resource: ResourceType = REPLICA_SETS,
    ) -> None:
        """*resource* may also be ReplicationControllers: their selectors are read as the others."""
        self.name = resource.singular
        self._resource = resource
        self._replica_sets = replica_sets
        self._pods = pods
        self._clock = clock
        self._rng = rng
        self._recorder = recorder
        self._expectations = Expectations(clock)
        self._failures: dict[str, Object] = {}
        """By ReplicaSet: the condition that says why pods are not created, or not deleted."""

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def replica_set_changed(old: WorkloadView | None, new: WorkloadView | None) -> None:
            enqueue(metadata_of(old, new).key)

        def pod_changed(old: PodView | None, new: PodView | None) -> None:
            for key in self._keys_for_pod(old, new):
                enqueue(key)

        self._replica_sets.listen(replica_set_changed)
        self._pods.listen(pod_changed)

    def plan(self, key: str) -> Plan:
        replica_set = self._replica_sets.get(key)
        if replica_set is None:
            self._expectations.forget(key)
            self._failures.pop(key, None)
            return NOTHING
        claimed = claim(replica_set, self._resource, self._pods, path=pod_path)
        active = [pod for pod in claimed.owned if pod.is_active]
        scaling: list[Action] = []
        if replica_set.metadata.deletion_timestamp is None:
            scaling = self._scale(key, replica_set, active)
        if not scaling:
            self._failures.pop(key, None)
        status, again = self._status(replica_set, active)
        if self._resource is REPLICA_SETS:
            status["terminatingReplicas"] = sum(map(_is_terminating, claimed.owned))
        conditions = self._conditions(key, replica_set)
        if conditions != (replica_set.status.get("conditions") or []):
            status["conditions"] = conditions
        report: list[Action] = []
        if status_differs(replica_set.status, status):
            report.append(status_patch(self._resource, replica_set, status))
        # Pods first, unless they fail: then nothing is done after them.
        last = [*report, *scaling] if key in self._failures else [*scaling, *report]
        return Plan([*claimed.actions, *last], again=sooner(again, self._expectations.wait(key)))

    def finished(self, key: str, outcome: Outcome) -> None:
        """Tell what happened; forget what was asked for if it certainly did not happen."""
        replica_set = self._replica_sets.get(key)
        if replica_set is not None and not outcome.skipped:
            tell_of_pod(outcome, reference_to(replica_set, self._resource), self._recorder)
        self._expectations.finished(key, outcome)
        self._note_failure(key, outcome)

    def _note_failure(self, key: str, outcome: Outcome) -> None:
        if outcome.skipped or not isinstance(outcome.action, Create | Delete):
            return
        if outcome.error is None:
            self._failures.pop(key, None)
        elif key not in self._failures:
            is_create = isinstance(outcome.action, Create)
            self._failures[key] = {
                "type": REPLICA_FAILURE,
                "status": "True",
                "lastTransitionTime": rfc3339(self._clock.now()),
                "reason": "FailedCreate" if is_create else "FailedDelete",
                "message": str(outcome.error),
            }

    def _conditions(self, key: str, replica_set: WorkloadView) -> list[Object]:
        """Return the conditions to report; a failure that is told already is told no anew."""
        before: list[Object] = replica_set.status.get("conditions") or []
        told = next((each for each in before if each["type"] == REPLICA_FAILURE), None)
        others = [each for each in before if each is not told]
        failure = self._failures.get(key)
        return others if failure is None else [*others, told or failure]

    def _keys_for_pod(self, old: PodView | None, new: PodView | None) -> set[str]:
        """Return the ReplicaSets that a change of a pod concerns."""
        if old is None and new is not None:
            self._expectations.see(new)
        keys = set(controllers_of(self._resource.kind, old, new))
        if new is not None and new.metadata.controller is None and may_be_adopted(old, new):
            labels = new.metadata.labels or {}
            keys |= {
                replica_set.metadata.key
                for replica_set in self._replica_sets.in_namespace(new.metadata.namespace)
                if matches(selector_of(replica_set), labels)
            }
        return keys

    def _scale(self, key: str, replica_set: WorkloadView, active: list[PodView]) -> list[Action]:
        unseen = self._expectations.unseen(key)
        present = self._expectations.remaining(key, active)
        missing = replica_set.replicas - len(present) - len(unseen)
        if missing > 0:
            names = self._new_names(replica_set, unseen, min(missing, BURST))
            self._expectations.create(key, names)
            return [_create(replica_set, self._resource, name) for name in names]
        if missing < 0 and not unseen:
            # While some are unseen the choice would fall on those that run.
            order = ranked(present, self._related(replica_set, active), now=self._clock.now())
            victims = order[: min(-missing, BURST)]
            self._expectations.delete(key, victims)
            return [Delete(pod_path(pod), pod.metadata.uid) for pod in victims]
        return []

    def _related(self, replica_set: WorkloadView, active: list[PodView]) -> Iterable[PodView]:
        """Yield the pods of all ReplicaSets with the same controller: those of a Deployment."""
        controller = replica_set.metadata.controller
        if controller is None:
            yield from active
            return
        for each in self._replica_sets.controlled(controller.uid):
            yield from self._pods.controlled(each.metadata.uid)

    def _new_names(
        self, replica_set: WorkloadView, unseen: Mapping[str, str], count: int
    ) -> list[str]:
        meta = replica_set.metadata
        names: dict[str, None] = {}

        def is_taken(name: str) -> bool:
            is_asked_for = name in unseen or name in names
            return is_asked_for or self._pods.get(f"{meta.namespace}/{name}") is not None

        for _ in range(count):
            names[new_name(self._rng, f"{meta.name}-", is_taken)] = None
        return list(names)

    def _status(
        self, replica_set: WorkloadView, active: list[PodView]
    ) -> tuple[Object, float | None]:
        """Return the status to report, and the seconds until a ready pod becomes available."""
        template = replica_set.spec.get("template") or {}
        labels = ((template.get("metadata") or {}).get("labels") or {}).items()
        min_ready = int(replica_set.spec.get("minReadySeconds") or 0)
        now = self._clock.now()
        waits = [
            wait
            for pod in active
            for wait in [seconds_until_available(pod, min_ready, now)]
            if wait is not None
        ]
        available = sum(1 for wait in waits if wait == 0)
        status: Object = {
            "replicas": len(active),
            "fullyLabeledReplicas": sum(
                1 for pod in active if labels <= (pod.metadata.labels or {}).items()
            ),
            "readyReplicas": len(waits),
            "availableReplicas": available,
            "observedGeneration": replica_set.metadata.generation,
        }
        return status, min((wait for wait in waits if wait > 0), default=None)


def new_controller(context: ControllerContext) -> ReplicaSetController:
    return ReplicaSetController(
        context.table("replicasets.apps", WorkloadView),
        context.table("pods", PodView),
        clock=context.clock,
        rng=context.rng,
        recorder=context.recorder("replicaset-controller"),
    )


def new_replication_controller(context: ControllerContext) -> ReplicaSetController:
    return ReplicaSetController(
        context.table("replicationcontrollers", ReplicationControllerView),
        context.table("pods", PodView),
        clock=context.clock,
        rng=context.rng,
        recorder=context.recorder("replication-controller"),
        resource=find("", "v1", "replicationcontrollers"),
    )


def tell_of_pod(outcome: Outcome, owner: Reference, recorder: EventRecorder) -> None:
    """Record the creation or deletion of a pod of *owner*, or why it failed."""
    action, error = outcome.action, outcome.error
    match action:
        case Create() if error is None:
            name = action.body["metadata"]["name"]
            recorder.event(owner, reason="SuccessfulCreate", message=f"Created pod: {name}")
        case Create() if error is not None and not is_terminating(error):
            message = f"Error creating: {error}"
            recorder.event(owner, type="Warning", reason="FailedCreate", message=message)
        case Delete() if error is None:
            name = action.path.rpartition("/")[2]
            recorder.event(owner, reason="SuccessfulDelete", message=f"Deleted pod: {name}")
        case Delete() if not isinstance(error, NotFoundError):
            message = f"Error deleting: {error}"
            recorder.event(owner, type="Warning", reason="FailedDelete", message=message)


def is_terminating(error: ApiError) -> bool:
    """Whether something could not be created because its namespace is being deleted."""
    return isinstance(error, ForbiddenError) and "because it is being terminated" in error.message


def may_be_adopted(old: PodView | None, new: PodView) -> bool:
    """Whether the change is one that makes controllers look at a pod that has none."""
    return (
        old is None
        or old.metadata.labels != new.metadata.labels
        or old.metadata.owner_references != new.metadata.owner_references
    )


def _is_terminating(pod: PodView) -> bool:
    return pod.metadata.deletion_timestamp is not None and not pod.is_finished


def pod_path(pod: PodView) -> str:
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"


def replica_set_path(replica_set: WorkloadView, resource: ResourceType = REPLICA_SETS) -> str:
    meta = replica_set.metadata
    return resource.path_of(meta.namespace, meta.name)


def status_differs(old: Object, new: Object) -> bool:
    """Whether a count in *new* differs; one that is missing in *old* is zero."""
    return any((old.get(field) or 0) != count for field, count in new.items()) or (
        "replicas" not in old
    )


def status_patch(resource: ResourceType, owner: WorkloadView, status: Object) -> Patch:
    """Return the patch that reports *status*, unless *owner* has been replaced.

    A count that is zero is removed where the API's Go types leave it out (``omitempty``).
    """
    declared = object_of(resource.schema.fields["status"].type)
    if declared is None:
        raise ValueError(f"the status of {resource.plural} has no fields")
    written = {
        name: None if not value and declared.fields[name].omits_zero else value
        for name, value in status.items()
    }
    meta = owner.metadata
    path = resource.path_of(meta.namespace, meta.name)
    return Patch(f"{path}/status", {"metadata": {"uid": meta.uid}, "status": written})


def _create(replica_set: WorkloadView, resource: ResourceType, name: str) -> Create:
    meta = replica_set.metadata
    template: dict[str, Any] = replica_set.spec.get("template") or {}
    template_meta = template.get("metadata") or {}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": f"{meta.name}-",
            "namespace": meta.namespace,
            **{
                field: template_meta[field]
                for field in ("labels", "annotations", "finalizers")
                if template_meta.get(field)
            },
            "ownerReferences": [owner_reference(replica_set, resource)],
        },
        "spec": template.get("spec") or {},
    }
    return Create(f"/api/v1/namespaces/{meta.namespace}/pods", body)
