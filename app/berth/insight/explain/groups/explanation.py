"""Explanations of one pod group, as JSON has them."""

from pydantic import Field

from berth.insight.explain.explanation import Evaluation, PluginScore, ResponseModel, Whereabouts


class PodGroupStatus(ResponseModel):
    """Whether the group is scheduled: what the last scheduling cycle of it came to."""

    status: str
    reason: str
    message: str
    last_transition_time: str | None = None


class Blocked(ResponseModel):
    """Members that get no node for the same reason."""

    pods: tuple[str, ...]
    message: str
    """As in the FailedScheduling event, without what preemption adds."""
    plugins: tuple[str, ...]
    """Who rejects them."""


class PlacementVerdict(ResponseModel):
    """What became of one placement, a part of the cluster that may hold the whole group."""

    placement: str
    """The value of the topology label that its nodes have."""
    nodes: int
    num_fit: int
    """How many of the members that were tried get a node here."""
    can_start: bool
    """Whether these are enough."""
    message: str = ""
    """What the group comes to here if they are not."""
    free: dict[str, int]
    """By resource that members request: what the pods that run here leave, over all nodes; cpu in
    milli-cores, memory and storage in bytes, others in pieces."""
    allocatable: dict[str, int]
    total: int | None = None
    """The sum of the weighted scores; None unless several placements can hold the group."""
    plugins: dict[str, PluginScore] = Field(default_factory=dict)
    is_chosen: bool = False


class Shortage(ResponseModel):
    """What would let the group start."""

    pods: int
    """How many more members must get a node."""
    resources: dict[str, int]
    """What they request of the resources that the nodes are short of, in all."""
    placement: str = ""
    """Where it must be, if the group has a topology constraint: key=value."""
    nodes: int | None = None
    """So many nodes like ``like`` would hold these members; None: no node is known to have room for
    them when it is empty."""
    like: str = ""
    words: str
    """The same for people."""


class GroupBelow(ResponseModel):
    """A group that is part of a CompositePodGroup, or is it itself."""

    kind: str
    """``podgroup`` or ``compositepodgroup``."""
    name: str
    """As in namespace/name."""
    depth: int
    """How many groups are above it; 0: it is the topmost."""
    policy: str
    min_count: int | None
    """Of a gang: how many pods, or groups, must get nodes together."""
    topology_key: str
    num_pods: int
    """Those that have not finished, of it or of groups below it."""
    num_scheduled: int
    """Those that have a node."""
    is_ready: bool
    """Whether there are as many pods, or ready groups, as it needs to be tried."""
    can_start: bool | None = None
    """Whether pods of it would get nodes now; None: none was tried."""
    message: str = ""
    """What it comes to if it would not."""


class GroupAbove(ResponseModel):
    """The topmost CompositePodGroup above a group, with which it is tried."""

    name: str
    """As in namespace/name."""
    summary: str
    """Why it waits, in a sentence that names it."""


class PodGroupExplanation(ResponseModel):
    """Everything about a PodGroup, or a CompositePodGroup with the pods of all groups below it."""

    kind: str = "podgroup"
    """``podgroup`` or ``compositepodgroup``."""
    pod_group: str
    """As in namespace/name."""
    exists: bool
    """Whether there is a PodGroup object; until there is, its pods are gated."""
    policy: str = ""
    """``gang`` or ``basic``; empty without the object."""
    min_count: int | None = None
    """Of a gang: how many pods must get nodes together; of a CompositePodGroup, how many groups."""
    part_of: GroupAbove | None = None
    """None: it is tried for itself."""
    groups: tuple[GroupBelow, ...] = ()
    """Of a CompositePodGroup: it and all groups below it, in the order in which they are tried."""
    topology_key: str = ""
    """The label of nodes in whose value all pods of the group must agree; empty: no constraint."""
    summary: str = ""
    """The answer in a sentence, which names the group."""
    status: PodGroupStatus | None = None
    """None if no scheduling cycle of the group has ended yet."""
    num_pods: int
    """Those that have not finished."""
    members: dict[Whereabouts, int]
    """The same by where they are."""
    num_uncreated: int = 0
    """How many more pods must be created before the group is tried."""
    num_tried: int = 0
    """How many members were tried for this answer: those without a node that nothing of their own
    holds back."""
    num_fit: int = 0
    """How many of them get nodes together now; in the best placement, if there are several."""
    can_start: bool = False
    """Whether these are enough."""
    error: str = ""
    """Why the trial failed."""
    blocked: tuple[Blocked, ...] = ()
    """The others."""
    obstacle: str = ""
    """The first of them, as namespace/name, which ``evaluation`` is about."""
    evaluation: Evaluation | None = None
    """The obstacle on each node, with the members that fit on theirs."""
    placements: tuple[PlacementVerdict, ...] = ()
    """Those that were tried, if the group has a topology constraint."""
    choice: str = ""
    """Why the group goes to its placement, if several can hold it."""
    shortage: Shortage | None = None
    """None if the group can start, or if it is not known what helps."""
    attempts: int = 0
    """The most that a member has had."""
    next_try: str | None = None
    """When it is tried again at the latest, in UTC; None: it is ready, or gated."""
    woken_by: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """By plugin that members wait for: the changes after which the group may be tried earlier."""
    leaving: tuple[str, ...] = ()
    """Pods that are being deleted on nodes where room is made for the group."""
    notes: tuple[str, ...] = ()
