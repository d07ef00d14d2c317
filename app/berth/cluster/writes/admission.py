"""What the API server asks of a new object in view of others: its namespace, its priority.

The server calls :meth:`Admission.create` between defaulting and ``prepare``, and the other methods
before it writes. A refusal is a :class:`~berth.cluster.errors.StatusError`. Bodies fit their
kind: that was checked when they were read.
"""

from typing import Any

from berth.cluster.errors import forbidden, not_found
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.strategies.shape import section
from berth.field_errors import FieldError

UNREACHABLE_TOLERATION_SECONDS = 300
"""How long pods stay on a node that is not ready or not reachable, unless they say otherwise."""

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
"""Annotations: of the class of claims that name none, and the old way to name one."""

UNDELETABLE_NAMESPACES = ("default", "kube-public", "kube-system")

_NOT_READY_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class Admission:
    """NamespaceLifecycle, Priority, DefaultTolerationSeconds and DefaultStorageClass.

    A real server has them on, too.
    """

    def create(self, resource: ResourceType, obj: Object, store: Store) -> None:
        """Complete *obj*, about to be created, or refuse it."""
        name = name_of(obj)
        if resource.namespaced:
            _check_namespace(resource, obj, store)
        if resource is PODS:
            spec = section(obj, "spec")
            _set_priority(spec, name, store)
            _add_tolerations(spec)
        elif resource is PRIORITY_CLASSES:
            _check_only_default(obj, name, store)
        elif resource is VOLUME_CLAIMS:
            _set_storage_class(section(obj, "spec"), section(obj, "metadata"), store)

    def update(self, resource: ResourceType, obj: Object, store: Store) -> None:
        """Refuse a change of *obj* to something that must be unique and is not."""
        if resource is PRIORITY_CLASSES:
            _check_only_default(obj, name_of(obj), store)

    def delete(self, resource: ResourceType, name: str) -> None:
        """Refuse to delete what the cluster cannot do without."""
        if resource is NAMESPACES and name in UNDELETABLE_NAMESPACES:
            raise forbidden(resource, name, "this namespace may not be deleted")


def name_of(obj: Object) -> str:
    """Return ``metadata.name`` of whatever *obj* is; "" when it has none."""
    meta: Any = obj.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else None
    return name if isinstance(name, str) else ""


NAMESPACES = find("", "v1", "namespaces")
PODS = find("", "v1", "pods")
VOLUME_CLAIMS = find("", "v1", "persistentvolumeclaims")
STORAGE_CLASSES = find("storage.k8s.io", "v1", "storageclasses")
PRIORITY_CLASSES = find("scheduling.k8s.io", "v1", "priorityclasses")


def _check_namespace(resource: ResourceType, obj: Object, store: Store) -> None:
    meta: Any = obj.get("metadata")
    namespace = meta.get("namespace") if isinstance(meta, dict) else None
    if not isinstance(namespace, str):
        return
    try:
        found = store.get(NAMESPACES.storage_key, "", namespace).decode()
    except NotFoundError:
        raise not_found(NAMESPACES, namespace) from None
    if found["metadata"].get("deletionTimestamp"):
        why = (
            f"unable to create new content in namespace {namespace} because it is being terminated"
        )
        cause = FieldError(
            "metadata.namespace",
            "NamespaceTerminating",
            f"namespace {namespace} is being terminated",
        )
        raise forbidden(resource, name_of(obj), why, [cause])


def _set_priority(spec: Object, name: str, store: Store) -> None:
    """Fill in what the pod's class says; the pod may not say otherwise."""
    class_name = spec.get("priorityClassName")
    chosen = _class(class_name, name, store) if class_name else _default_class(store)
    if not class_name and chosen is not None:
        spec["priorityClassName"] = chosen["metadata"]["name"]
    priority = (chosen or {}).get("value") or 0
    if spec.get("priority") not in (None, priority):
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec;"
            f" priority admission controller computed {priority} from the given PriorityClass name"
        )
        raise forbidden(PODS, name, why)
    spec["priority"] = priority
    policy = (chosen or {}).get("preemptionPolicy") or "PreemptLowerPriority"
    if spec.get("preemptionPolicy") not in (None, policy):
        why = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be "
            f"provided in pod spec; priority admission controller computed {policy} from the "
            "given PriorityClass name"
        )
        raise forbidden(PODS, name, why)
    spec.setdefault("preemptionPolicy", policy)


def _class(class_name: str, pod_name: str, store: Store) -> Object:
    try:
        return store.get(PRIORITY_CLASSES.storage_key, "", class_name).decode()
    except NotFoundError:
        why = f"no PriorityClass with name {class_name} was found"
        raise forbidden(PODS, pod_name, why) from None


def _default_class(store: Store) -> Object | None:
    """Return the class of pods that name none. Of several defaults (a race), the lowest counts."""
    defaults = _default_classes(store)
    return min(defaults, key=lambda each: each.get("value") or 0, default=None)


def _default_classes(store: Store) -> list[Object]:
    classes = (stored.decode() for stored in store.list(PRIORITY_CLASSES.storage_key))
    return [each for each in classes if each.get("globalDefault")]


def _check_only_default(obj: Object, name: str, store: Store) -> None:
    if not obj.get("globalDefault"):
        return
    for other in _default_classes(store):
        taken = other["metadata"]["name"]
        if taken != name:
            why = f"PriorityClass {taken} is already marked as default. Only one default can exist"
            raise forbidden(PRIORITY_CLASSES, name, why)


def _set_storage_class(spec: Object, meta: Object, store: Store) -> None:
    """Give a claim that names no class the default one; of several the newest, then by name."""
    if spec.get("storageClassName") is not None or BETA_CLASS in (meta.get("annotations") or {}):
        return
    classes = (stored.decode()["metadata"] for stored in store.list(STORAGE_CLASSES.storage_key))
    defaults = sorted(
        (each for each in classes if (each.get("annotations") or {}).get(DEFAULT_CLASS) == "true"),
        key=lambda each: str(each["name"]),
    )
    if defaults:
        newest = max(defaults, key=lambda each: str(each["creationTimestamp"]))
        spec["storageClassName"] = newest["name"]


def _add_tolerations(spec: Object) -> None:
    present = spec.get("tolerations") or []
    added = [
        {
            "key": taint,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": UNREACHABLE_TOLERATION_SECONDS,
        }
        for taint in _NOT_READY_TAINTS
        if not any(
            (toleration.get("key") or taint) == taint
            and toleration.get("effect") in (None, "", "NoExecute")
            for toleration in present
        )
    ]
    if added:
        spec["tolerations"] = [*present, *added]
