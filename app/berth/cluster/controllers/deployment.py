"""Deployments: a ReplicaSet per template, and pods moving from the old ones to the new."""

from collections.abc import Callable, Sequence

from berth.cluster.actions import Action, Create, Patch
from berth.cluster.controllers import deployment_status, revisions
from berth.cluster.controllers.claims import claim, reference_to
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.expectations import UNSEEN_SECONDS
from berth.cluster.controllers.replica_set import (
    is_terminating,
    replica_set_path,
    status_patch,
)
from berth.cluster.controllers.revisions import DEPLOYMENTS
from berth.cluster.controllers.rollout import Limits, Size, grow_new, limits_of, shrink_old
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import WorkloadView
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.object_views import controllers_of, metadata_of
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object
from berth.kube.client.errors import AlreadyExistsError, ApiError
from berth.runtime.clock import Clock


class DeploymentController:
    """Decides which ReplicaSets there should be, and their sizes. Reads tables, writes nothing."""

    name = "deployment"

    def __init__(
        self,
        deployments: Table[WorkloadView],
        replica_sets: Table[WorkloadView],
        pods: Table[PodView],
        *,
        clock: Clock,
        recorder: EventRecorder,
    ) -> None:
        self._recorder = recorder
        self._created: dict[str, tuple[str, float]] = {}
        """By Deployment: the ReplicaSet that was created and that no watch has shown yet, with the
        time to give up on it."""
        self._deployments = deployments
        self._replica_sets = replica_sets
        self._pods = pods
        self._clock = clock

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def deployment_changed(old: WorkloadView | None, new: WorkloadView | None) -> None:
            enqueue(metadata_of(old, new).key)

        def replica_set_changed(old: WorkloadView | None, new: WorkloadView | None) -> None:
            for key in controllers_of("Deployment", old, new):
                enqueue(key)

        def pod_changed(old: PodView | None, new: PodView | None) -> None:
            # Recreate waits for the last old pod to be gone; ReplicaSets do not count that far.
            if new is None and old is not None:
                self._enqueue_deployment_of(old, enqueue)

        self._deployments.listen(deployment_changed)
        self._replica_sets.listen(replica_set_changed)
        self._pods.listen(pod_changed)

    def plan(self, key: str) -> Plan:
        deployment = self._deployments.get(key)
        if deployment is None or deployment.metadata.deletion_timestamp is not None:
            self._created.pop(key, None)
            return NOTHING
        if wait := self._wait_for_created(key, deployment):
            return Plan(again=wait)
        claimed = claim(deployment, DEPLOYMENTS, self._replica_sets, path=replica_set_path)
        if claimed.actions:
            return Plan(claimed.actions)  # first know what is ours: the new one may be among it
        owned = sorted(
            claimed.owned,
            key=lambda each: (each.metadata.creation_timestamp or "", each.metadata.name),
        )
        new = revisions.find_new(deployment, owned)
        old = [each for each in owned if each is not new]
        limits = limits_of(deployment.spec)
        name = new.metadata.name if new else self._new_name(deployment)
        actions = self._sizes(deployment, new, old, limits=limits, name=name)
        status = self._status(deployment, new, old, limits=limits, name=name)
        if _differs(deployment.status, status):
            actions.append(status_patch(DEPLOYMENTS, deployment, status))
        elif new is not None and deployment_status.is_complete(deployment, status):
            limit = deployment.spec.get("revisionHistoryLimit")
            actions += revisions.forget_history(old, 10 if limit is None else int(limit))
        now = self._clock.now()
        return Plan(actions, again=deployment_status.seconds_until_timeout(deployment, status, now))

    def finished(self, key: str, outcome: Outcome) -> None:
        """Tell of new sizes; remember what was created until it shows in the tables."""
        deployment, action, error = self._deployments.get(key), outcome.action, outcome.error
        if deployment is None or outcome.skipped:
            return
        if isinstance(action, Create) and error is None:
            deadline = self._clock.monotonic() + UNSEEN_SECONDS
            self._created[key] = action.body["metadata"]["name"], deadline
        about = reference_to(deployment, DEPLOYMENTS)
        if isinstance(action, Create | Patch) and action.note and error is None:
            self._recorder.event(about, reason="ScalingReplicaSet", message=action.note)
        elif isinstance(action, Create) and _is_worth_telling(error):
            name = action.body["metadata"]["name"]
            message = f'Failed to create new replica set "{name}": {error}'
            self._recorder.event(
                about, type="Warning", reason="ReplicaSetCreateError", message=message
            )

    def _wait_for_created(self, key: str, deployment: WorkloadView) -> float:
        """Return the seconds until a ReplicaSet that was created is given up on; 0: none is."""
        name, deadline = self._created.get(key, ("", 0.0))
        wait = deadline - self._clock.monotonic()
        if name and wait > 0:
            if self._replica_sets.get(f"{deployment.metadata.namespace}/{name}") is None:
                return wait
            del self._created[key]
        return 0.0

    def _enqueue_deployment_of(self, pod: PodView, enqueue: Callable[[str], None]) -> None:
        controller = pod.metadata.controller
        if controller is None or controller.kind != "ReplicaSet":
            return
        replica_set = self._replica_sets.by_uid(controller.uid)
        owner = replica_set.metadata.controller if replica_set is not None else None
        if owner is not None and owner.kind == "Deployment":
            enqueue(f"{pod.metadata.namespace}/{owner.name}")

    def _new_name(self, deployment: WorkloadView) -> str:
        """Return a name for the new ReplicaSet that no other template has."""
        meta, template = deployment.metadata, revisions.template_of(deployment)
        collisions = 0
        while True:
            name = f"{meta.name}-{revisions.template_hash(template, collisions)}"
            taken = self._replica_sets.get(f"{meta.namespace}/{name}")
            if taken is None:
                return name
            collisions += 1

    def _sizes(
        self,
        deployment: WorkloadView,
        new: WorkloadView | None,
        old: Sequence[WorkloadView],
        *,
        limits: Limits,
        name: str,
    ) -> list[Action]:
        if deployment.spec.get("paused"):
            return self._resize_paused(new, old, limits)
        revision = revisions.next_revision(old)
        if new is not None:
            revision = max(revision, revisions.revision_of(new))
        actions: list[Action] = [*self._set_revision(deployment, revision)]
        recreate = (deployment.spec.get("strategy") or {}).get("type") == "Recreate"
        if recreate and self._has_pods(old):
            return [*actions, *_resized(old, {each.metadata.name: 0 for each in old}, limits)]
        new_size = _size(new) if new is not None else Size(name, replicas=0, available=0)
        old_sizes = [_size(each) for each in old]
        wanted = limits.replicas if recreate else grow_new(new_size, old_sizes, limits)
        if new is None:
            create = revisions.create_new(
                deployment, name=name, replicas=wanted, revision=revision, limits=limits
            )
            return [*actions, create]
        annotations = {
            **revisions.inherited_annotations(deployment),
            **revisions.revision_annotations(new, revision),
            **revisions.size_annotations(limits),
        }
        spec: Object = {"replicas": wanted}
        if "minReadySeconds" in deployment.spec:
            spec["minReadySeconds"] = deployment.spec["minReadySeconds"]
        change = revisions.change(new, annotations=annotations, spec=spec)
        if change is not None:
            # One step at a time: what else to do depends on how this turns out.
            return [*actions, change]
        return [*actions, *_resized(old, shrink_old(new_size, old_sizes, limits), limits)]

    def _resize_paused(
        self, new: WorkloadView | None, old: Sequence[WorkloadView], limits: Limits
    ) -> list[Action]:
        """Follow a change of size while no rollout may happen: the latest active one takes it."""
        active = [each for each in [*old, *([new] if new else [])] if each.replicas > 0]
        latest = active[-1] if active else new
        if latest is None:
            return []
        annotations = latest.metadata.annotations or {}
        if annotations.get(revisions.DESIRED) == str(limits.replicas):
            return []
        others = sum(each.replicas for each in active if each is not latest)
        return _resized([latest], {latest.metadata.name: max(limits.replicas - others, 0)}, limits)

    def _set_revision(self, deployment: WorkloadView, revision: int) -> list[Action]:
        if revisions.revision_of(deployment) == revision:
            return []
        body = {
            "metadata": {
                "uid": deployment.metadata.uid,
                "annotations": {revisions.REVISION: str(revision)},
            }
        }
        # As part of the status: a change of the annotations alone would be a new generation.
        return [Patch(f"{deployment_path(deployment)}/status", body)]

    def _has_pods(self, old: Sequence[WorkloadView]) -> bool:
        """Whether an old ReplicaSet wants pods or has some that are not finished."""
        return any(
            each.replicas > 0
            or any(
                pod.status.phase not in ("Succeeded", "Failed")
                for pod in self._pods.controlled(each.metadata.uid)
            )
            for each in old
        )

    def _status(
        self,
        deployment: WorkloadView,
        new: WorkloadView | None,
        old: Sequence[WorkloadView],
        *,
        limits: Limits,
        name: str,
    ) -> Object:
        now = self._clock.now()
        status = deployment_status.counts(deployment, new, old)
        conditions = deployment_status.conditions(
            deployment,
            status,
            [*([new] if new else []), *old],
            limits=limits,
            new_name=name,
            now=now,
        )
        if new is None and not deployment.spec.get("paused"):
            conditions = [
                deployment_status.created(condition, name, now=now)
                if condition["type"] == "Progressing"
                and condition["reason"] != deployment_status.CREATED
                else condition
                for condition in conditions
            ]
        return {**status, "conditions": conditions}


def new_controller(context: ControllerContext) -> DeploymentController:
    return DeploymentController(
        context.table("deployments.apps", WorkloadView),
        context.table("replicasets.apps", WorkloadView),
        context.table("pods", PodView),
        clock=context.clock,
        recorder=context.recorder("deployment-controller"),
    )


def _is_worth_telling(error: ApiError | None) -> bool:
    """Whether a ReplicaSet was refused, and neither is there nor in a namespace on its way out."""
    return error is not None and not (
        isinstance(error, AlreadyExistsError) or is_terminating(error)
    )


def deployment_path(deployment: WorkloadView) -> str:
    meta = deployment.metadata
    return f"/apis/apps/v1/namespaces/{meta.namespace}/deployments/{meta.name}"


def _size(replica_set: WorkloadView) -> Size:
    return Size(
        replica_set.metadata.name, replica_set.replicas, replica_set.count("availableReplicas")
    )


def _resized(
    replica_sets: Sequence[WorkloadView], sizes: dict[str, int], limits: Limits
) -> list[Action]:
    changes = [
        revisions.change(
            replica_set,
            annotations=revisions.size_annotations(limits),
            spec={"replicas": sizes[replica_set.metadata.name]},
        )
        for replica_set in replica_sets
        if sizes.get(replica_set.metadata.name, replica_set.replicas) != replica_set.replicas
    ]
    return [change for change in changes if change is not None]


def _differs(old: Object, new: Object) -> bool:
    return any(
        (old.get(field) or ([] if field == "conditions" else 0)) != value
        for field, value in new.items()
    )
