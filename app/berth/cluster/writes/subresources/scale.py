"""``scale``: the size of a workload, for those who only want to change that."""

from berth.cluster import errors, views
from berth.cluster.columns.cells import labels_text, selector_text
from berth.cluster.json_path import simple_steps
from berth.cluster.resources import Object, ResourceType, ScalePaths
from berth.cluster.schemas import builtin
from berth.cluster.writes.managed_fields.entries import stored
from berth.cluster.writes.managed_fields.scale import to_object, to_scale
from berth.cluster.writes.subresources.part import Part
from berth.kube.field_errors import FieldError

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
    """Return the Scale of a workload, with the managers of its replicas."""
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    if resource.scale_paths is not None:
        replicas, status = _of_custom_resource(resource.scale_paths, obj)
    else:
        spec = obj.get("spec") or {}
        write_selector = labels_text if resource.selects_by_map else selector_text
        replicas = spec.get("replicas") or 0
        status = {
            "replicas": (obj.get("status") or {}).get("replicas") or 0,
            "selector": write_selector(spec.get("selector")),
        }
    shown = {key: metadata[key] for key in kept if key in metadata}
    if managed := to_scale(stored(obj), resource.group_version, _owned(resource)):
        shown["managedFields"] = managed
    return {
        **views.type_of(SCALE),
        "metadata": shown,
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def _of_custom_resource(paths: ScalePaths, obj: Object) -> tuple[int, Object]:
    """Return size and status of a Scale (``registry/customresource/etcd.go``)."""
    replicas = paths.replicas.first(obj)
    if not isinstance(replicas, int):
        raise errors.internal(f'the spec replicas field "{paths.replicas.text}" does not exist')
    status = {"replicas": paths.status_replicas.first(obj) or 0}
    selector = None if paths.selector is None else paths.selector.first(obj)
    return replicas, status | ({"selector": selector} if selector else {})


def rescaled(resource: ResourceType, obj: Object, scale: Object) -> Object:
    """Return the workload with the size that *scale* says, and who manages that."""
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if replicas < 0:
        text = f"Invalid value: {replicas}: must be greater than or equal to 0"
        error = FieldError("spec.replicas", "FieldValueInvalid", text)
        raise errors.invalid(SCALE, obj["metadata"]["name"], [error])
    metadata = dict(obj["metadata"])
    managed = to_object(stored(scale), stored(obj), resource.group_version, _owned(resource))
    if managed:
        metadata["managedFields"] = managed
    return {**_with(obj, _path(resource), replicas), "metadata": metadata}


def _path(resource: ResourceType) -> list[str]:
    """Return where objects say how many."""
    paths = resource.scale_paths
    return (simple_steps(paths.replicas.text) if paths else None) or ["spec", "replicas"]


def _owned(resource: ResourceType) -> tuple[str, ...]:
    """Return the same as managed fields have it."""
    return tuple(f"f:{step}" for step in _path(resource))


def _with(obj: Object, path: list[str], value: int) -> Object:
    """Return a copy of *obj*, as deep as needed, with *value* at *path*."""
    first, *rest = path
    return {**obj, first: _with(obj.get(first) or {}, rest, value) if rest else value}


class Scale(Part):
    name = "scale"
    speaks_own_kind = False

    def kind(self, resource: ResourceType) -> ResourceType:
        return SCALE

    def shown(self, resource: ResourceType, obj: Object) -> Object:
        return scale_of(resource, obj)

    def merged(self, resource: ResourceType, new: Object, old: Object) -> Object:
        return rescaled(resource, old, new)
