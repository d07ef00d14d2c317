"""``pods/binding``: the node of a pod."""

from collections.abc import Collection
from typing import Any, Final

from berth.cluster import errors, views
from berth.cluster.features import (
    CLEARING_NOMINATED_NODE_NAME_AFTER_BINDING,
    DEFAULT_FEATURES,
)
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import builtin
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.storage.stored import Stored
from berth.cluster.strategies.metadata import validate_annotations, validate_labels
from berth.cluster.strategies.syntax import dns1123_subdomain
from berth.cluster.writes.context import WriteContext
from berth.cluster.writes.subresources.action import Outcome
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.runtime.clock import Clock, rfc3339
from berth.runtime.release import RELEASE, Behaviour, EffectiveVersion

TOPOLOGY_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
"""What a bound pod learns of where its node is (PodTopologyLabelsAdmission)."""

BINDING = "binding"
BINDINGS = find("", "v1", "bindings")
NODES = find("", "v1", "nodes").storage_key
STATUS = builtin.meta("Status")


VALID_NODE_NAMES: Final = Behaviour(
    "1.37", "N3.17", "A pod cannot be bound to a node whose name no node could have."
)


class Binding:
    """Assigns a pod to a node, once."""

    name = BINDING
    kind = BINDINGS

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        features: Collection[str] = DEFAULT_FEATURES,
        release: str = RELEASE,
    ) -> None:
        self._store = store
        self._evaluates_names = EffectiveVersion.of(release).has(VALID_NODE_NAMES)
        self._clock = clock
        self._clears_nomination = CLEARING_NOMINATED_NODE_NAME_AFTER_BINDING in features

    async def act(
        self, resource: ResourceType, namespace: str, name: str, body: Object, context: WriteContext
    ) -> Outcome:
        """Assign a pod to the node that *body* names (spec §12.6).

        409 when the pod has a node, is being deleted, still has scheduling gates, or is another of
        the same name. The generation stays: it is not the user who changed the spec.
        """
        target, metadata = _read_binding(body, name)
        found = [
            field_errors.invalid("target.name", target, problem)
            for problem in (dns1123_subdomain(target) if self._evaluates_names else ())
        ]
        if found:
            raise errors.invalid(BINDINGS, name, found)
        try:
            stored = self._store.get(resource.storage_key, namespace, name)
        except NotFoundError:
            raise errors.not_found(resource, name) from None
        pod = views.as_object(resource, stored)
        why = _why_not(pod, stored, metadata)
        if why:
            raise errors.conflict(resource, name, why, subresource=BINDING)
        pod["spec"]["nodeName"] = target
        for key in ("annotations", "labels"):
            added = metadata.get(key) or {}
            if key == "labels":
                added = {**self._topology(target), **added}
            if added:
                pod["metadata"][key] = {**(pod["metadata"].get(key) or {}), **added}
        found = validate_annotations(pod["metadata"].get("annotations"), "metadata.annotations")
        if found:  # they are too long together
            raise errors.invalid(resource, name, found)
        status = pod.setdefault("status", {})
        if self._clears_nomination:
            status.pop("nominatedNodeName", None)
        now = rfc3339(self._clock.now())
        status["conditions"] = _scheduled(status.get("conditions") or [], now)
        self._store.update(resource.storage_key, resource.to_storage(pod), dry_run=context.dry_run)
        return Outcome(errors.success(code=201), STATUS)

    def _topology(self, node: str) -> dict[str, str]:
        try:
            labels = self._store.get(NODES, "", node).labels
        except NotFoundError:
            return {}
        return {key: labels[key] for key in TOPOLOGY_LABELS if key in labels}


def _read_binding(binding: Any, name: str) -> tuple[str, Object]:
    if not isinstance(binding, dict) or binding.get("kind", "Binding") != "Binding":
        raise errors.bad_request("the body must be a Binding")
    target, metadata = binding.get("target") or {}, binding.get("metadata") or {}
    if not isinstance(target, dict) or not isinstance(metadata, dict):
        raise errors.bad_request("Binding: target and metadata must be objects")
    if (metadata.get("name") or name) != name:
        raise errors.bad_request("name in URL does not match name in Binding object")
    found = []
    kind, node = target.get("kind") or "Node", target.get("name")
    if kind != "Node":
        text = f'Unsupported value: "{kind}": supported values: "Node", "<empty>"'
        found.append(FieldError("target.kind", "FieldValueNotSupported", text))
    if not isinstance(node, str) or not node:
        found.append(FieldError("target.name", "FieldValueRequired", "Required value"))
        node = ""
    if found:  # which the server takes for an error of its own
        told = ", ".join(map(str, found))
        raise errors.StatusError(500, "", told if len(found) == 1 else f"[{told}]")
    found = validate_labels(metadata.get("labels"), "metadata.labels")
    found += validate_annotations(metadata.get("annotations"), "metadata.annotations")
    if found:
        raise errors.invalid(BINDINGS, name, found)
    return node, metadata


def _why_not(pod: Object, stored: Stored, metadata: Object) -> str:
    """Return why the pod cannot be assigned; empty when it can."""
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    if uid and uid != stored.uid:
        return errors.uid_mismatch(uid, stored.uid)
    if version and version != str(stored.version):
        return (
            f"Precondition failed: ResourceVersion in precondition: {version}, "
            f"ResourceVersion in object meta: {stored.version}"
        )
    if "deletionTimestamp" in pod["metadata"]:
        return f"pod {stored.name} is being deleted, cannot be assigned to a host"
    if node := pod["spec"].get("nodeName"):
        return f'pod {stored.name} is already assigned to node "{node}"'
    if pod["spec"].get("schedulingGates"):
        return f"pod {stored.name} has non-empty .spec.schedulingGates"
    return ""


def _scheduled(conditions: list[Object], now: str) -> list[Object]:
    """Return *conditions* with PodScheduled true, in its place."""
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    if not any(condition.get("type") == "PodScheduled" for condition in conditions):
        return [*conditions, scheduled]
    return [
        scheduled if condition.get("type") == "PodScheduled" else condition
        for condition in conditions
    ]
