"""What-if questions, as people and tools write them; documented in the server's OpenAPI.

Strict: unknown fields and wrong types are errors that name the field.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from berth.scheduler.config.presets import Preset

MOST_PODS: Final = 20_000
"""Pods that one question may ask about, those that wait in the snapshot not counted."""
MOST_NODES: Final = 10_000
"""Nodes that one question may add, remove or cordon."""
MOST_ENTRIES: Final = 1_000
"""Of lists of templates, types of nodes and priority classes."""
LONGEST_NAME: Final = 512
"""Characters of a name or pattern."""

Manifest = Annotated[
    dict[str, Any],
    Field(
        description="A Kubernetes object as in YAML; fields that berth does not read are ignored"
    ),
]
NodeNames = Annotated[
    list[Annotated[str, Field(max_length=LONGEST_NAME)]], Field(max_length=MOST_NODES)
]
Release = Literal["", "1.36", "1.37"]
Weight = Annotated[int, Field(ge=0, lt=2**31)]
Weights = dict[str, dict[str, Weight]]
PodNames = Annotated[list[str], Field(max_length=MOST_PODS)]

ZONE: Final = "topology.kubernetes.io/zone"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"


class Asked(BaseModel):
    """camelCase, unknown fields refused, not to be changed."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, strict=True
    )


class Replicas(Asked):
    """Pods made from templates, as their controllers would make them, or copies of a pod."""

    manifest: Manifest | None = Field(
        default=None,
        description="A Pod, PodTemplate, Deployment, ReplicaSet, ReplicationController,"
        " StatefulSet, Job, CronJob (one run) or DaemonSet (a pod for each node that it runs on, in"
        " place of those that it has). What makes no pods is taken into account if it has a part in"
        " where they go, such as a PriorityClass, Service or PersistentVolumeClaim, and passed over"
        " with a note if not",
    )
    text: str = Field(
        default="",
        description="Instead of a manifest, any number of them as YAML or JSON, as in a file; an"
        " object needs apiVersion and kind",
    )
    like: str = Field(
        default="",
        max_length=LONGEST_NAME,
        description="Instead of a manifest, a pod of the snapshot as namespace/name; without"
        " namespace in default. Copies wait for a node, under names of their own, and share its"
        " volume claims",
    )
    replicas: int | None = Field(
        default=None,
        ge=0,
        le=MOST_PODS,
        description="Instead of what the manifest says, or of 1; not of a DaemonSet",
    )

    @model_validator(mode="after")
    def _one_of_three(self) -> "Replicas":
        if (self.manifest is not None) + bool(self.text) + bool(self.like) != 1:
            raise ValueError("one of manifest, text and like is needed")
        return self


class NodeType(Asked):
    """What a new node is like; its name is given to it, and the label kubernetes.io/hostname.

    It has the pods of the DaemonSets that run on it.
    """

    manifest: Manifest | None = Field(default=None, description="A Node")
    like: str = Field(
        default="",
        description="Name of a node of the snapshot; the new ones are as large, with its labels and"
        " with those of its taints that are not about its condition",
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> "NodeType":
        if (self.manifest is None) == (not self.like):
            raise ValueError("either manifest or like is needed")
        return self


class AddedNodes(NodeType):
    """So many nodes of one type."""

    count: int = Field(default=1, ge=1, le=MOST_NODES)


class FindNodes(NodeType):
    """How many nodes of this type must be added so that everything fits without evictions?"""

    most: int = Field(
        default=1_000, ge=1, le=MOST_NODES, description="Give up if so many are not enough"
    )


class NodeChoice(Asked):
    """Nodes by name, and those that a label selector matches."""

    names: NodeNames = Field(
        default=[], description="Names, and patterns as of a shell: node-*, node-0[1-4]"
    )
    selector: str = Field(default="", description="As kubectl takes it, as in pool=spot,zone!=a")


class PodChoice(Asked):
    """Pods by name, and those that a label selector matches."""

    names: PodNames = Field(default=[], description="namespace/name; without namespace in default")
    selector: str = Field(default="", description="As kubectl takes it")
    namespace: str = Field(default="", description="Where the selector looks; everywhere if empty")


class Question(Asked):
    """A cluster that might be, and pods that are to be placed on it.

    Changes are made in this order: nodes are removed, cordoned and added, pods removed. Then pods
    are placed in the order of the queue: those of the question, those whose node was removed, with
    ``repack`` all others that may move, and those that wait in the snapshot.
    """

    pods: list[Manifest] = Field(default=[], max_length=MOST_PODS, description="Pods")
    templates: list[Replicas] = Field(default=[], max_length=MOST_ENTRIES)
    priority_classes: dict[str, int] = Field(
        default={},
        max_length=MOST_ENTRIES,
        description="Values of the classes that the manifests name; system-cluster-critical and"
        " system-node-critical are known",
    )
    include_pending: bool = Field(
        default=True, description="Whether pods that wait in the snapshot are placed, too"
    )
    add_nodes: list[AddedNodes] = Field(default=[], max_length=MOST_ENTRIES)
    remove_nodes: NodeChoice = Field(
        default=NodeChoice(),
        description="Their pods need another node, as after a drain, except those of DaemonSets",
    )
    cordon_nodes: NodeChoice = NodeChoice()
    remove_pods: PodChoice = PodChoice()
    config: dict[str, Any] | None = Field(
        default=None, description="A KubeSchedulerConfiguration instead of the snapshot's"
    )
    preset: Preset | None = Field(
        default=None, description="A configuration that comes with berth, instead of config"
    )
    emulated_version: Release = Field(
        default="", description="The release of Kubernetes to decide like, instead of config's"
    )
    weights: Weights = Field(
        default={},
        max_length=MOST_ENTRIES,
        description="Other weights for score plugins of the configuration: by profile, then by"
        " plugin; with 0 a plugin does not score",
    )
    profile: str = Field(
        default="",
        max_length=LONGEST_NAME,
        description="Which profile places the pods that the question is about, instead of the one"
        " of their spec.schedulerName",
    )
    compare_config: dict[str, Any] | None = Field(
        default=None,
        description="Another KubeSchedulerConfiguration that is asked the same. As with all that"
        " compares: what is not given for it is as without comparison",
    )
    compare_preset: Preset | None = None
    compare_emulated_version: Release = ""
    compare_weights: Weights = Field(default={}, max_length=MOST_ENTRIES)
    compare_profile: str = Field(default="", max_length=LONGEST_NAME)
    preemption: bool = Field(
        default=False, description="Whether less important pods may be evicted"
    )
    seed: int | None = Field(
        default=None,
        ge=0,
        le=2**63 - 1,
        description="Draw one of several best nodes as a scheduler does, the same with every run;"
        " without a seed it is the one with the smallest name",
    )
    find_nodes: FindNodes | None = None
    find_removable: NodeChoice | None = Field(
        default=None,
        description="Which of these nodes can go, so that all of their pods have another and nobody"
        " else loses one; of all nodes if none are named. Nodes of the control plane only by name",
    )
    repack: bool = Field(
        default=False,
        description="Whether the pods that run are placed anew, as if their nodes were empty",
    )
    group_by: list[str] = Field(
        default=[ZONE, INSTANCE_TYPE],
        max_length=8,
        description="Node labels by whose values utilisation is told",
    )

    @model_validator(mode="after")
    def _exclusive(self) -> "Question":
        for config, preset in (("config", "preset"), ("compare_config", "compare_preset")):
            if getattr(self, config) is not None and getattr(self, preset) is not None:
                raise ValueError(f"{to_camel(preset)} and {to_camel(config)} exclude each other")
        if self.repack and self.find_removable is not None:
            raise ValueError("repack goes without findRemovable: it tells which nodes are empty")
        return self

    @property
    def compares(self) -> bool:
        """Whether another configuration is asked the same."""
        config = self.compare_config is not None or self.compare_preset is not None
        return config or bool(
            self.compare_weights or self.compare_profile or self.compare_emulated_version
        )
