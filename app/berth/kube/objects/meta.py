"""The common parts of objects: metadata, conditions, selectors as written."""

import msgspec


class KubeStruct(msgspec.Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A frozen struct whose JSON keys are camelCase; unknown keys are skipped at decode.

    ``gc=False`` is safe because API objects are trees.
    """


class OwnerReference(KubeStruct, frozen=True, gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(KubeStruct, frozen=True, gc=False):
    """What all objects have."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def key(self) -> str:
        """``namespace/name``, or the name of a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if any."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


class ListMeta(KubeStruct, frozen=True, gc=False):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class LabelSelectorRequirement(KubeStruct, frozen=True, gc=False):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(KubeStruct, frozen=True, gc=False):
    """A ``metav1.LabelSelector`` as written; :mod:`berth.kube.objects.selectors` compiles it.

    Operators that we do not know are kept: what compiles the selector refuses them.
    """

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Condition(KubeStruct, frozen=True, gc=False):
    """A condition of a pod or a node; times are kept as written."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int = 0


class ListHead(KubeStruct, frozen=True, gc=False):
    """A list answer with its items undecoded, so that one bad item does not spoil the list."""

    metadata: ListMeta = ListMeta()
    items: tuple[msgspec.Raw, ...] = ()
