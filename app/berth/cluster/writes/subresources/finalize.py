"""``finalize``: the ``spec.finalizers`` of a namespace."""

from berth.cluster.resources import Object, ResourceType
from berth.cluster.writes.subresources.part import Part
from berth.kube.field_errors import FieldError


class Finalize(Part):
    name = "finalize"

    def merged(self, resource: ResourceType, new: Object, old: Object) -> Object:
        spec = new.get("spec")
        finalizers = spec.get("finalizers") if isinstance(spec, dict) else None
        metadata = dict(old["metadata"])  # it gets managed fields
        return {
            **old,
            "metadata": metadata,
            "spec": {**(old.get("spec") or {}), "finalizers": finalizers},
        }

    def prepare(self, resource: ResourceType, new: Object, old: Object) -> None:
        """Leave it: the strategy would put the finalizers back."""

    def validate(self, resource: ResourceType, new: Object, old: Object) -> list[FieldError]:
        return []
