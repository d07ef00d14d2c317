"""Actions of a scenario's steps, as types."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from berth.runtime.duration import Duration
from berth.scheduler.config.types import ConfigModel
from berth.tools.up.scenario.one_of import exactly_one
from berth.tools.up.scenario.references import Amount, KindName, LabelSelector

Manifests = tuple[dict[str, Any] | str, ...]
"""Objects, or names of files with objects, relative to the scenario's folder."""
Names = Annotated[tuple[str, ...], Field(min_length=1)]


class NodeGroup(ConfigModel):
    """Hollow nodes that are alike."""

    name: str = "node-"
    """What their names begin with; a number follows. With a `count` of 1 it is the name."""
    count: Annotated[int, Field(ge=1, le=10_000)] = 1
    """How many."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels, besides those that kubelets set."""
    taints: tuple[dict[str, str], ...] = ()
    """Taints, as in a Node."""
    allocatable: dict[str, Amount] = Field(default_factory=dict)
    """By resource; others are `cpu: 4`, `memory: 16Gi`, `pods: 110`."""
    zones: Annotated[int, Field(ge=0)] = 0
    """Over how many zones they are spread: `topology.kubernetes.io/zone` is `zone-1` and so on."""

    @property
    def names(self) -> list[str]:
        """All names, as they count."""
        if self.count == 1:
            return [self.name]
        prefix = self.name if self.name.endswith("-") else f"{self.name}-"
        width = len(str(self.count))
        return [f"{prefix}{number:0{width}}" for number in range(1, self.count + 1)]


class Target(ConfigModel):
    """Which objects: the one of a name, or those that a selector takes."""

    kind: KindName
    """A built-in kind."""
    namespace: str = "default"
    """Of kinds in namespaces."""
    name: str = ""
    """Of one object."""
    selector: LabelSelector = ""
    """Of all objects with these labels."""

    @model_validator(mode="after")
    def _named(self) -> Self:
        if bool(self.name) == bool(self.selector):
            raise ValueError("name or selector is needed, and not both")
        return self


class Delete(Target):
    """Deletes objects."""

    grace_period_seconds: Annotated[int, Field(ge=0)] | None = None
    """What the objects say if it is missing; 0: at once."""
    propagation_policy: Literal["Background", "Foreground", "Orphan"] = "Background"
    """What becomes of what they own."""


class Patch(Target):
    """Patches objects."""

    patch: Any
    """The patch."""
    type: Literal["strategic", "merge", "json"] = "strategic"
    """As `kubectl patch --type` has it."""
    subresource: str = ""
    """Such as `status`."""


class Label(Target):
    """Sets labels."""

    labels: dict[str, str | None]
    """By key; null removes."""


class Annotate(Target):
    """Sets annotations."""

    annotations: dict[str, str | None]
    """By key; null removes."""


class Taint(ConfigModel):
    """Taints nodes."""

    nodes: Names
    """Their names."""
    taints: Names
    """As `kubectl taint` takes them: `key=value:Effect`; with a `-` at the end it is removed."""


class Scale(ConfigModel):
    """Scales a workload by its scale subresource."""

    kind: KindName
    """Such as `Deployment`."""
    namespace: str = "default"
    """Its namespace."""
    name: str
    """Its name."""
    replicas: Annotated[int, Field(ge=0)]
    """How many it is to have."""


class Use(Target):
    """Says what pods use, or what the system of nodes uses besides pods; null: the default."""

    kind: Literal["Pod", "Node"]
    """Whose usage it is."""
    cpu: Amount | None = None
    """`berth.dev/usage-cpu`"""
    memory: Amount | None = None
    """`berth.dev/usage-memory`"""
    ephemeral_storage: Amount | None = None
    """`berth.dev/usage-ephemeral-storage`"""
    inodes: Amount | None = None
    """`berth.dev/usage-inodes`"""
    pids: Amount | None = None
    """`berth.dev/usage-pids`"""

    @property
    def annotations(self) -> dict[str, str | None]:
        """Those that say the same."""
        return {
            f"berth.dev/usage-{name.replace('_', '-')}": getattr(self, name)
            for name in ("cpu", "memory", "ephemeral_storage", "inodes", "pids")
            if name in self.model_fields_set
        }


class Drain(ConfigModel):
    """Drains a node as kubectl does: cordons it, evicts its pods, tries again what is refused."""

    node: str
    """Its name."""
    timeout: Duration = Duration.of(300)
    """How long it may take; it is an error if that is over."""
    grace_period_seconds: Annotated[int, Field(ge=0)] | None = None
    """What the pods say if it is missing."""
    in_background: bool = False
    """Do not wait for it: the next actions and steps follow at once. It must come to its end before
    the scenario does."""


class Evict(ConfigModel):
    """Evicts pods through the API."""

    namespace: str = "default"
    """Their namespace."""
    name: str = ""
    """Of one pod."""
    selector: LabelSelector = ""
    """Of all pods with these labels, one after the other."""
    grace_period_seconds: Annotated[int, Field(ge=0)] | None = None
    """What the pods say if it is missing."""

    @model_validator(mode="after")
    def _named(self) -> Self:
        if bool(self.name) == bool(self.selector):
            raise ValueError("name or selector is needed, and not both")
        return self


class Action(ConfigModel):
    """One thing that is done: exactly one field, and `refused` where it must not succeed."""

    refused: str = ""
    """It must fail, with an error that has this text. Empty: it must not fail."""

    create: Manifests | None = None
    """Create these objects, first what others need."""
    apply: Manifests | None = None
    """Apply these objects, server-side, as `berth-scenario`."""
    delete: Delete | None = None
    """Delete objects."""
    patch: Patch | None = None
    """Patch objects."""
    label: Label | None = None
    """Set labels."""
    annotate: Annotate | None = None
    """Set annotations."""
    scale: Scale | None = None
    """Scale a workload."""
    taint: Taint | None = None
    """Taint nodes."""
    cordon: Names | None = None
    """Make these nodes unschedulable."""
    uncordon: Names | None = None
    """Make these nodes schedulable again."""
    drain: Drain | None = None
    """Drain a node."""
    evict: Evict | None = None
    """Evict pods."""
    use: Use | None = None
    """Say what pods or nodes use, such as memory."""
    stop_nodes: Names | None = None
    """Turn these machines off: nothing is reported any more, and containers are gone."""
    disconnect_nodes: Names | None = None
    """Cut these nodes off the network: nothing is reported any more, containers go on."""
    heal_nodes: Names | None = None
    """Turn these machines on, or connect them again."""
    add_nodes: NodeGroup | None = None
    """Start more machines; go on when they are ready."""
    remove_nodes: Names | None = None
    """Take these machines away, and delete their Nodes."""
    scheduler: Literal["stop", "start", "restart"] | None = None
    """Kill the scheduler, as with `kill -9`, or start one."""
    configure_scheduler: dict[str, Any] | None = None
    """Reload the scheduler's configuration, as `cluster.schedulerConfiguration` has it."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        exactly_one(self, self.kinds())
        return self

    @classmethod
    def kinds(cls) -> list[str]:
        """The fields of which one is set."""
        return [name for name in cls.model_fields if name != "refused"]

    @property
    def kind(self) -> str:
        """The field that is set."""
        return next(name for name in self.kinds() if name in self.model_fields_set)
