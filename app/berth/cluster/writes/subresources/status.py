"""``status``, and ``approval``: the part of it that those who approve certificates write."""

from berth.cluster.resources import Object, ResourceType
from berth.cluster.strategies import certificates
from berth.cluster.strategies import metadata as metadata_rules
from berth.cluster.writes.subresources.part import Part, kept, put_back
from berth.kube.field_errors import FieldError


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
        found = resource.strategy.validate_status(new, old)
        if _told(new) != _told(old):
            found += metadata_rules.validate_status_write(new, old, namespaced=resource.namespaced)
        return found


class Approval(Status):
    """The conditions of a CertificateSigningRequest."""

    name = "approval"

    def merged(self, resource: ResourceType, new: Object, old: Object) -> Object:
        given = (new.get("status") or {}).get("conditions") or []
        status = {**(old.get("status") or {}), "conditions": certificates.with_transitions(given)}
        return super().merged(resource, {**new, "status": status}, old)

    def validate(self, resource: ResourceType, new: Object, old: Object) -> list[FieldError]:
        return certificates.check_approval(new, old)


def _told(obj: Object) -> Object:
    """Return the metadata that clients decide on."""
    ignored = ("managedFields", "resourceVersion")
    return {key: value for key, value in obj["metadata"].items() if key not in ignored}
