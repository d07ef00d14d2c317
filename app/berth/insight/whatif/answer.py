"""Answers to what-if questions, as JSON has them; documented in the server's OpenAPI.

Amounts are in the units of scheduling: cpu in milli-cores, memory and storage in bytes, all else in
pieces.
"""

from typing import Final, Literal

from pydantic import Field

from berth.insight.explain.explanation import ResponseModel

PODS: Final = "pods"
BALANCED: Final = ("cpu", "memory")
"""Resources whose evenness is told."""


class Amount(ResponseModel):
    """One resource of some nodes."""

    allocatable: int
    requested: int = Field(description="What the pods on the nodes request")
    share: float = Field(description="requested / allocatable; 0 where nothing can be allocated")


class Usage(ResponseModel):
    """What some nodes have to give, and what is taken."""

    nodes: int
    pods: int
    resources: dict[str, Amount] = Field(
        description="cpu in milli-cores, memory and ephemeral-storage in bytes, others in pieces"
    )
    imbalance: dict[str, float] = Field(
        description="Standard deviation over the nodes of the share of cpu and memory; 0 is even"
    )


class ClusterUsage(Usage):
    """What all nodes have to give, what is taken, and how it is distributed."""

    fragmentation: dict[str, float] = Field(
        description="Share of a resource that is free on nodes where a pod, drawn from the typical"
        " ones, does not fit. Typical are the pods of the cluster and the question, but for the"
        " rarest 5 %. Resources of the node count, not taints or affinity"
    )
    nodes_by_share: dict[str, tuple[int, ...]] = Field(
        description="How many nodes have less than 10 % of a resource requested, how many from 10 %"
        " to less than 20 %, and so on; the last of the ten are those with 90 % and more"
    )


class NodeChange(ResponseModel):
    """One resource of a node."""

    allocatable: int
    before: int = Field(description="What the pods on the node requested")
    after: int


class ChangedNode(ResponseModel):
    """A node that comes, goes, or of which another amount is taken."""

    node: str
    change: Literal["added", "changed", "removed"]
    resources: dict[str, NodeChange] = Field(description="In the units of Usage")


class Group(ResponseModel):
    """The nodes with one value of a label; empty for those without the label."""

    value: str
    placed: int = Field(description="How many pods of this question found a node here")
    before: Usage
    after: Usage


class Unplaced(ResponseModel):
    """Pods of one template that fit nowhere for the same reason."""

    template: str = Field(description="What they were made from, as in Deployment default/web")
    message: str = Field(
        description="As in the FailedScheduling event; of pods that are not created, as the API"
        " server refuses them"
    )
    pods: tuple[str, ...]
    asked: bool = Field(description="Whether the question is about them; else they waited before")


class PodGroupOutcome(ResponseModel):
    """What became of one pod group of which pods were to be placed."""

    pod_group: str = Field(description="As in namespace/name")
    min_count: int | None = Field(
        description="How many pods must get nodes together; null if each may go alone"
    )
    placed: int = Field(description="How many pods of this question found a node")
    starts: bool = Field(
        description="Whether enough pods of the group have nodes, those included that had one"
    )
    topology: str = Field(
        default="", description="Where they are, as key=value, if the group has a constraint"
    )
    obstacle: str = Field(default="", description="The first pod that got no node")
    why: str = Field(default="", description="Why the others have none, and what would help")


class Victim(ResponseModel):
    """A pod that would be evicted."""

    pod: str
    node: str
    priority: int
    preemptor: str
    target: str = Field(
        default="",
        description="Where its controller's next pod would go, after everything else was placed,"
        " evicting others if it may; empty if nowhere",
    )
    why: str = Field(default="", description="Why it would go nowhere")


class Move(ResponseModel):
    """A pod that would run on another node."""

    pod: str
    source: str
    target: str


class Repacked(ResponseModel):
    """What comes of placing the pods that run anew. Pods of DaemonSets and mirror pods, which go
    with their node, do not count.
    """

    nodes_before: int = Field(description="Nodes that run pods")
    nodes_after: int
    emptied: tuple[str, ...] = Field(description="Nodes that run none any more")
    pods: int = Field(description="How many were placed anew")
    moves: tuple[Move, ...]


class Outcome(ResponseModel):
    """What one scheduler makes of it."""

    fits: bool = Field(
        description="Whether all pods that the question is about have a node: its own and those of"
        " removed nodes; if there are none, all that wait. Not if some are undecided"
    )
    placements: dict[str, str] = Field(description="Node by namespace/name of the pod")
    unplaced: tuple[Unplaced, ...]
    pending: tuple[str, ...] = Field(
        default=(), description="Which of the two waited in the snapshot"
    )
    sources: dict[str, str] = Field(
        default={},
        description="Which of them ran already, with their node: those of removed nodes, and with"
        " repack all that may move",
    )
    pod_groups: tuple[PodGroupOutcome, ...] = Field(
        default=(), description="Of groups that are scheduled as one unit"
    )
    victims: tuple[Victim, ...]
    before: ClusterUsage = Field(description="The cluster as it was")
    after: ClusterUsage = Field(description="The cluster with all changes and placements")
    nodes: tuple[ChangedNode, ...] = Field(default=(), description="Only those that change")
    groups: dict[str, tuple[Group, ...]] = Field(description="By label, then by value")
    repacked: Repacked | None = None


class NodesNeeded(ResponseModel):
    """How many nodes must be added."""

    count: int | None = Field(
        description="So many are enough and one less is not; null if the most allowed are not."
        " Where more nodes can make things worse, as with spreading, a smaller number may do too"
    )
    most: int
    tried: dict[int, bool] = Field(description="Numbers of nodes that were simulated: enough?")


class RemovableNode(ResponseModel):
    """A node that can go, and where its pods would be."""

    node: str
    moves: dict[str, str] = Field(description="Node by namespace/name of the pod")


class Staying(ResponseModel):
    """Nodes that cannot go for the same reason."""

    why: str
    nodes: tuple[str, ...]


class Removable(ResponseModel):
    """Nodes that can go, all of them at once; found by trying the least used first."""

    nodes: tuple[RemovableNode, ...]
    stays: tuple[Staying, ...] = Field(description="Why the others of the question stay")
    after: Usage = Field(description="The cluster without them")
    without_controller: tuple[str, ...] = Field(
        description="Pods of theirs that nobody makes again once they are evicted"
    )


class Partial(ResponseModel):
    """How far a simulation came before its CPU time was used up. All that it answers holds."""

    stage: Literal["placing", "comparing", "findNodes", "findRemovable"] = Field(
        description="What it was at. Later parts of the question have no answer"
    )
    done: int = Field(description="How many pods were decided about; nodes for findRemovable")
    of: int
    undecided: tuple[str, ...] = Field(
        default=(), description="Pods that are neither placed nor refused"
    )
    advice: str = Field(description="What would need less time")


class Answer(Outcome):
    """What would be."""

    snapshot_time: str = Field(description="When the snapshot was taken; empty if it does not say")
    notes: tuple[str, ...] = Field(
        default=(), description="What was passed over, assumed or not known"
    )
    admission: str = Field(
        default="",
        description="Of a question that creates pods: which rules of the API server they were held"
        " to, and which are left out. A pod that it would refuse is among the unplaced",
    )
    nodes_needed: NodesNeeded | None = None
    removable: Removable | None = None
    partial: Partial | None = Field(
        default=None, description="Set if the CPU time did not suffice for the whole question"
    )
    compared: Outcome | None = Field(
        default=None, description="What the other configuration makes of the same question"
    )
    moved: int | None = Field(
        default=None, description="Pods that the two configurations place differently"
    )
