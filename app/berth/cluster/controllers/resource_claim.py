"""ResourceClaims: made from templates, and freed when nobody needs them any more.

They are made for pods and, with the feature gate DRAWorkloadResourceClaims, for PodGroups (spec
G2.4, KEP-5729).
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from berth.cluster.actions import STRATEGIC_MERGE, Action, Create, Delete, Get, Patch
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.replica_set import pod_path
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView
from berth.cluster.kinds.gates import SCHEDULING
from berth.cluster.object_views import Meta, ObjectView, metadata_of
from berth.cluster.pods.controllers import PodResourceClaim, PodResourceClaimStatus, PodView
from berth.cluster.writes.identities import SUFFIX_ALPHABET, SUFFIX_LENGTH
from berth.kube.client.errors import NotFoundError

POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a claim: which entry of its pod's ``resourceClaims`` it was made for."""
POD_GROUP_CLAIM_NAME: Final = "resource.kubernetes.io/podgroup-claim-name"
"""The same for the claim of a PodGroup."""
WORKLOAD_RESOURCE_CLAIMS: Final = "DRAWorkloadResourceClaims"
FINALIZER: Final = "resource.kubernetes.io/delete-protection"

POD: Final = "pod:"
POD_GROUP: Final = "podgroup:"
CLAIM: Final = "claim:"
"""What a key of the controller begins with."""

NAME_LENGTH: Final = 63


_decode = msgspec.json.Decoder(ObjectView).decode


@dataclass(frozen=True, slots=True)
class ClaimOwner:
    """What a claim is made for."""

    metadata: Meta
    reference: dict[str, Any]
    annotation: str
    """Says on the claim for which entry of ``resourceClaims`` it was made."""


class ResourceClaimController:
    """Decides which claims to make, to free and to delete. Reads tables, writes nothing."""

    name = "resource-claim"

    def __init__(
        self,
        pods: Table[PodView],
        claims: Table[ResourceView],
        templates: Table[ResourceView],
        groups: Table[ResourceView] | None = None,
        *,
        group_api: str = "",
    ) -> None:
        """*groups* are those that have claims, in the version *group_api*; None: they have none."""
        self._pods = pods
        self._claims = claims
        self._templates = templates
        self._groups = groups
        self._group_api = group_api
        self._asked: dict[str, dict[str, str]] = {}
        """By key: paths of pods that the table does not show, with the uids looked for."""
        self._gone: dict[str, set[str]] = {}
        """By key: uids of pods that the server says do not exist."""

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def pod_changed(old: PodView | None, new: PodView | None) -> None:
            pod = new or old
            if pod is None or not pod.spec.resource_claims:
                return
            enqueue(POD + pod.metadata.key)
            if new is None or not new.is_active:
                for name in self._claim_names(pod):
                    enqueue(f"{CLAIM}{pod.metadata.namespace}/{name}")

        def claim_changed(old: ResourceView | None, new: ResourceView | None) -> None:
            meta = metadata_of(old, new)
            enqueue(CLAIM + meta.key)
            owner = meta.controller
            if owner is not None and owner.kind == "Pod":
                enqueue(f"{POD}{meta.namespace}/{owner.name}")
            elif owner is not None and owner.kind == "PodGroup" and self._groups is not None:
                enqueue_group(f"{meta.namespace}/{owner.name}")

        def enqueue_group(key: str) -> None:
            enqueue(POD_GROUP + key)
            for pod in self._pods.index(_key_of_group).get(key).values():
                if pod.spec.resource_claims:
                    enqueue(POD + pod.metadata.key)

        def group_changed(old: ResourceView | None, new: ResourceView | None) -> None:
            group = new if new is not None else old
            claims = _claims_of(group)
            if not claims and old is not None:
                return
            meta = metadata_of(old, new)
            enqueue_group(meta.key)
            if new is None:
                for claim in self._claims.in_namespace(meta.namespace):
                    if any(each["uid"] == meta.uid for each in _reserved(claim)):
                        enqueue(CLAIM + claim.metadata.key)

        def template_changed(old: ResourceView | None, new: ResourceView | None) -> None:
            meta = metadata_of(old, new)
            for pod in self._pods.in_namespace(meta.namespace):
                wanted = pod.spec.resource_claims or ()
                if any(each.resource_claim_template_name == meta.name for each in wanted):
                    enqueue(POD + pod.metadata.key)
            for group in self._groups.in_namespace(meta.namespace) if self._groups else ():
                if any(
                    each.resource_claim_template_name == meta.name for each in _claims_of(group)
                ):
                    enqueue(POD_GROUP + group.metadata.key)

        self._pods.listen(pod_changed)
        self._claims.listen(claim_changed)
        self._templates.listen(template_changed)
        if self._groups is not None:
            self._groups.listen(group_changed)

    def plan(self, key: str) -> Plan:
        if key.startswith(POD):
            return self._plan_pod(key.removeprefix(POD))
        if key.startswith(POD_GROUP):
            return self._plan_group(key.removeprefix(POD_GROUP))
        return self._plan_claim(key)

    def finished(self, key: str, outcome: Outcome) -> None:
        """Note that a pod does not exist, or that another has its name."""
        if not isinstance(outcome.action, Get):
            return
        uid = self._asked.get(key, {}).pop(outcome.action.path, None)
        if uid is not None and (
            isinstance(outcome.error, NotFoundError)
            or (outcome.answer and _decode(outcome.answer).metadata.uid != uid)
        ):
            self._gone.setdefault(key, set()).add(uid)

    def _claim_names(self, pod: PodView) -> Iterator[str]:
        """Yield the claims that *pod* uses, as far as is known."""
        for resource_claim in pod.spec.resource_claims or ():
            if resource_claim.resource_claim_name:
                yield resource_claim.resource_claim_name
        for claim in self._claims.controlled(pod.metadata.uid):
            yield claim.metadata.name

    # Claims for pods and groups.

    def _plan_pod(self, key: str) -> Plan:
        pod = self._pods.get(key)
        if pod is None or not pod.is_active:
            return NOTHING
        wanted = pod.spec.resource_claims or []
        of_group: list[PodResourceClaim] = []
        made = self._made(pod.metadata.uid, POD_CLAIM_NAME)
        group_key = _key_of_group(pod)
        if self._groups is not None and group_key:
            group = self._groups.get(group_key)
            if group is None:
                return NOTHING  # whose the claims are is not known before the group is
            of_group = [each for each in _claims_of(group) if each in wanted]
            theirs = self._made(group.metadata.uid, POD_GROUP_CLAIM_NAME)
            made |= {each.name: theirs[each.name] for each in of_group if each.name in theirs}
        owner = ClaimOwner(pod.metadata, pod.as_owner(), POD_CLAIM_NAME)
        actions = self._missing(owner, [each for each in wanted if each not in of_group], made)
        told = _names(pod.status.resource_claim_statuses or ())
        return Plan([*actions, *_tell(pod.metadata, pod_path(pod), wanted, made, told)])

    def _plan_group(self, key: str) -> Plan:
        group = self._groups.get(key) if self._groups is not None else None
        if group is None or group.metadata.deletion_timestamp is not None:
            return NOTHING
        meta, wanted = group.metadata, _claims_of(group)
        made = self._made(meta.uid, POD_GROUP_CLAIM_NAME)
        reference = {
            "apiVersion": self._group_api,
            "kind": "PodGroup",
            "name": meta.name,
            "uid": meta.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        actions = self._missing(ClaimOwner(meta, reference, POD_GROUP_CLAIM_NAME), wanted, made)
        statuses = group.status.get("resourceClaimStatuses") or []
        told = _names(msgspec.convert(statuses, list[PodResourceClaimStatus]))
        path = self._group_path(meta.namespace, meta.name)
        return Plan([*actions, *_tell(meta, path, wanted, made, told)])

    def _made(self, owner_uid: str, annotation: str) -> dict[str, str]:
        """Return the names of the claims that were made for an owner, by name of the entry."""
        return {
            (claim.metadata.annotations or {}).get(annotation, ""): claim.metadata.name
            for claim in self._claims.controlled(owner_uid)
        }

    def _missing(
        self, owner: ClaimOwner, wanted: list[PodResourceClaim], made: Mapping[str, str]
    ) -> list[Action]:
        return [
            create
            for entry in wanted
            if entry.resource_claim_template_name is not None and entry.name not in made
            for create in self._create(owner, entry)
        ]

    def _create(self, owner: ClaimOwner, entry: PodResourceClaim) -> list[Create]:
        """Return the creation of the claim, if the template exists: its user may come before it."""
        meta = owner.metadata
        template = self._templates.get(f"{meta.namespace}/{entry.resource_claim_template_name}")
        if template is None:
            return []
        of_template: dict[str, Any] = template.spec.get("metadata") or {}
        annotations = {**(of_template.get("annotations") or {}), owner.annotation: entry.name}
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": self._name(meta, entry),
                "generateName": f"{meta.name}-{entry.name}-",
                "namespace": meta.namespace,
                "labels": of_template.get("labels") or {},
                "annotations": annotations,
                "ownerReferences": [owner.reference],
            },
            "spec": template.spec.get("spec") or {},
        }
        path = f"/apis/resource.k8s.io/v1/namespaces/{meta.namespace}/resourceclaims"
        return [Create(path, body)]

    def _name(self, meta: Meta, entry: PodResourceClaim) -> str:
        """Return the same name for the same owner each time, so that there is one claim only.

        Names that others have are passed over.
        """
        prefix = f"{meta.name}-{entry.name}-"[: NAME_LENGTH - SUFFIX_LENGTH]
        attempt = 0
        while True:
            text = f"{meta.uid}/{entry.name}/{attempt}"
            digest = hashlib.sha256(text.encode()).digest()
            suffix = (SUFFIX_ALPHABET[byte % len(SUFFIX_ALPHABET)] for byte in digest)
            name = prefix + "".join(suffix)[:SUFFIX_LENGTH]
            if self._claims.get(f"{meta.namespace}/{name}") is None:
                return name
            attempt += 1

    # Claims that are not needed any more.

    def _plan_claim(self, key: str) -> Plan:
        claim = self._claims.get(key.removeprefix(CLAIM))
        if claim is None:
            self._forget(key)
            return NOTHING
        reserved = _reserved(claim)
        unknown = self._unknown(key, claim, reserved)
        if unknown:
            self._asked[key] = unknown
            return Plan([Get(path) for path in unknown], again=0.0)
        valid = [each for each in reserved if self._is_needed(key, claim, each)]
        allocated = claim.status.get("allocation") is not None
        deleted = claim.metadata.deletion_timestamp is not None
        if len(valid) < len(reserved) or (allocated and deleted and not reserved):
            status = {"reservedFor": valid, **({} if valid else {"allocation": None})}
            return Plan([_patch(claim, "/status", status=status)])
        self._forget(key)
        finalizers = claim.metadata.finalizers or []
        if deleted and not reserved and FINALIZER in finalizers:
            kept = [finalizer for finalizer in finalizers if finalizer != FINALIZER]
            return Plan([_patch(claim, "", metadata={"finalizers": kept})])
        if not deleted and not reserved and self._is_of_finished_pod(claim):
            return Plan([Delete(claim_path(claim), claim.metadata.uid)])
        return NOTHING

    def _forget(self, key: str) -> None:
        self._asked.pop(key, None)
        self._gone.pop(key, None)

    def _unknown(
        self, key: str, claim: ResourceView, reserved: list[dict[str, Any]]
    ) -> dict[str, str]:
        """Return the consumers that nobody has told of, neither that they live nor that they died.

        Watches of different kinds run at different speeds, so the server is asked.
        """
        namespace, gone = claim.metadata.namespace, self._gone.get(key, set())
        unknown = {}
        for each in reserved:
            if each["uid"] in gone:
                continue
            if _is_pod(each):
                if self._pods.by_uid(each["uid"]) is None:
                    unknown[f"/api/v1/namespaces/{namespace}/pods/{each['name']}"] = each["uid"]
            elif (
                _is_group(each)
                and self._groups is not None
                and self._groups.by_uid(each["uid"]) is None
            ):
                unknown[self._group_path(namespace, each["name"])] = each["uid"]
        return unknown

    def _is_needed(self, key: str, claim: ResourceView, consumer: dict[str, Any]) -> bool:
        """Whether *consumer* may still use the claim. Of other kinds we know nothing.

        A group does until it is gone, which it is not before its pods.
        """
        if not _is_pod(consumer):
            return consumer["uid"] not in self._gone.get(key, set())
        pod = self._pods.by_uid(consumer["uid"])
        if pod is None:
            return consumer["uid"] not in self._gone.get(key, set())
        never_ran = pod.metadata.deletion_timestamp is not None and not pod.spec.node_name
        return not pod.is_finished and not never_ran

    def _is_of_finished_pod(self, claim: ResourceView) -> bool:
        owner = claim.metadata.controller
        pod = self._pods.by_uid(owner.uid) if owner is not None else None
        return pod is not None and pod.is_finished

    def _group_path(self, namespace: str, name: str) -> str:
        return f"/apis/{self._group_api}/namespaces/{namespace}/podgroups/{name}"


def new_controller(context: ControllerContext) -> ResourceClaimController:
    tables = (
        context.table("pods", PodView),
        context.table("resourceclaims.resource.k8s.io", ResourceView),
        context.table("resourceclaimtemplates.resource.k8s.io", ResourceView),
    )
    groups = context.registry.stored(SCHEDULING, "podgroups")
    if groups is None or WORKLOAD_RESOURCE_CLAIMS not in context.features:
        return ResourceClaimController(*tables)
    table = context.table(groups.storage_key, ResourceView)
    return ResourceClaimController(*tables, table, group_api=groups.group_version)


def claim_path(claim: ResourceView) -> str:
    meta = claim.metadata
    return f"/apis/resource.k8s.io/v1/namespaces/{meta.namespace}/resourceclaims/{meta.name}"


def _key_of_group(pod: PodView) -> str:
    """Return ``namespace/name`` of the PodGroup that *pod* names; empty: none."""
    group = pod.spec.scheduling_group
    return "" if group is None else f"{pod.metadata.namespace}/{group.pod_group_name}"


def _claims_of(group: ResourceView | None) -> list[PodResourceClaim]:
    claims = (group.spec.get("resourceClaims") or []) if group is not None else []
    return msgspec.convert(claims, list[PodResourceClaim])


def _reserved(claim: ResourceView) -> list[dict[str, Any]]:
    return claim.status.get("reservedFor") or []


def _names(statuses: Iterable[PodResourceClaimStatus]) -> dict[str, str | None]:
    return {status.name: status.resource_claim_name for status in statuses}


def _tell(
    meta: Meta,
    path: str,
    wanted: Iterable[PodResourceClaim],
    made: Mapping[str, str],
    told: Mapping[str, str | None],
) -> Iterator[Patch]:
    """Yield what writes to the status of an owner how the claims are called that it waits for."""
    news = [
        {"name": each.name, "resourceClaimName": made[each.name]}
        for each in wanted
        if each.resource_claim_template_name is not None
        and each.name in made
        and told.get(each.name) != made[each.name]
    ]
    if news:
        body = {"metadata": {"uid": meta.uid}, "status": {"resourceClaimStatuses": news}}
        yield Patch(f"{path}/status", body, STRATEGIC_MERGE)


def _is_pod(consumer: dict[str, Any]) -> bool:
    return consumer.get("resource") == "pods" and not consumer.get("apiGroup")


def _is_group(consumer: dict[str, Any]) -> bool:
    return (consumer.get("apiGroup"), consumer.get("resource")) == (SCHEDULING, "podgroups")


def _patch(claim: ResourceView, subresource: str, **fields: dict[str, Any]) -> Patch:
    """Change exactly the state that was looked at: somebody may just be reserving the claim."""
    meta = claim.metadata
    precondition = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    metadata = {**precondition, **fields.pop("metadata", {})}
    return Patch(claim_path(claim) + subresource, {"metadata": metadata, **fields})
