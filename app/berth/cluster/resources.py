"""Types of resources that the server serves, and the hooks that give a kind its rules.

The server's generic code (routing, storage, watch, patch) asks only this; it knows no kind by
name. The kinds are in :mod:`berth.cluster.kinds`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from berth.cluster.json_path import JsonPath
from berth.cluster.schemas.types import Schema
from berth.kube.field_errors import FieldError

Object = dict[str, Any]
"""A Kubernetes object as JSON gives it."""


def section(obj: Object, *path: str) -> Object:
    """Return the object at *path* below *obj*, made where it is missing or null."""
    for key in path:
        child = obj.get(key)
        if child is None:
            child = obj[key] = {}
        obj = child
    return obj


def no_default(_obj: Object) -> None:
    """Nothing to fill in."""


def no_prepare(_new: Object, _old: Object | None) -> None:
    """Nothing to reset."""


def no_validation(_new: Object, _old: Object | None) -> list[FieldError]:
    """Everything is allowed."""
    return []


def same(obj: Object) -> Object:
    """The stored form is the served form."""
    return obj


@dataclass(frozen=True, slots=True)
class Strategy:
    """What is particular about a kind on its way into the store.

    The server calls, in this order, on a private copy of the body: ``default`` (every write, as
    API defaulting), ``prepare`` (reset what this verb may not set: on create ``old`` is None and
    status is dropped; on update of the main resource the old status is put back by the server,
    so ``prepare`` handles only kind-specific things such as ``metadata.generation``), and
    ``validate``. ``validate_status`` evaluates writes to the status subresource instead.
    """

    default: Callable[[Object], None] = no_default
    prepare: Callable[[Object, Object | None], None] = no_prepare
    validate: Callable[[Object, Object | None], list[FieldError]] = no_validation
    validate_status: Callable[[Object, Object | None], list[FieldError]] = no_validation
    initial_status: Callable[[Object], Object | None] = field(default=lambda _obj: None)
    """The status of a new object; None: no status key (kinds without one)."""
    kept_by_status: tuple[str, ...] = ()
    """Metadata that a write to the status does not change either."""
    keeps_status_on_create: bool = False
    """Nodes and leases: kubelets send the whole object at once."""
    graceful_seconds: Callable[[Object], int] | None = None
    """How long a deleted object of this kind lives on by itself (pods: 30); 0: gone at once. None:
    those of this kind are not asked."""
    held_by: tuple[str, ...] = ()
    """Finalizers that a deleted object gets: of those who clean up after it."""
    deleting: Callable[[Object], None] = no_default
    """What changes on an object that is deleted but held by finalizers (namespaces: the phase)."""


@dataclass(frozen=True, slots=True)
class Subresource:
    """A part of an object, or something to do with it, below its URL."""

    name: str
    verbs: tuple[str, ...] = ("get", "patch", "update")
    group: str = ""
    """Of the kind that it speaks."""
    version: str = ""
    """With an empty one it speaks of the group and version of its resource."""
    kind: str = ""
    """Empty: the resource itself."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of ``kubectl get``: a Table column definition and how to fill its cell."""

    name: str
    type: str
    """``string``, ``integer``, ``number``, ``boolean`` or ``date``."""
    value: Callable[[Object], Any]
    format: str = ""
    """``name`` for the name column."""
    priority: int = 0
    """0: always; 1: only with ``-o wide``."""
    description: str = ""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where objects have what their ``scale`` shows (``CustomResourceSubresourceScale``)."""

    replicas: JsonPath
    status_replicas: JsonPath
    selector: JsonPath | None = None


VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One kind at one group and version, as discovery announces it."""

    group: str
    """Empty for the core group."""
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    schema: Schema
    """The fields of its objects."""
    also_read: tuple[str, ...] = ()
    """Further values of ``apiVersion`` that a body may have, which mean the same."""
    is_measured: bool = False
    """Whether its objects are made when somebody asks for them, of what is true then: they are not
    stored, and have no messages in protobuf."""
    structural: Object | None = None
    """What a custom resource has in place of a compiled schema: ``JSONSchemaProps`` as JSON. None:
    it is not a custom resource."""
    list_kind: str = ""
    """Of its lists; empty: the kind and ``List``."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = VERBS
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    """By name, those that are served."""
    scale_paths: ScalePaths | None = None
    """Where the ``scale`` of a custom resource is; of others, in ``spec`` and ``status``."""
    versioned_annotations: tuple[str, ...] = ()
    """Annotations that are fields of the API server's own type: they belong to the whole object in
    its version, and its metadata alone does not have them."""
    garbage_collected: bool = True
    """Whether its objects own others and are owned. Events come and go too fast for that."""
    default_propagation: str = "Background"
    """What becomes of what its objects own, where a DELETE does not say: ``Orphan`` is what it was
    before there was a garbage collector."""
    deletion_warning: str = ""
    """What the answer to a DELETE that does not say what becomes of them warns of."""
    created_by_put: bool = False
    """Whether a PUT creates an object that is not there (``AllowCreateOnUpdate``)."""
    needs_version: bool = False
    """Whether an update must say the resource version that it is about (unless
    ``AllowUnconditionalUpdate``)."""
    returned_when_gone: bool = False
    """Whether a DELETE answers with the object also when it is gone at once, and not with a Status.
    """
    selects_by_map: bool = False
    """``spec.selector`` is a map of labels, as it was before there were label selectors."""
    metadata_rule: str = "update"
    """What its strategy evaluates of metadata on an update: ``ValidateObjectMetaUpdate`` (update),
    ``ValidateObjectMeta`` (whole), ``update, then whole``, ``whole, then update``, or nothing."""
    written_field: str = ""
    """A field that is kept as its client wrote it (:mod:`.written`); empty: there is none."""
    strategy: Strategy = field(default_factory=Strategy)
    row_order: Callable[[Object], Any] | None = None
    """What the rows of a list's table are sorted by. None: as the list, by namespace and name."""
    columns: tuple[Column, ...] = ()
    selectable_fields: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    """Beyond ``metadata.name`` and ``metadata.namespace``: field label to value, "" when unset."""
    digest: Any = None
    """A TypedDict with the parts of an object that columns and selectable fields read, which spares
    them the rest. None: they are given all of it."""
    storage: str = ""
    """Kinds with the same storage key are two views of the same objects (both Event APIs)."""
    warnings: Callable[[Object, Object | None], Iterable[str]] | None = None
    """Called with what is written and what that replaces, when both are found valid: what is odd
    about it. None: nothing ever is."""
    deprecation: str = ""
    """What every answer about it warns of; empty: it is not deprecated."""
    storage_version: str = ""
    """The group and version in which views are kept; empty: its own."""
    to_storage: Callable[[Object], Object] = same
    from_storage: Callable[[Object], Object] = same

    group_version: str = field(init=False, repr=False, compare=False)
    """``v1`` or ``apps/v1``: what ``apiVersion`` says."""
    qualified_plural: str = field(init=False, repr=False, compare=False)
    """How error messages name the resource: ``pods``, ``deployments.apps``."""
    storage_key: str = field(init=False, repr=False, compare=False)
    """Where objects of this kind are kept: ``pods``, ``deployments.apps``."""

    def __post_init__(self) -> None:
        """Write its names once: every request asks for them many times."""
        group_version = f"{self.group}/{self.version}" if self.group else self.version
        qualified_plural = f"{self.plural}.{self.group}" if self.group else self.plural
        object.__setattr__(self, "group_version", group_version)
        object.__setattr__(self, "qualified_plural", qualified_plural)
        object.__setattr__(self, "storage_key", self.storage or qualified_plural)

    @property
    def kind_of_list(self) -> str:
        """What a list of its objects says that it is."""
        return self.list_kind or f"{self.kind}List"

    @property
    def path(self) -> str:
        """The URL prefix of the group and version: ``/api/v1`` or ``/apis/apps/v1``."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def is_view(self) -> bool:
        """Whether its objects are those of another kind, shown in another way."""
        return self.to_storage is not same

    @property
    def is_stored(self) -> bool:
        """If not, it is measured, or a question: a POST is answered and forgotten."""
        return "list" in self.verbs and not self.is_measured

    @property
    def has_messages(self) -> bool:
        """Whether its objects can be written in protobuf."""
        return self.structural is None and not self.is_measured

    def collection_path(self, namespace: str = "") -> str:
        """Return the URL of the objects of a namespace; of all when it is empty."""
        if not namespace:
            return f"{self.path}/{self.plural}"
        return f"{self.path}/namespaces/{namespace}/{self.plural}"

    def path_of(self, namespace: str, name: str) -> str:
        """Return the URL of an object; *namespace* is empty for what is in none."""
        return f"{self.collection_path(namespace)}/{name}"
