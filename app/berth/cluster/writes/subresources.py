"""Subresources with a shape of their own: ``pods/binding`` and ``scale``."""

from typing import Any

from berth.clock import Clock, rfc3339
from berth.cluster import errors, views
from berth.cluster.columns.cells import labels_text, selector_text
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import builtin
from berth.cluster.storage.store import NotFoundError, Store, Stored
from berth.field_errors import FieldError

TOPOLOGY_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
"""What a bound pod learns of where its node is (PodTopologyLabelsAdmission)."""

NODES = "nodes"
BINDING = "binding"


def bind(
    store: Store,
    resource: ResourceType,
    stored: Stored,
    binding: Any,
    *,
    clock: Clock,
    dry_run: bool = False,
) -> Stored:
    """Assign a pod to the node that *binding* names (spec §12.6).

    409 when the pod has a node, is being deleted, still has scheduling gates, or is another of the
    same name. The generation stays: it is not the user who changed the spec.
    """
    target, metadata = _read_binding(binding, stored.name)
    pod = views.as_object(resource, stored)
    why = _why_not(pod, stored, metadata)
    if why:
        raise errors.conflict(resource, stored.name, why, subresource=BINDING)
    pod["spec"]["nodeName"] = target
    for key in ("annotations", "labels"):
        added = metadata.get(key) or {}
        if key == "labels":
            added = {**_topology(store, target), **added}
        if added:
            pod["metadata"][key] = {**(pod["metadata"].get(key) or {}), **added}
    status = pod.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    status["conditions"] = _scheduled(status.get("conditions") or [], rfc3339(clock.now()))
    return store.update(resource.storage_key, resource.to_storage(pod), dry_run=dry_run)


def _read_binding(binding: Any, name: str) -> tuple[str, Object]:
    if not isinstance(binding, dict) or binding.get("kind", "Binding") != "Binding":
        raise errors.bad_request("the body must be a Binding")
    target, metadata = binding.get("target") or {}, binding.get("metadata") or {}
    if not isinstance(target, dict) or not isinstance(metadata, dict):
        raise errors.bad_request("Binding: target and metadata must be objects")
    for key in ("annotations", "labels"):
        if not isinstance(metadata.get(key) or {}, dict):
            raise errors.bad_request(f"Binding: metadata.{key} must be an object")
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
    if found:
        raise errors.invalid(BINDINGS, name, found)
    return node, metadata


BINDINGS = find("", "v1", "bindings")


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


def _topology(store: Store, node: str) -> dict[str, str]:
    try:
        labels = store.get(NODES, "", node).labels
    except NotFoundError:
        return {}
    return {key: labels[key] for key in TOPOLOGY_LABELS if key in labels}


def _scheduled(conditions: list[Object], now: str) -> list[Object]:
    """Return *conditions* with PodScheduled true, in its place."""
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    if not any(condition["type"] == "PodScheduled" for condition in conditions):
        return [*conditions, scheduled]
    return [scheduled if each["type"] == "PodScheduled" else each for each in conditions]


SCALE = ResourceType(
    group="autoscaling",
    version="v1",
    kind="Scale",
    plural="scales",
    singular="scale",
    namespaced=True,
    schema=builtin.schema("io.k8s.api.autoscaling.v1.Scale"),
)
"""How a workload looks to those who only want to change its size."""


def scale_of(resource: ResourceType, obj: Object) -> Object:
    """Return the Scale of a workload."""
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    write_selector = labels_text if resource.selects_by_map else selector_text
    return {
        **views.type_of(SCALE),
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": spec.get("replicas") or 0},
        "status": {
            "replicas": status.get("replicas") or 0,
            "selector": write_selector(spec.get("selector")),
        },
    }


def rescaled(obj: Object, scale: Any) -> Object:
    """Return the workload with the size and the preconditions that *scale* says."""
    spec = scale.get("spec") if isinstance(scale, dict) else None
    metadata = scale.get("metadata") if isinstance(scale, dict) else None
    replicas = (spec or {}).get("replicas", 0) if isinstance(spec or {}, dict) else None
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise errors.bad_request(f"Scale: spec.replicas must be a number: {replicas!r}")
    if replicas < 0:
        text = f"Invalid value: {replicas}: must be greater than or equal to 0"
        error = FieldError("spec.replicas", "FieldValueInvalid", text)
        raise errors.invalid(SCALE, obj["metadata"]["name"], [error])
    said = metadata if isinstance(metadata, dict) else {}
    kept = {
        key: said[key] for key in ("name", "namespace", "uid", "resourceVersion") if key in said
    }
    current = {k: v for k, v in obj["metadata"].items() if k not in ("uid", "resourceVersion")}
    return {
        **obj,
        "metadata": {**current, **kept},
        "spec": {**(obj.get("spec") or {}), "replicas": replicas},
    }
