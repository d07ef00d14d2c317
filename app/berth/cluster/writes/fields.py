"""The place of managed fields in a write."""

from typing import Protocol

from berth.cluster.resources import Object, ResourceType


class FieldManager(Protocol):
    """Keeps ``metadata.managedFields``: which client sets which field."""

    def update(
        self,
        live: Object | None,
        new: Object,
        *,
        resource: ResourceType,
        subresource: str,
        manager: str,
        now: str,
    ) -> None:
        """Set the managed fields of *new*, which *manager* makes of *live* (None: from nothing).

        *new* is complete, with defaults, and has what the client said of managed fields; *now* is
        a time as the API writes it. Called before admission changes *new*, as in a real server:
        what that sets belongs to nobody. Not called when *new* equals *live*.
        """
        ...

    def apply(
        self,
        live: Object,
        applied: Object,
        *,
        resource: ResourceType,
        subresource: str,
        manager: str,
        force: bool,
        now: str,
    ) -> Object:
        """Return *live* with the configuration *applied* merged into it, and managed fields.

        Where there is no object yet, *live* is one with only its type, name and namespace.
        Neither argument may change; the result may share parts with both. A conflict is a
        StatusError, 409.
        """
        ...
