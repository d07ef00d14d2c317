"""Explanations of one pod, as JSON has them; documented in the server's OpenAPI."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from berth.runtime.field_docstrings import DescribedFields
from berth.scheduler.framework.change import Change, Detail
from berth.scheduler.framework.preemption.criterion import Criterion
from berth.scheduler.result import Result


class ResponseModel(DescribedFields, BaseModel):
    """camelCase in JSON, with the docstrings of fields as their descriptions; not to be changed."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, defer_build=True
    )

    @classmethod
    def build_all(cls) -> None:
        """Build all that is known of these models: the first use of one would do it in its turn."""
        for model in cls.__subclasses__():
            model.model_rebuild()
            model.build_all()


class Whereabouts(StrEnum):
    """Where a pod is, seen from the scheduler."""

    FOREIGN = "Foreign"
    """It waits for another scheduler; all pods do where nothing is scheduled."""
    DELETED = "Deleted"
    """It is being deleted, and was never bound."""
    UNQUEUED = "Unqueued"
    """The API server has it, the queue does not."""
    ACTIVE = "Active"
    BACKOFF = "Backoff"
    UNSCHEDULABLE = "Unschedulable"
    GATED = "Gated"
    IN_FLIGHT = "InFlight"
    WAITING = "Waiting"
    """It has a node, and waits for Permit plugins."""
    BINDING = "Binding"
    BOUND = "Bound"


class PodState(ResponseModel):
    """Where a pod is, and what it waits for."""

    where: Whereabouts
    words: str
    """The same for people: "not tried yet: 37 pods ahead, first default/web"."""
    node: str = ""
    """Where it is bound, or being bound to."""
    nominated_node: str = ""
    attempts: int | None = None
    """How often it was tried; None if that is not known any more."""
    pods_ahead: int | None = None
    """Of a pod that is to be tried: how many come before it."""
    since: str | None = None
    """Since when it is there, in UTC; None if that is not known."""
    until: str | None = None
    """When its backoff, or what Permit plugins wait for, ends at the latest, in UTC. Of an
    unschedulable pod: when it is tried again though nothing has changed."""
    waits_for: tuple[str, ...] = ()
    """The plugins that rejected it, gate it, or have it wait."""
    woken_by: dict[str, tuple[str, ...]] = {}
    """By plugin that it waits for: the changes in the cluster after which it may be tried again, as
    in Node/Add. Whether it is tried depends on what exactly has changed. Empty unless it waits for
    such changes."""
    leaving: tuple[str, ...] = ()
    """The pods that are being deleted on the node that it is nominated to."""


class Obstacle(ResponseModel):
    """One plugin's objections to a node."""

    plugin: str
    """Empty if several plugins agreed on it."""
    code: str
    reasons: tuple[str, ...]
    """As they are counted in the FailedScheduling message."""
    details: tuple[Detail, ...] = ()
    """The same with numbers, of plugins that tell them."""


class PluginScore(ResponseModel):
    """What one plugin thinks of a node; ``weighted`` is ``normalized * weight``."""

    raw: int
    normalized: int
    weight: int
    weighted: int


class NodeScore(ResponseModel):
    node: str
    total: int
    plugins: dict[str, PluginScore]
    extenders: int = 0
    """What extenders added to the total."""


class NodeVerdict(ResponseModel):
    """What became of one node."""

    node: str
    fits: bool
    plugin: str = ""
    """The plugin that the node is charged to: the first, in order, that rejects it."""
    code: str = ""
    reasons: tuple[str, ...] = ()
    """Those of that plugin: what the FailedScheduling message counts."""
    obstacles: tuple[Obstacle, ...] = ()
    """All that stands in the way, those of plugins which were not asked any more included."""
    beside: tuple[str, ...] = ()
    """Pods nominated to this node, which are counted as if they were there: without them the pod
    might fit."""
    score: NodeScore | None = None


class Choice(ResponseModel):
    """Why this node, and not the next best."""

    node: str
    total: int | None = None
    """None where no scores were needed."""
    equals: int = 0
    """How many other nodes have the same total: chance decides between them."""
    runner_up: str = ""
    runner_up_total: int | None = None
    decided_by: str = ""
    """The plugin with the largest weighted difference in favour of the chosen node; none in ties"""
    differences: dict[str, int] = {}
    """By plugin, how many points the chosen node has more, after weights."""
    words: str


class NearestMiss(ResponseModel):
    """A node that needs little to take the pod (the order is told in ``berth.insight.explain``)."""

    node: str
    changes: tuple[Change, ...]
    """All of them together."""
    is_complete: bool
    """Whether all filters let the pod onto the node with these changes, which was tried. False:
    the changes could not all be tried, and may not be enough; the words say so."""
    words: str
    """The same for people: "node-7: free 180m more cpu"."""


class FilterStep(ResponseModel):
    """What one plugin took out of the nodes that the plugins before it had left."""

    plugin: str
    """Empty if several PreFilter plugins together left nodes out."""
    num_rejected: int
    """The nodes that are charged to it: it is the first, in order, that rejects them."""
    num_left: int
    """The nodes that no plugin has rejected up to this one."""
    num_against: int
    """All nodes that it objects to, those that a plugin before it has rejected included."""
    num_only: int
    """Of these, the nodes that nothing else objects to."""
    reasons: dict[str, int]
    """Reason to the number of nodes it is counted for, of those that are charged to it."""


class Evaluation(ResponseModel):
    """What the scheduler would find if it tried the pod on the cluster as it is now."""

    message: str
    """As in the FailedScheduling event; empty if it fits. What preemption adds is that of the last
    attempt, and left out if that attempt found something else."""
    reasons: dict[str, int]
    """Reason to the number of nodes it is counted for in the message."""
    num_nodes: int
    num_feasible: int
    error: str = ""
    """What went wrong if a plugin failed; nodes without obstacles have not been evaluated then."""
    failed_plugin: str = ""
    num_not_evaluated: int = 0
    """How many nodes were not evaluated because a plugin failed."""
    findings: tuple[str, ...] = ()
    """What plugins say of all nodes together, such as how many devices there are and who holds
    them."""
    refused_by: tuple[str, ...] = ()
    """The PreFilter plugins that reject the pod whatever the nodes are like. All nodes are charged
    to them, and none was looked at."""
    advice: tuple[str, ...] = ()
    """What helps a pod that is refused so, where that is known."""
    gang: str = ""
    """Of a pod that gets a node only if the others of a gang do: its name. All else that is said
    here is about the pod alone."""
    notes: tuple[str, ...] = ()
    """What else to know: what was taken for granted, what PreFilter ruled out."""
    funnel: tuple[FilterStep, ...] = ()
    """The plugins that reject nodes, in the order in which they are asked; none after an error."""
    choice: Choice | None = None
    nearest_miss: NearestMiss | None = None
    next_misses: tuple[NearestMiss, ...] = ()
    """The nodes that come next after ``nearestMiss``, the nearest first; a few."""
    nodes: tuple[NodeVerdict, ...] = ()
    """The best first: nodes that fit by total score, others by how nearly they would."""


class Victim(ResponseModel):
    """A pod that is evicted to make room."""

    pod: str
    """As in namespace/name."""
    priority: int
    started: str | None
    """When it started, in UTC; null if it has not."""


class VictimsOnNode(ResponseModel):
    """A node that takes the pod once these pods are gone."""

    node: str
    victims: tuple[Victim, ...]
    """The most important first; not all if there are many."""
    num_victims: int
    pdb_violations: int
    """How many of them their PodDisruptionBudgets would rather keep."""


class PreemptionRound(ResponseModel):
    """A criterion that candidates were told apart by."""

    criterion: Criterion
    num_left: int
    """How many candidates are equally good by it and by all before it."""


class PastPreemption(ResponseModel):
    """Whom an attempt had evicted, and why those."""

    chosen: VictimsOnNode
    num_candidates: int
    """How many nodes were found on which evictions help; the search ends when there are enough."""
    rounds: tuple[PreemptionRound, ...] = ()
    """The criteria that were needed, in order."""
    equals: int = 0
    """How many other candidates are equally good by all criteria: chance decides between them."""
    runner_up: VictimsOnNode | None = None
    """What would have been chosen next."""
    decided_by: Criterion | None = None
    """The criterion that left the chosen one alone; none in ties, and with a single candidate."""
    words: str
    """The same for people: "node-3 before node-5: its most important victim has priority 0, not
    100"."""


class PastDecision(ResponseModel):
    """One attempt, as it was recorded."""

    number: int
    """Counts the attempts since the scheduler was started."""
    result: Result
    at: str
    """When it began, in UTC."""
    pod: str
    uid: str
    profile: str
    attempt: int
    seconds_ago: float
    took_seconds: float
    node: str
    """Where the pod was to go; empty if nowhere."""
    message: str
    """Why it went nowhere, the whole FailedScheduling message."""
    reasons: dict[str, int]
    plugins: tuple[str, ...] = ()
    """Who rejected the pod."""
    nominated_node: str = ""
    """Where this attempt wants room to be made for the pod."""
    preemption: PastPreemption | None = None
    """Whom it had evicted for that, and why those."""
    num_nodes: int
    num_feasible: int
    choice: Choice | None = None
    gang: str = ""
    """The gang that it was tried with; empty if alone."""
    answered_by: str = ""
    """The pod whose attempt answered for this one, which is like it in all that matters."""
    best: tuple[NodeScore, ...] = ()
    """The best nodes of that attempt; none if a single node was left, which needs no scores."""


class PodGroupStanding(ResponseModel):
    """The group of a pod, which is scheduled as one unit."""

    name: str
    """As in namespace/name; ``/explain/podgroups`` tells more."""
    summary: str
    """Why the group waits and what would let it start, in a sentence."""
    is_obstacle: bool
    """Whether the pod is the first member that gets no node."""


class Explanation(ResponseModel):
    """Everything about one pod."""

    pod: str
    uid: str
    profile: str
    """The spec.schedulerName."""
    summary: str = ""
    """The answer in a sentence, which names the pod."""
    workload: str = ""
    """The controller that was asked about, as in deployment/web; empty if the pod was."""
    stands_for: int = 1
    """How many pods of the workload are where this one is, for the same reason."""
    pod_group: PodGroupStanding | None = None
    """None if the pod is scheduled alone."""
    state: PodState | None = None
    """None for a recorded cluster, which has no queue."""
    evaluation: Evaluation | None = None
    """None when it is not up to this scheduler."""
    history: tuple[PastDecision, ...] = ()
    """The last recorded attempts, the newest first."""


class WorkloadExplanation(ResponseModel):
    """Why pods of one controller are pending."""

    workload: str
    """As in deployment/web."""
    namespace: str
    num_pods: int
    """Those that have not finished."""
    num_pending: int
    """Those without a node."""
    why_missing: str = ""
    """Why it has no pods, or fewer than it wants, as its controller tells, in a sentence; empty if
    it has them all, or nobody says why."""
    pods: tuple[Explanation, ...]
    """One pod for each signature of pending ones, the most frequent first."""
    num_left_out: int = 0
    """How many pending pods none of these stands for, because there are too many groups."""
