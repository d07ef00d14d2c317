"""ResourceClaims: made from templates for pods, and freed when no pod needs them any more."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from berth.client.errors import NotFoundError
from berth.cluster.actions import STRATEGIC_MERGE, Action, Create, Delete, Get, Patch
from berth.cluster.controllers.context import ControllerContext
from berth.cluster.controllers.controller import NOTHING, Outcome, Plan
from berth.cluster.controllers.replica_set import pod_path
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import (
    ObjectView,
    PodResourceClaim,
    PodView,
    ResourceView,
    metadata_of,
)
from berth.cluster.writes.identities import SUFFIX_ALPHABET, SUFFIX_LENGTH

POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a claim: which entry of its pod's ``resourceClaims`` it was made for."""
FINALIZER: Final = "resource.kubernetes.io/delete-protection"

POD: Final = "pod:"
CLAIM: Final = "claim:"
"""What a key of the controller begins with."""

NAME_LENGTH: Final = 63

_decode = msgspec.json.Decoder(ObjectView).decode


class ResourceClaimController:
    """Decides which claims to make, to free and to delete. Reads tables, writes nothing."""

    name = "resource-claim"

    def __init__(
        self,
        pods: Table[PodView],
        claims: Table[ResourceView],
        templates: Table[ResourceView],
    ) -> None:
        self._pods = pods
        self._claims = claims
        self._templates = templates
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
            if meta.controller is not None and meta.controller.kind == "Pod":
                enqueue(f"{POD}{meta.namespace}/{meta.controller.name}")

        def template_changed(old: ResourceView | None, new: ResourceView | None) -> None:
            meta = metadata_of(old, new)
            for pod in self._pods.in_namespace(meta.namespace):
                wanted = pod.spec.resource_claims or ()
                if any(each.resource_claim_template_name == meta.name for each in wanted):
                    enqueue(POD + pod.metadata.key)

        self._pods.listen(pod_changed)
        self._claims.listen(claim_changed)
        self._templates.listen(template_changed)

    def plan(self, key: str) -> Plan:
        if key.startswith(POD):
            return self._plan_pod(key.removeprefix(POD))
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
        for each in pod.spec.resource_claims or ():
            if each.resource_claim_name:
                yield each.resource_claim_name
        for claim in self._claims.controlled(pod.metadata.uid):
            yield claim.metadata.name

    # Claims for pods.

    def _plan_pod(self, key: str) -> Plan:
        pod = self._pods.get(key)
        if pod is None or not pod.is_active:
            return NOTHING
        made = {
            (claim.metadata.annotations or {}).get(POD_CLAIM_NAME): claim.metadata.name
            for claim in self._claims.controlled(pod.metadata.uid)
        }
        told = {
            each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses or ()
        }
        actions: list[Action] = []
        news: list[dict[str, str]] = []
        for entry in pod.spec.resource_claims or ():
            if entry.resource_claim_template_name is None:
                continue
            name = made.get(entry.name)
            if name is None:
                actions += self._create(pod, entry)
            elif told.get(entry.name) != name:
                news.append({"name": entry.name, "resourceClaimName": name})
        if news:
            body = {
                "metadata": {"uid": pod.metadata.uid},
                "status": {"resourceClaimStatuses": news},
            }
            actions.append(Patch(f"{pod_path(pod)}/status", body, STRATEGIC_MERGE))
        return Plan(actions)

    def _create(self, pod: PodView, entry: PodResourceClaim) -> list[Create]:
        """Return the creation of the claim, if the template exists: a pod may come before it."""
        meta = pod.metadata
        template = self._templates.get(f"{meta.namespace}/{entry.resource_claim_template_name}")
        if template is None:
            return []
        of_template: dict[str, Any] = template.spec.get("metadata") or {}
        annotations = {**(of_template.get("annotations") or {}), POD_CLAIM_NAME: entry.name}
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": self._name(pod, entry),
                "generateName": f"{meta.name}-{entry.name}-",
                "namespace": meta.namespace,
                "labels": of_template.get("labels") or {},
                "annotations": annotations,
                "ownerReferences": [pod.as_owner()],
            },
            "spec": template.spec.get("spec") or {},
        }
        path = f"/apis/resource.k8s.io/v1/namespaces/{meta.namespace}/resourceclaims"
        return [Create(path, body)]

    def _name(self, pod: PodView, entry: PodResourceClaim) -> str:
        """Return the same name for the same pod each time, so that there is never a second claim.

        Names that others have are passed over.
        """
        meta = pod.metadata
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
        reserved: list[dict[str, Any]] = claim.status.get("reservedFor") or []
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
            kept = [each for each in finalizers if each != FINALIZER]
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
        return {
            f"/api/v1/namespaces/{namespace}/pods/{each['name']}": each["uid"]
            for each in reserved
            if _is_pod(each) and self._pods.by_uid(each["uid"]) is None and each["uid"] not in gone
        }

    def _is_needed(self, key: str, claim: ResourceView, consumer: dict[str, Any]) -> bool:
        """Whether *consumer* may still use the claim. Of what is no pod we know nothing."""
        if not _is_pod(consumer):
            return True
        pod = self._pods.by_uid(consumer["uid"])
        if pod is None:
            return consumer["uid"] not in self._gone.get(key, set())
        never_ran = pod.metadata.deletion_timestamp is not None and not pod.spec.node_name
        return not pod.is_finished and not never_ran

    def _is_of_finished_pod(self, claim: ResourceView) -> bool:
        owner = claim.metadata.controller
        pod = self._pods.by_uid(owner.uid) if owner is not None else None
        return pod is not None and pod.is_finished


def new_controller(context: ControllerContext) -> ResourceClaimController:
    return ResourceClaimController(
        context.table("pods", PodView),
        context.table("resourceclaims.resource.k8s.io", ResourceView),
        context.table("resourceclaimtemplates.resource.k8s.io", ResourceView),
    )


def claim_path(claim: ResourceView) -> str:
    meta = claim.metadata
    return f"/apis/resource.k8s.io/v1/namespaces/{meta.namespace}/resourceclaims/{meta.name}"


def _is_pod(consumer: dict[str, Any]) -> bool:
    return consumer.get("resource") == "pods" and not consumer.get("apiGroup")


def _patch(claim: ResourceView, subresource: str, **fields: dict[str, Any]) -> Patch:
    """Change exactly the state that was looked at: somebody may just be reserving the claim."""
    meta = claim.metadata
    precondition = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    metadata = {**precondition, **fields.pop("metadata", {})}
    return Patch(claim_path(claim) + subresource, {"metadata": metadata, **fields})
