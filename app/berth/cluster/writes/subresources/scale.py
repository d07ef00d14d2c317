"""``scale``: the size of a workload, for those who only want to change that."""

from berth.cluster import errors, views
from berth.cluster.columns.cells import labels_text, selector_text
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import builtin
from berth.cluster.writes.managed_fields.entries import stored
from berth.cluster.writes.managed_fields.scale import to_object, to_scale
from berth.cluster.writes.subresources.part import Part
from berth.field_errors import FieldError

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

REPLICAS = ("f:spec", "f:replicas")
"""Where workloads say how many."""


def scale_of(resource: ResourceType, obj: Object) -> Object:
    """Return the Scale of a workload, with the managers of its replicas."""
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    write_selector = labels_text if resource.selects_by_map else selector_text
    shown = {key: metadata[key] for key in kept if key in metadata}
    if managed := to_scale(stored(obj), resource.group_version, REPLICAS):
        shown["managedFields"] = managed
    return {
        **views.type_of(SCALE),
        "metadata": shown,
        "spec": {"replicas": spec.get("replicas") or 0},
        "status": {
            "replicas": status.get("replicas") or 0,
            "selector": write_selector(spec.get("selector")),
        },
    }


def rescaled(resource: ResourceType, obj: Object, scale: Object) -> Object:
    """Return the workload with the size that *scale* says, and who manages that."""
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if replicas < 0:
        text = f"Invalid value: {replicas}: must be greater than or equal to 0"
        error = FieldError("spec.replicas", "FieldValueInvalid", text)
        raise errors.invalid(SCALE, obj["metadata"]["name"], [error])
    metadata = dict(obj["metadata"])
    managed = to_object(stored(scale), stored(obj), resource.group_version, REPLICAS)
    if managed:
        metadata["managedFields"] = managed
    return {
        **obj,
        "metadata": metadata,
        "spec": {**(obj.get("spec") or {}), "replicas": replicas},
    }


class Scale(Part):
    name = "scale"
    speaks_own_kind = False

    def kind(self, resource: ResourceType) -> ResourceType:
        return SCALE

    def shown(self, resource: ResourceType, obj: Object) -> Object:
        return scale_of(resource, obj)

    def merged(self, resource: ResourceType, new: Object, old: Object) -> Object:
        return rescaled(resource, old, new)
