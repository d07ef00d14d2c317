"""A part of an object that is read and written below a URL of its own.

``Part()`` itself is the object without its status: what a request without subresource is about.
"""

from berth.cluster.resources import Object, ResourceType
from berth.cluster.strategies import metadata
from berth.kube.field_errors import FieldError

KEPT_METADATA = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)
"""What a create takes none of from the client, and an update does not change."""

DROPPED_METADATA = ("selfLink",)
"""Not kept: nobody fills it any more."""


class Part:
    """How a subresource looks, and what of the object a write to it changes."""

    name = ""
    """In the URL."""
    speaks_own_kind = True
    """Whether it is read and written as the object itself. If not, see :meth:`shown`."""

    def kind(self, resource: ResourceType) -> ResourceType:
        """Return the kind of the bodies."""
        return resource

    def shown(self, resource: ResourceType, obj: Object) -> Object:
        """Return what a GET answers, a patch changes and admission sees; *obj* is the object."""
        return obj

    def merged(self, resource: ResourceType, new: Object, old: Object) -> Object:
        """Return the object that *new*, of :meth:`kind`, makes of *old*, which stays as it is.

        *new* may become part of it. What this request may not change is as it was in *old*.
        """
        new["metadata"] = kept(new["metadata"], old["metadata"])
        if "status" in resource.subresources:
            put_back(new, old, "status")
        return new

    def prepare(self, resource: ResourceType, new: Object, old: Object) -> None:
        """Reset what follows from other fields, as the strategy's ``prepare``."""
        resource.strategy.prepare(new, old)

    def validate(self, resource: ResourceType, new: Object, old: Object) -> list[FieldError]:
        """Return what is wrong with *new*, the whole object."""
        return [
            *metadata.validate_update(resource, new["metadata"], old["metadata"]),
            *resource.strategy.validate(new, old),
        ]


MAIN = Part()


def kept(new: Object, old: Object) -> Object:
    """Return the metadata *new*, with what no update changes as it was in *old*.

    Another uid, or an end of an object that has none, is kept, for validation to refuse.
    """
    metadata = {key: value for key, value in new.items() if key not in _NOT_TAKEN}
    metadata |= {key: old[key] for key in _PUT_BACK if key in old}
    if new.get("uid"):
        metadata["uid"] = new["uid"]
    seconds = new.get("deletionGracePeriodSeconds")
    if seconds is not None:
        metadata["deletionGracePeriodSeconds"] = seconds
    return metadata


_PUT_BACK = ("name", *KEPT_METADATA)
_NOT_TAKEN = frozenset(("name", "uid", "creationTimestamp", "generation", *DROPPED_METADATA))


def put_back(new: Object, old: Object, key: str) -> None:
    """Give *new* what *old* has at *key*, or nothing."""
    new.pop(key, None)
    if key in old:
        new[key] = old[key]
