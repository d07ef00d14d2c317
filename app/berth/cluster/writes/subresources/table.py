"""The parts of objects that are read and written below a URL of their own."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final

from berth.cluster.resources import Object, ResourceType
from berth.cluster.strategies import (
    certificates,
    ephemeral_containers,
    metadata,
    pod,
    pod_resize,
)
from berth.cluster.writes.subresources.part import MAIN, Part, kept, put_back
from berth.cluster.writes.subresources.scale import Scale
from berth.kube.field_errors import FieldError

# ``finalize``: the ``spec.finalizers`` of a namespace.


class Finalize(Part):
    name = "finalize"

    def merged(self, resource: ResourceType, new: Object, old: Object) -> Object:
        spec = new.get("spec")
        finalizers = spec.get("finalizers") if isinstance(spec, dict) else None
        return {
            **old,
            "metadata": kept(new["metadata"], old["metadata"]),
            "spec": {**(old.get("spec") or {}), "finalizers": finalizers},
        }

    def prepare(self, resource: ResourceType, new: Object, old: Object) -> None:
        """Leave it: the strategy would put the finalizers back."""

    def validate(self, resource: ResourceType, new: Object, old: Object) -> list[FieldError]:
        found = metadata.validate_update(resource, new["metadata"], old["metadata"])
        for index, each in enumerate(new["spec"]["finalizers"] or ()):
            found += metadata.finalizer(f"spec.finalizers[{index}]", each)
        return found


# ``pods/ephemeralcontainers`` and ``pods/resize``: what changes of a pod that runs.


EPHEMERAL = "ephemeralContainers"


class OfRunningPod(Part, ABC):
    """A part that nothing else of the pod changes with.

    Clients own, and admission sees, also what a write says of the rest, which is dropped then.
    """

    @abstractmethod
    def spec(self, new: Object, old: Object) -> Object:
        """Return the spec *old* with what this part takes from the spec *new*."""

    def prepare(self, resource: ResourceType, new: Object, old: Object) -> None:
        metadata = dict(old["metadata"])
        put_back(metadata, new["metadata"], "managedFields")
        new |= {"metadata": metadata, "spec": self.spec(new.get("spec") or {}, old["spec"])}
        super().prepare(resource, new, old)


class EphemeralContainers(OfRunningPod):
    """The ephemeral containers, and nothing else."""

    name = "ephemeralcontainers"

    def spec(self, new: Object, old: Object) -> Object:
        spec = dict(old)
        put_back(spec, new, EPHEMERAL)
        return spec

    def validate(self, resource: ResourceType, new: Object, old: Object) -> list[FieldError]:
        return pod.validate_whole(new) + ephemeral_containers.validate(new, old)


class Resize(OfRunningPod):
    """The resources of containers, and whether a resize restarts them."""

    name = "resize"

    def spec(self, new: Object, old: Object) -> Object:
        return pod_resize.resized(new, old)

    def validate(self, resource: ResourceType, new: Object, old: Object) -> list[FieldError]:
        return pod.validate_whole(new) + pod_resize.validate(new, old)


# ``status``, and ``approval``: the part of it that those who approve certificates write.


class Status(Part):
    """The status and the metadata; of that what the kind allows."""

    name = "status"

    def merged(self, resource: ResourceType, new: Object, old: Object) -> Object:
        whole = {key: value for key, value in old.items() if key != "status"}
        whole["metadata"] = kept(new["metadata"], old["metadata"])
        for key in resource.strategy.kept_by_status:
            put_back(whole["metadata"], old["metadata"], key)
        return whole | ({"status": new["status"]} if new.get("status") is not None else {})

    def prepare(self, resource: ResourceType, new: Object, old: Object) -> None:
        """Leave it: nothing follows from a status."""

    def validate(self, resource: ResourceType, new: Object, old: Object) -> list[FieldError]:
        after, before = new["metadata"], old["metadata"]
        found = metadata.validate_update(resource, after, before, of_status=True)
        return found + resource.strategy.validate_status(new, old)


class Approval(Status):
    """The conditions of a CertificateSigningRequest."""

    name = "approval"

    def merged(self, resource: ResourceType, new: Object, old: Object) -> Object:
        given = (new.get("status") or {}).get("conditions") or []
        status = {**(old.get("status") or {}), "conditions": certificates.with_transitions(given)}
        return super().merged(resource, {**new, "status": status}, old)

    def validate(self, resource: ResourceType, new: Object, old: Object) -> list[FieldError]:
        return certificates.check_approval(new, old)


PARTS: Final[Mapping[str, Part]] = {
    each.name: each
    for each in (
        MAIN,
        Approval(),
        EphemeralContainers(),
        Finalize(),
        Resize(),
        Scale(),
        Status(),
    )
}
"""By name; the object itself is ""."""
