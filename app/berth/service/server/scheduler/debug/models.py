"""The JSON of ``/debug``; all times are UTC.

Amounts are in the units of the scheduler: CPU in thousandths of a core, memory and storage in
bytes, everything else in its own unit.
"""

from enum import StrEnum
from typing import Any, Literal

from berth.insight.explain.explanation import PastDecision, ResponseModel
from berth.insight.explain.groups.explanation import PodGroupStatus
from berth.insight.shadow.comparisons import Shadowed, Summary
from berth.service.server.scheduler.debug.pagination import Page


class QueueName(StrEnum):
    """Where a pod waits."""

    ACTIVE = "active"
    """To be tried, in the order of ``podsAhead``."""
    BACKOFF = "backoff"
    """It was rejected and rests, unless there is nothing else to try."""
    ERROR_BACKOFF = "errorBackoff"
    """Its last attempt broke, and it rests in any case."""
    UNSCHEDULABLE = "unschedulable"
    """It waits for a change in the cluster."""
    GATED = "gated"
    """A PreEnqueue plugin keeps it from being tried."""
    IN_FLIGHT = "inFlight"
    """It is being tried, or waits for Permit plugins."""


class WaitingPod(ResponseModel):
    """A pod without a node."""

    pod: str
    """As in namespace/name."""
    uid: str
    scheduler_name: str
    priority: int
    queue: QueueName
    since: str
    """When it was put where it is."""
    waiting_since: str
    """When it could first be tried; of a pod that never could, when it was put where it is."""
    age_seconds: float
    """Seconds since ``waitingSince``."""
    attempts: int
    pods_ahead: int | None = None
    """Of an active pod: how many are tried before it."""
    next_try_at: str | None = None
    """When it is ready to be tried at the latest, whatever happens; null: it is ready, or gated."""
    next_try_in_seconds: float | None = None
    """Seconds until ``nextTryAt``."""
    gating_plugin: str = ""
    rejecting_plugins: tuple[str, ...] = ()
    """Which plugins rejected it at its last attempt; the gating one if it is gated."""
    pending_plugins: tuple[str, ...] = ()
    """Which plugins want it to wait for something that they watch."""
    nominated_node: str = ""
    message: str = ""
    """What its PodScheduled condition says, or else what its last attempt came to."""


class WaitingPods(Page):
    """Pods of the scheduling queue, by namespace/name and UID."""

    items: tuple[WaitingPod, ...]
    counts: dict[QueueName, int]
    """How many pods there are in each part of the queue, whatever is asked for."""


class Cause(StrEnum):
    """What a pod waits for, in the order in which somebody should look at it."""

    ERROR = "Error"
    """Its last attempt broke: a plugin, an extender or the API server failed."""
    REJECTED = "Rejected"
    """It fits on no node; the state of the cluster has to change."""
    PREEMPTING = "Preempting"
    """It is nominated to a node, where its victims have to leave."""
    PERMIT = "Permit"
    """It has room on a node, and waits for Permit plugins."""
    GATED = "Gated"
    """A PreEnqueue plugin keeps it from being tried."""
    NOT_TRIED = "NotTried"
    """It has not been tried yet."""


class PodsOfWorkload(ResponseModel):
    """How many pods of one controller wait."""

    namespace: str
    workload: str
    """As in deployment/web; a pod without a controller as in pod/web."""
    num_pods: int


class FirstPod(ResponseModel):
    """One of those that have waited longest."""

    pod: str
    """As in namespace/name."""
    age_seconds: float


class WaitingGroup(ResponseModel):
    """Pods that wait for the same reason."""

    id: str
    """The same as long as there is such a reason, for ``/debug/queue?group=``; empty where several
    reasons are counted together because there are too many."""
    cause: Cause
    plugins: tuple[str, ...]
    """Which plugins rejected the pods, gate them, or make them wait."""
    reasons: tuple[str, ...]
    """The reasons of the FailedScheduling message without the numbers of nodes, the scheduling
    gates, or the error."""
    words: str
    """The same in a sentence: "40 pods fit on no node: Insufficient cpu"."""
    message: str
    """The whole message of the pod that has waited longest, numbers included."""
    num_pods: int
    counts: dict[QueueName, int]
    """How many of them are in each part of the queue."""
    highest_priority: int
    oldest_age_seconds: float
    workloads: tuple[PodsOfWorkload, ...]
    """Those with the most pods."""
    num_workloads: int
    """How many there are; at least so many if there are very many."""
    pods: tuple[FirstPod, ...]
    """The first pods, by how long they have waited."""


class WaitingGroups(ResponseModel):
    """All pending pods by reason, what should be looked at first before the others."""

    at: str
    """When this was found; an answer is kept for a moment, and for longer with many pods."""
    num_pods: int
    num_groups: int
    items: tuple[WaitingGroup, ...]


class PodGroupOverview(ResponseModel):
    """Pods that are scheduled as one unit; ``/explain/podgroups`` says why one waits."""

    pod_group: str
    """As in namespace/name."""
    exists: bool
    """Whether there is a PodGroup object; until there is, its pods are gated."""
    policy: str = ""
    """``gang`` or ``basic``; empty without the object."""
    min_count: int | None = None
    """Of a gang: how many pods must get nodes together."""
    num_pods: int
    """Those that have not finished."""
    num_scheduled: int
    """Those that have a node, also those that are being bound."""
    num_gated: int
    """Those that a PreEnqueue plugin keeps from being tried."""
    status: PodGroupStatus | None = None
    part_of: str = ""
    """The topmost CompositePodGroup above it, as in namespace/name; empty without one."""


class PodGroups(Page):
    """Pod groups, by namespace and name; none unless the gate GenericWorkload is on."""

    items: tuple[PodGroupOverview, ...]


class CachedPod(ResponseModel):
    """A pod that counts on a node."""

    pod: str
    uid: str
    assumed: bool
    """Whether the API server has not confirmed it yet."""
    assumed_since: str | None = None
    """When it was given the node; null if confirmed, or not known any more."""
    assumed_seconds: float | None = None
    """Seconds since ``assumedSince``."""


class Room(ResponseModel):
    """One resource of a node."""

    allocatable: int
    requested: int
    free: int
    """Negative if more is requested than there is."""


class NodeCondition(ResponseModel):
    """A condition of a node; schedulers go by taints, not by these."""

    type: str
    status: str
    reason: str
    message: str


class NodeImage(ResponseModel):
    """A container image that a node has."""

    names: tuple[str, ...]
    size_bytes: int


class NodeDetails(ResponseModel):
    """What else is known of a node."""

    labels: dict[str, str]
    conditions: tuple[NodeCondition, ...]
    images: tuple[NodeImage, ...]


class CachedNode(ResponseModel):
    """A node as the scheduler counts it."""

    node: str
    row: int
    """Its place in the table, which stays while the node exists."""
    zone: str
    region: str
    unschedulable: bool
    taints: tuple[str, ...]
    """As in key=value:effect."""
    resources: dict[str, Room]
    """By name; ``pods`` counts pods."""
    assumed: tuple[CachedPod, ...]
    """The pods that are assumed to be there, oldest first."""
    nominated: tuple[str, ...]
    """The pods that are to get room there."""
    generation: int
    """Larger than all earlier ones after each change of the node or its pods."""
    pods: tuple[CachedPod, ...] | None = None
    """All its pods, in order of arrival; null unless asked for."""
    details: NodeDetails | None = None
    """Null unless the pods are asked for."""


class CacheCounts(ResponseModel):
    """List of endpoints in the whole cache."""

    nodes: int
    """Those that are not known, but have pods, included."""
    pods: int
    assumed_pods: int


class UnreadableObject(ResponseModel):
    """An object of the API server that could not be read as a whole."""

    path: str
    """Of its kind, as the API server has it."""
    object: str
    """As in namespace/name."""
    counts: bool
    """Whether the rest of it counts; otherwise its last known state does, if there is one."""
    reasons: tuple[str, ...]
    """What could not be read, and why; the first few parts."""


class CachedNodes(Page):
    """Nodes in the order of the table."""

    items: tuple[CachedNode, ...]
    counts: CacheCounts
    unknown_nodes: dict[str, tuple[str, ...]]
    """Pods that are bound to nodes which the scheduler does not know, by node."""
    unreadable: tuple[UnreadableObject, ...]
    """The first hundred, whatever is asked for; a metric counts them all."""


class NominatedPod(ResponseModel):
    """A pod for which room on a node is being made, or kept."""

    pod: str
    uid: str
    node: str
    priority: int
    """Pods of lower priority may not take the room."""
    leaving: tuple[str, ...]
    """The pods on the node that are being deleted."""


class NominatedPods(Page):
    """Nominations by pod."""

    items: tuple[NominatedPod, ...]


class PermitWait(ResponseModel):
    """A plugin that has a pod wait."""

    plugin: str
    deadline: str | None
    """When the pod is turned away; null: the wait begins in a moment."""
    seconds_left: float | None


class PermittedPod(ResponseModel):
    """A pod that has a node and waits for Permit plugins."""

    pod: str
    uid: str
    node: str
    profile: str
    since: str
    """When its attempt began."""
    waits_for: tuple[PermitWait, ...]


class PermittedPods(Page):
    """Pods that wait for Permit plugins, by pod."""

    items: tuple[PermittedPod, ...]


class ShadowedPods(Page):
    summary: Summary
    """All comparisons since the start, whatever is asked for."""
    items: tuple[Shadowed, ...]


class PastDecisions(Page):
    """Attempts that are still remembered, the newest first."""

    items: tuple[PastDecision, ...]


class InFlightPod(ResponseModel):
    """A pod that is being tried, or waits for Permit plugins."""

    pod: str
    """Empty if the pod is unknown, which would be a bug."""
    uid: str
    events: int
    """How many events are kept for it, for its queueing hints if this attempt fails."""
    node: str
    """Where it has room; empty: nowhere yet."""
    since: str | None
    """When its attempt began; null: it is going on."""


class InFlightPods(Page):
    """Pods in flight by UID."""

    items: tuple[InFlightPod, ...]
    events: dict[str, int]
    """The length of the list of events, by label; pods count as PodPopped."""


class RunningTask(ResponseModel):
    """A task of the event loop."""

    name: str
    coroutine: str
    where: tuple[str, ...]
    """Which lines it waits at, outermost first: module, function and line."""


class RunningTasks(Page):
    """Tasks by name."""

    items: tuple[RunningTask, ...]


class DifferenceKind(StrEnum):
    """What is wrong with the cache."""

    MISSING_NODE = "missingNode"
    """The cache lacks it."""
    REDUNDANT_NODE = "redundantNode"
    """The API server lacks it."""
    MISSING_POD = "missingPod"
    """It is bound, and the cache does not count it."""
    REDUNDANT_POD = "redundantPod"
    """The cache counts it, and the API server has it on no node, or not at all."""
    MISPLACED_POD = "misplacedPod"
    """The cache counts it on another node."""


class Difference(ResponseModel):
    """One object that cache and API server disagree about."""

    kind: DifferenceKind
    object: str
    """The name of the node; of a pod as in namespace/name."""
    words: str
    """The same for people."""


class ComparisonReport(ResponseModel):
    """Differences between the cache and the API server."""

    clean: bool
    at: str
    """When the API server was last asked."""
    looks: int
    """How often it was asked: a second time if there was a difference at first."""
    nodes: int
    """How many nodes the API server has."""
    pods: int
    """How many unfinished pods the API server has."""
    total: int
    """How many differences there were each time."""
    differences: tuple[Difference, ...]
    """The first of them."""


class EffectiveConfiguration(ResponseModel):
    """The effective configuration, defaults included."""

    generation: int
    """Counts the configurations since start, from 1."""
    loaded_at: str
    """Since when it is in force."""
    configuration: dict[str, Any]
    """A KubeSchedulerConfiguration, with REDACTED for secrets."""
    score_weights: dict[str, dict[str, int]]
    """Weights of the plugins that score, by profile, then by plugin."""
    presets: dict[str, dict[str, dict[str, int]]]
    """The same for the configurations that come with berth, by name."""


class ShardMember(ResponseModel):
    """A replica that schedules beside others."""

    identity: str
    slots: list[int]
    """The slots whose Leases name it."""
    pool: str
    """The value of the label whose nodes alone it is for; empty: it is for all others."""
    silent_seconds: float
    """For how long its Lease has not changed; when it has not for the lease duration, it is
    expelled."""


class ShardChange(ResponseModel):
    """What the replica that answers has done to the Leases of slots or of another member."""

    at: str
    what: Literal["took", "gave", "expelled"]
    slot: int | None
    member: str
    """Who was expelled, or whose the slot was before; empty: nobody's."""


class SlotOf(ResponseModel):
    """The slot that something falls into, and who decides about it."""

    slot: int
    member: str
    """Empty while nobody holds the slot."""


class Shards(ResponseModel):
    """The replicas that schedule at once."""

    identity: str
    """Of the replica that answers."""
    slots: int
    """How many there are."""
    deciding: list[int]
    """The slots whose nodes and pods the replica that answers decides about now."""
    leaving: list[int]
    """The slots that it gives as soon as the last bind is answered."""
    members: list[ShardMember]
    """All replicas, by identity."""
    free: list[int]
    """The slots that nobody holds."""
    label: str
    """The label of nodes that slots go by; empty: they go by names."""
    changes: list[ShardChange]
    """The last ones, the latest first."""
    offers_under_way: int
    """Pods that the replica that answers has offered to others, who have not answered yet."""
    node: SlotOf | None = None
    """Of the node that was asked about."""
    pod: SlotOf | None = None
    """Of the pod that was asked about, if it has no node: its home, or that of the offered node."""
