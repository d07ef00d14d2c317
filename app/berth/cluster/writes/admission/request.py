"""``AdmissionRequest`` of ``admission.k8s.io/v1``, by its names."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from berth.cluster.options import DeleteOptions
from berth.cluster.resources import Object, ResourceType
from berth.cluster.writes.context import WriteContext


class Operation(StrEnum):
    """What a request does."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(slots=True)
class AdmissionRequest:
    """One write, on its way through the steps."""

    operation: Operation
    resource: ResourceType
    subresource: str
    namespace: str
    """Empty when cluster-scoped."""
    name: str
    object: Object | None
    """The proposed one, with its type: of the kind that the subresource speaks, where it has one.
    Mutating steps change it in place or replace it. None: a deletion."""
    old_object: Object | None
    """The stored one, which nobody may change. None: a creation."""
    context: WriteContext
    delete_options: DeleteOptions | None = None
    awaits: bool = False
    """Whether an async step is concerned."""
    on_stored: Callable[[], None] | None = None
    """Called when the object has been stored, before anything else happens; not in a dry run."""

    @property
    def options(self) -> Object:
        """The options of the request as JSON: CreateOptions, UpdateOptions or DeleteOptions."""
        if self.delete_options is not None:
            return self.delete_options.as_object()
        kind = "CreateOptions" if self.operation is Operation.CREATE else "UpdateOptions"
        options: Object = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
        if self.context.dry_run:
            options["dryRun"] = ["All"]
        if self.context.field_manager:
            options["fieldManager"] = self.context.field_manager
        return options
