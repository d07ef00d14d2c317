"""Resizing a pod in place: what may change of the resources of its containers (KEP-1287)."""

from collections.abc import Iterator, Mapping
from typing import Final

from berth.cluster.resources import Object
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.pod_defaults import qos_class

FIELDS: Final = ("containers", "initContainers")
RESIZED: Final = ("resources", "resizePolicy")
RESIZABLE: Final = frozenset({"cpu", "memory"})


def resized(new: Object, old: Object) -> Object:
    """Return the spec *old* with the resources that *new* gives containers of the same names."""
    spec = dict(old)
    for field in FIELDS:
        given = {each.get("name"): each for each in new.get(field) or []}
        if field in old:
            spec[field] = [_taken(given.get(each["name"], each), each) for each in old[field]]
    return spec


def _taken(new: Object, old: Object) -> Object:
    kept = {key: value for key, value in old.items() if key not in RESIZED}
    return {**kept, **{key: new[key] for key in RESIZED if key in new}}


def validate(new: Object, old: Object) -> list[FieldError]:
    """Evaluate the change of the pod *old* to *new*, which is valid by itself."""
    before, after = old["spec"], new["spec"]
    found: list[FieldError] = []
    qos = qos_class(after)
    if qos != qos_class(before):
        why = "Pod QOS Class may not change as a result of resizing"
        found.append(field_errors.invalid("spec", qos, why))
    if not _is_supported(old.get("status") or {}):
        why = "Pod running on node without support for resize"
        found.append(field_errors.forbidden("spec", why))
    for path, was, now in _resources(before, after):
        for kind in ("limits", "requests"):
            given, left = was.get(kind) or {}, now.get(kind) or {}
            if given.keys() - left.keys():
                why = f"resource {kind} cannot be removed"
                found.append(field_errors.forbidden(f"{path}.{kind}", why))
    fixed = any(_fixed(was) != _fixed(now) for _, was, now in _resources(before, after))
    if fixed and not found:
        why = "only cpu and memory resources are mutable"
        found.append(field_errors.forbidden("spec", why))
    return found


def _resources(before: Object, after: Object) -> Iterator[tuple[str, Object, Object]]:
    for field in FIELDS:
        pairs = zip(before.get(field) or [], after.get(field) or [], strict=True)
        for index, (was, now) in enumerate(pairs):
            path = f"spec.{field}[{index}].resources"
            yield path, was.get("resources") or {}, now.get("resources") or {}


def _fixed(resources: Object) -> Object:
    """Return what of the resources of a container never changes."""

    def others(amounts: Mapping[str, str]) -> Object:
        return {name: amount for name, amount in amounts.items() if name not in RESIZABLE}

    kept = {key: value for key, value in resources.items() if key not in ("limits", "requests")}
    return {**kept, **{key: others(resources.get(key) or {}) for key in ("limits", "requests")}}


def _is_supported(status: Object) -> bool:
    """Tell by the first container that runs whether the kubelet reports what containers have."""
    for container_status in status.get("containerStatuses") or []:
        if "running" in (container_status.get("state") or {}):
            return "resources" in container_status
    return True
