"""``pods/ephemeralcontainers`` and ``pods/resize``: what changes of a pod that runs."""

from berth.cluster.resources import Object, ResourceType
from berth.cluster.strategies import ephemeral_containers, pod, pod_resize
from berth.cluster.writes.subresources.part import Part
from berth.kube.field_errors import FieldError

EPHEMERAL = "ephemeralContainers"


class EphemeralContainers(Part):
    """The ephemeral containers, and nothing else."""

    name = "ephemeralcontainers"

    def merged(self, resource: ResourceType, new: Object, old: Object) -> Object:
        spec = {key: value for key, value in old["spec"].items() if key != EPHEMERAL}
        given = (new.get("spec") or {}).get(EPHEMERAL)
        if given:
            spec[EPHEMERAL] = given
        return {**old, "metadata": dict(old["metadata"]), "spec": spec}

    def validate(self, resource: ResourceType, new: Object, old: Object) -> list[FieldError]:
        return pod.validate_whole(new) + ephemeral_containers.validate(new, old)


class Resize(Part):
    """The resources of containers, and whether a resize restarts them."""

    name = "resize"

    def merged(self, resource: ResourceType, new: Object, old: Object) -> Object:
        spec = pod_resize.resized(new.get("spec") or {}, old["spec"])
        return {**old, "metadata": dict(old["metadata"]), "spec": spec}

    def validate(self, resource: ResourceType, new: Object, old: Object) -> list[FieldError]:
        return pod.validate_whole(new) or pod_resize.validate(new, old)
