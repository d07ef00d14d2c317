"""PersistentVolumes and their claims: bound to each other, made to measure, and taken back.

Volumes of a class with a provisioner are made here, whatever the provisioner is: nothing is behind
them. Which nodes can use them is up to the class and the CSI driver
(:mod:`~berth.cluster.controllers.volume_topology`).
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from berth.cluster.actions import Action, Create, Delete, Get, Patch
from berth.cluster.controllers.claims import reference_to
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import CSINodeView, NodeView, ResourceView, StorageClassView
from berth.cluster.controllers.volume_topology import VolumeTopology
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kinds.builtin import find
from berth.cluster.object_views import ObjectView, metadata_of
from berth.cluster.resources import Object
from berth.cluster.strategies.selectors import LabelSelector, matches
from berth.kube.client.errors import NotFoundError
from berth.kube.objects.quantity import parse

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"

VOLUME_CLAIMS: Final = find("", "v1", "persistentvolumeclaims")
VOLUMES: Final = "/api/v1/persistentvolumes"

_decode = msgspec.json.Decoder(ObjectView).decode


class PersistentVolumeController:
    """Decides who is bound to whom. Keys are those of claims and, without namespace, of volumes.

    Claims are looked through for each volume and the other way round, which is linear.
    """

    name = "persistentvolume"

    def __init__(
        self,
        volumes: Table[ResourceView],
        claims: Table[ResourceView],
        classes: Table[StorageClassView],
        nodes: Table[NodeView],
        csi_nodes: Table[CSINodeView],
        *,
        recorder: EventRecorder,
    ) -> None:
        self._recorder = recorder
        self._volumes = volumes
        self._claims = claims
        self._classes = classes
        self._nodes = nodes
        self._topology = VolumeTopology(nodes, csi_nodes)
        self._gone: dict[str, str] = {}
        """By volume: the uid of the claim that it is bound to and the server does not have."""

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def claim_changed(old: ResourceView | None, new: ResourceView | None) -> None:
            enqueue(metadata_of(old, new).key)
            for claim in (old, new):
                if claim is not None and claim.spec.get("volumeName"):
                    enqueue(claim.spec["volumeName"])

        def volume_changed(old: ResourceView | None, new: ResourceView | None) -> None:
            enqueue(metadata_of(old, new).key)
            for volume in (old, new):
                reference = (volume.spec.get("claimRef") if volume is not None else None) or {}
                if reference:
                    enqueue(f"{reference.get('namespace')}/{reference.get('name')}")
            if new is not None and not new.spec.get("claimRef"):
                for claim in self._claims.values():
                    if not claim.spec.get("volumeName") and _class(claim) == _class(new):
                        enqueue(claim.metadata.key)

        def class_changed(old: StorageClassView | None, new: StorageClassView | None) -> None:
            name = metadata_of(old, new).name
            for claim in self._claims.values():
                if not claim.spec.get("volumeName") and _class(claim) == name:
                    enqueue(claim.metadata.key)

        def node_changed(old: NodeView | None, new: NodeView | None) -> None:
            if old is None and new is not None:
                for claim in self._claims.values():
                    if not claim.spec.get("volumeName") and _node(claim) == new.metadata.name:
                        enqueue(claim.metadata.key)

        self._nodes.listen(node_changed)
        self._claims.listen(claim_changed)
        self._volumes.listen(volume_changed)
        self._classes.listen(class_changed)

    def plan(self, key: str) -> Plan:
        return self._plan_claim(key) if "/" in key else self._plan_volume(key)

    def finished(self, key: str, outcome: Outcome) -> None:
        """Note that a claim does not exist, or that another has its name; tell of new volumes."""
        claim = self._claims.get(key)
        if claim is not None and isinstance(outcome.action, Create) and outcome.error is None:
            name = outcome.action.body["metadata"]["name"]
            self._recorder.event(
                reference_to(claim, VOLUME_CLAIMS),
                reason="ProvisioningSucceeded",
                message=f"Successfully provisioned volume {name}",
            )
        volume = self._volumes.get(key)
        if not isinstance(outcome.action, Get) or volume is None:
            return
        uid = (volume.spec.get("claimRef") or {}).get("uid")
        if uid and (
            isinstance(outcome.error, NotFoundError)
            or (outcome.answer and _decode(outcome.answer).metadata.uid != uid)
        ):
            self._gone[key] = uid

    # Claims.

    def _plan_claim(self, key: str) -> Plan:
        claim = self._claims.get(key)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return NOTHING
        name = claim.spec.get("volumeName")
        if name:
            volume = self._volumes.get(name)
            if volume is None or not _is_free_for(volume, claim):
                return NOTHING  # it may come, or become free
            return Plan(self._bind(claim, volume))
        volume = self._reserved(claim) or self._best(claim)
        if volume is not None:
            return Plan(self._bind(claim, volume))
        self._tell_why_it_waits(claim)
        return Plan(self._provision(claim))

    def _tell_why_it_waits(self, claim: ResourceView) -> None:
        name = _class(claim)
        storage_class = self._classes.get(name)
        waits = storage_class is not None and (
            storage_class.volume_binding_mode == "WaitForFirstConsumer" and not _node(claim)
        )
        if waits:
            reason = "WaitForFirstConsumer"
            message = "waiting for first consumer to be created before binding"
        elif not name:
            reason = "FailedBinding"
            message = "no persistent volumes available for this claim and no storage class is set"
        else:
            return
        about = reference_to(claim, VOLUME_CLAIMS)
        self._recorder.event(about, reason=reason, message=message)

    def _reserved(self, claim: ResourceView) -> ResourceView | None:
        """Return the volume that says it is the claim's, as the scheduler has it say."""
        return next(
            (
                volume
                for volume in self._volumes.values()
                if volume.spec.get("claimRef") and _is_free_for(volume, claim)
            ),
            None,
        )

    def _best(self, claim: ResourceView) -> ResourceView | None:
        """Return the smallest volume that does; none while the scheduler has the choice."""
        storage_class = self._classes.get(_class(claim))
        if storage_class is not None and storage_class.volume_binding_mode == (
            "WaitForFirstConsumer"
        ):
            return None
        suitable = [volume for volume in self._volumes.values() if _suits(volume, claim)]
        return min(suitable, key=lambda each: (_size(each), each.metadata.name), default=None)

    def _bind(self, claim: ResourceView, volume: ResourceView) -> list[Action]:
        """Bind both sides, the volume's first: only one claim can win it."""
        reference = volume.spec.get("claimRef") or {}
        if reference.get("uid") != claim.metadata.uid:
            return [_reserve(volume, claim)]
        actions: list[Action] = []
        annotations = claim.metadata.annotations or {}
        if not claim.spec.get("volumeName") or BIND_COMPLETED not in annotations:
            added = {BIND_COMPLETED: "yes"}
            if not claim.spec.get("volumeName"):
                added[BOUND_BY_CONTROLLER] = "yes"
            spec = {"volumeName": volume.metadata.name}
            actions.append(_patch(claim, spec, annotations=added))
        wanted = {
            "phase": "Bound",
            "accessModes": volume.spec.get("accessModes"),
            "capacity": volume.spec.get("capacity"),
        }
        if any(claim.status.get(field) != value for field, value in wanted.items()):
            actions.append(_patch_status(claim, wanted))
        if volume.status.get("phase") != "Bound":
            actions.append(_patch_status(volume, {"phase": "Bound"}))
        return actions

    def _provision(self, claim: ResourceView) -> list[Action]:
        """Make a volume, if the class has a provisioner and, if it waits, a node was chosen."""
        storage_class = self._classes.get(_class(claim))
        if storage_class is None or storage_class.provisioner == NO_PROVISIONER:
            return []
        node = _node(claim)
        if storage_class.volume_binding_mode == "WaitForFirstConsumer" and not node:
            return []
        segment = self._topology.segment(
            storage_class, node_name=node or None, claim_key=claim.metadata.key
        )
        if segment is None:
            return []  # the node may come, or the scheduler choose another
        name = f"pvc-{claim.metadata.uid}"
        spec: Object = {
            "capacity": {"storage": _requested(claim)},
            "accessModes": claim.spec.get("accessModes") or [],
            "claimRef": _reference(claim),
            "csi": {"driver": storage_class.provisioner, "volumeHandle": name},
            "persistentVolumeReclaimPolicy": storage_class.reclaim_policy or "Delete",
            "storageClassName": storage_class.metadata.name,
            "volumeMode": claim.spec.get("volumeMode") or "Filesystem",
        }
        if segment:
            terms = [{"key": k, "operator": "In", "values": [v]} for k, v in segment.items()]
            required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
            spec["nodeAffinity"] = {"required": required}
        annotations = {PROVISIONED_BY: storage_class.provisioner}
        body = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "annotations": annotations},
            "spec": spec,
        }
        return [Create(VOLUMES, body)]

    # Volumes.

    def _plan_volume(self, key: str) -> Plan:
        volume = self._volumes.get(key)
        if volume is None or volume.metadata.deletion_timestamp is not None:
            self._gone.pop(key, None)
            return NOTHING
        reference = volume.spec.get("claimRef") or {}
        uid = reference.get("uid")
        if not uid:
            is_told = volume.status.get("phase") == "Available"
            return NOTHING if is_told else Plan([_patch_status(volume, {"phase": "Available"})])
        if self._claims.by_uid(uid) is not None:
            return NOTHING  # the claim's plan is about both
        if self._gone.get(key) != uid:
            namespace, name = reference["namespace"], reference["name"]
            path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"
            # The watch of claims may be slower than that of volumes.
            return Plan([Get(path)], again=1.0)
        if volume.status.get("phase") != "Released":
            return Plan([_patch_status(volume, {"phase": "Released"})])
        if volume.spec.get("persistentVolumeReclaimPolicy") == "Delete":
            return Plan([Delete(path_of(volume), volume.metadata.uid)])
        return NOTHING


def new_controller(context: ControllerContext) -> PersistentVolumeController:
    return PersistentVolumeController(
        context.table("persistentvolumes", ResourceView),
        context.table("persistentvolumeclaims", ResourceView),
        context.table("storageclasses.storage.k8s.io", StorageClassView),
        context.table("nodes", NodeView),
        context.table("csinodes.storage.k8s.io", CSINodeView),
        recorder=context.recorder("persistentvolume-controller"),
    )


def path_of(obj: ResourceView) -> str:
    """Return the path of a volume, or of a claim, which has a namespace."""
    meta = obj.metadata
    if not meta.namespace:
        return f"{VOLUMES}/{meta.name}"
    return f"/api/v1/namespaces/{meta.namespace}/persistentvolumeclaims/{meta.name}"


def _node(claim: ResourceView) -> str:
    """Return the node that was chosen for a pod with *claim*; "" if there is none yet."""
    return (claim.metadata.annotations or {}).get(SELECTED_NODE) or ""


def _class(obj: ResourceView) -> str:
    return obj.spec.get("storageClassName") or ""


def _size(volume: ResourceView) -> int:
    """Return its capacity; 0 where that is no quantity: such a volume is of use to nobody."""
    try:
        return parse((volume.spec.get("capacity") or {}).get("storage") or 0)
    except ValueError:
        return 0


def _requested(claim: ResourceView) -> int | str:
    requests = (claim.spec.get("resources") or {}).get("requests") or {}
    amount: int | str = requests.get("storage") or 0
    return amount


def _is_free_for(volume: ResourceView, claim: ResourceView) -> bool:
    """Whether the volume is bound to the claim, reserved for it, or nobody's."""
    reference = volume.spec.get("claimRef")
    if not reference:
        return True
    meta = claim.metadata
    same_name = (reference.get("namespace"), reference.get("name")) == (meta.namespace, meta.name)
    return same_name and reference.get("uid") in (None, "", meta.uid)


def _suits(volume: ResourceView, claim: ResourceView) -> bool:
    """Whether the volume is nobody's and has what the claim asks for."""
    selector = msgspec.convert(claim.spec.get("selector") or {}, LabelSelector)
    return (
        not volume.spec.get("claimRef")
        and volume.metadata.deletion_timestamp is None
        and _class(volume) == _class(claim)
        and volume.spec.get("volumeMode") == claim.spec.get("volumeMode")
        and set(claim.spec.get("accessModes") or ()) <= set(volume.spec.get("accessModes") or ())
        and _size(volume) >= parse(_requested(claim))
        and matches(selector, volume.metadata.labels or {})
    )


def _reference(claim: ResourceView) -> Object:
    meta = claim.metadata
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }


def _reserve(volume: ResourceView, claim: ResourceView) -> Patch:
    by_hand = bool(volume.spec.get("claimRef"))
    annotations = {} if by_hand else {BOUND_BY_CONTROLLER: "yes"}
    return _patch(volume, {"claimRef": _reference(claim)}, annotations=annotations)


def _patch(obj: ResourceView, spec: Object, *, annotations: Mapping[str, str]) -> Patch:
    """Change exactly the state that was looked at: the scheduler may be binding it, too."""
    precondition = {"uid": obj.metadata.uid, "resourceVersion": obj.metadata.resource_version}
    metadata = {**precondition, "annotations": dict(annotations)}
    return Patch(path_of(obj), {"metadata": metadata, "spec": spec})


def _patch_status(obj: ResourceView, status: Object) -> Patch:
    return Patch(
        f"{path_of(obj)}/status", {"metadata": {"uid": obj.metadata.uid}, "status": status}
    )
