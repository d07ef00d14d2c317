"""The extension points. Inheriting one is the declaration; plugins are sorted once, at start.

Every method says who calls it and which answers are legal. What is sync runs inside a scheduling
attempt: no I/O, no waiting, nothing kept from the table. What is async runs in the pod's binding
task, after the pod is assumed on its node.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from enum import Flag, auto
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from berth.kube.objects.pod_group import PodGroup
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.events import ClusterEventWithHint
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.kind import Kind
from berth.scheduler.framework.node_table import NodeTable, RowIndex
from berth.scheduler.framework.nominations import Beside
from berth.scheduler.framework.overlay import Overlay
from berth.scheduler.framework.placement import Placement, PlacementProgress, PodGroupPlacement
from berth.scheduler.framework.pod_batch import PodBatch
from berth.scheduler.framework.pod_info import PodInfo, QueuedPodInfo
from berth.scheduler.framework.preemption.candidate import Preemption
from berth.scheduler.framework.status import Status
from berth.scheduler.framework.verdict import Ints, Rows, Verdict

MAX_NODE_SCORE = 100
"""The best score of a node, after :meth:`ScorePlugin.normalize`; the worst is 0."""
Scores = Ints
"""One score per row of a table."""
EMPTY_FRAGMENT: Final = ()
"""For :meth:`Plugin.sign_pod`: the answers stay as long as the nodes do."""


class PluginArgs(BaseModel):
    """A plugin's ``args`` block in KubeSchedulerConfiguration: camelCase, unknown keys refused.

    Validators find the names of the feature gates that are on as ``info.context``.
    """

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, strict=True
    )

    api_version: str | None = None
    kind: str | None = None


class Input(Flag):
    """Inputs of a plugin's answers, as in :attr:`Plugin.INPUTS`."""

    LOAD = auto()
    """How many pods are on a node and what they take: the columns ``requested``,
    ``non_zero_requested`` and ``pod_count``."""
    CONTAINERS = auto()
    """What the containers of the pod request, or their images."""
    LABELS = auto()
    """The namespace and labels of the pod, or what it asks of other pods by theirs."""
    VOLUMES = auto()
    """The volumes and claims of the pod, also in hints."""


class Plugin(ABC):
    """One instance per profile, made at start with its args and a view of the scheduler."""

    NAME: ClassVar[str]
    """As in the configuration, in messages and in metrics."""
    ARGS: ClassVar[type[PluginArgs] | None] = None
    """The model of its args; None: the plugin takes none."""
    READS: ClassVar[tuple[Kind[Any], ...]] = ()
    """Kinds of objects that the plugin looks up with ``handle.listers.of(KIND)``, beside those that
    all schedulers list. They are watched while a profile has the plugin."""
    ANNOTATIONS: ClassVar[Collection[str]] = ()
    """The annotations that the plugin reads, of objects of any kind, beside those that berth does:
    recordings and snapshots have no others. Their values are then readable to whoever may read
    such a file."""
    DECIDES_BY_SIGNATURE: ClassVar[bool] = False
    """Whether pods of the same signature get the same answers, so that one is tried for all.

    That is a promise about pods without nominations, claims or volumes of their own: filters,
    PostFilter and queueing hints look at nothing of a pod but its template, priority and preemption
    policy, do not throw dice about whether it fits, and whatever lets a rejected pod in is an event
    that the plugin registered. If one plugin of a profile that may reject pods does not promise it,
    every pod of that profile is tried for itself."""

    INPUTS: ClassVar[Input] = Input(0)
    """What answers follow from beside the nodes as such and what all pods of one kind have in
    common, their ``node_facts``."""

    def sign_pod(self, pod: PodInfo, nodes: NodeTable) -> Hashable | None:
        """Return the plugin's fragment of the signature of *pod*, for plugins that come with berth.

        That is what SignPod of kube-scheduler returns (KEP-5598), with the state of the cluster:
        pods of one template whose fragments are equal get equal answers from PreFilter, Filter,
        PreScore and Score, which are then not asked for again. The fragment leaves out the template
        of the pod, the nodes as such and what :attr:`INPUTS` names: the load of each node, and the
        containers. It includes what matters of other pods if INPUTS names labels, and of the
        claims of this very pod if it names volumes. :data:`EMPTY_FRAGMENT`: nothing else matters.
        None: the pod cannot be signed, so that the plugin is asked about every pod.

        What a filter says of one node must not follow from what other nodes are, unless the
        fragment has their :attr:`~berth.scheduler.framework.node_table.NodeTable.node_generation`.
        """
        return None

    def for_deferred_resizes(self) -> "Plugin | None":
        """Return what acts for the plugin on pods that run and wait to be resized, of its name.

        None: they do not concern it, as most of what is about finding a node does not. See
        :mod:`berth.scheduler.framework.deferred_resize`.
        """
        return None

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        """*args* is an instance of ``ARGS``, already validated, or None where ``ARGS`` is None."""
        self.args = args
        self.handle = handle


class PreEnqueuePlugin(Plugin):
    """Asked before a pod may enter the active queue; a refusal gates it."""

    @abstractmethod
    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """Return None to let *pod* be tried, any Status to gate it (spec §3.2).

        A plugin that gates hundreds of pods, and knows when it lets one in, returns
        :class:`~berth.scheduler.framework.status.GatedUntilTold`.
        """


class EnqueueExtensions(Plugin):
    """Says which events may make a pod schedulable that this plugin rejected.

    A plugin with PreEnqueue, PreFilter, Filter, Reserve or Permit that does not declare this is
    taken to be interested in every event (spec §1.2).
    """

    @abstractmethod
    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events, each with a hint that may say that it does not help a pod."""


class QueueSortPlugin(Plugin):
    """Orders the active queue; exactly one per profile, the same in all."""

    @abstractmethod
    def sort_key(self, queued: QueuedPodInfo) -> Any:
        """Return a value to order by, smallest first; must not change while the pod is queued."""


class PreFilterResult:
    """Which nodes PreFilter leaves in question, by name; names unknown to the table are dropped."""

    __slots__ = ("node_names",)

    def __init__(self, node_names: frozenset[str]) -> None:
        self.node_names = node_names


class PreFilterPlugin(Plugin):
    """Looks at pod and cluster once per attempt, before any node is filtered."""

    @abstractmethod
    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> Status | PreFilterResult | None:
        """Return None, a narrower set of nodes, SKIP (no Filter needed), or why not (spec §2.3)."""


class PreFilterExtensions(Plugin):
    """Keeps what PreFilter computed true while pods are added and removed in thought.

    The questions are asked of an :class:`~berth.scheduler.framework.overlay.Overlay`: *nodes* is
    its table, already changed, and *state* its own. Each row is an independent hypothesis about its
    own node: the pods that come and go on one row are as they were for all other rows. So a plugin
    keeps a difference per row beside what PreFilter found of the whole cluster.

    *pods* come or go on *rows*, which has one row of *nodes* for each of them. The answer rejects,
    with code ERROR, the rows that the plugin cannot follow; None: there are none. A plugin that
    raises fails on all of *rows*.

    :class:`~berth.scheduler.framework.scalar.ScalarPreFilterExtensions` is the form for one pod on
    one node.
    """

    @abstractmethod
    def add_pods(
        self, state: CycleState, pod: PodInfo, rows: Rows, pods: PodBatch, nodes: NodeTable
    ) -> Verdict | None:
        """Count *pods*, which were added."""

    @abstractmethod
    def remove_pods(
        self, state: CycleState, pod: PodInfo, rows: Rows, pods: PodBatch, nodes: NodeTable
    ) -> Verdict | None:
        """Count *pods*, which were removed; they were there before."""


class FilterPlugin(Plugin):
    """Says which nodes cannot take a pod."""

    WITHOUT_PRE_FILTER: ClassVar[str] = ""
    """What Filter and Reserve fail with, in kube-scheduler's words, where the plugin is disabled at
    preFilter; "": they need nothing of it."""

    @abstractmethod
    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        """Say which rows of *nodes* cannot take *pod*, and why.

        Evaluate the table that is given, never the cache: preemption passes some rows without some
        of their pods. Rows that are dead or not in ``state.feasible`` may be rejected or not;
        nobody looks. Legal codes: UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE, PENDING, ERROR.
        """


class PostFilterResult:
    """What PostFilter achieved; ``nominated_node`` None keeps the nomination as it is."""

    __slots__ = ("nominated_node", "preemption", "reasons_before", "status", "tells_placement")

    def __init__(
        self,
        status: Status | None,
        nominated_node: str | None = None,
        preemption: Preemption | None = None,
        *,
        tells_placement: bool = False,
    ) -> None:
        self.status = status
        """None: the pod can be scheduled later thanks to this plugin."""
        self.nominated_node = nominated_node
        """A node name, "" to clear the nomination."""
        self.reasons_before: tuple[str, ...] = ()
        """What plugins said that had been asked in vain before; filled in by the runtime."""
        self.preemption = preemption
        """What was found out about evictions. If a candidate was chosen, and ``status`` is None,
        the scheduler evicts its victims."""
        self.tells_placement = tells_placement
        """Whether the message names the node and the number of victims (1.37 spec N3.1)."""

    @property
    def message(self) -> str:
        """Why the plugin could not help, or how it could; may be empty if it could."""
        if self.status is not None:
            return self.status.message
        chosen = self.preemption.chosen if self.preemption is not None else None
        if not self.tells_placement or chosen is None:
            return ""
        return (
            f"preemption: found a potential placement for pod on node {chosen.node}, preempting"
            f" {len(chosen.victims)} victims"
        )


class RowByRow(NamedTuple):
    """The answers of overlays about a row, and pods of one template, follow from that row alone.

    That is, from its node and the pods there; and beside what is said here.
    """

    sign_pod: Hashable
    """What else they follow from: while it stays equal, so do they."""
    beside: Beside
    """The pods nominated to each row, from which they follow, too."""


class FilterRunner(Protocol):
    """The filters of this attempt, for questions such as "and without these pods?"."""

    def overlay(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: RowIndex) -> Overlay:
        """Return *rows* of *nodes* to ask about; *state*, that of the attempt, is left alone."""
        ...

    def row_by_row(self, pod: PodInfo, nodes: NodeTable) -> RowByRow | None:
        """Return when the answers of overlays stay the same; None if more is to it than rows."""
        ...


class PostFilterPlugin(Plugin):
    """Called when no node is left; may make room (preemption)."""

    @abstractmethod
    def post_filter(
        self,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeTable,
        diagnosis: Diagnosis,
        filters: FilterRunner,
    ) -> PostFilterResult:
        """Say whether *pod* can be scheduled once what this plugin proposes is done (spec §2.8).

        UNSCHEDULABLE lets the next plugin try, any other status is final. Nothing may be changed
        but the plugin's own memory: the scheduler carries out what the result says.
        """


class PreScorePlugin(Plugin):
    """Looks once at the nodes that passed, which ``state.feasible`` marks."""

    @abstractmethod
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        """Return None, SKIP (the plugin gives no scores this time), or an error."""


class ScorePlugin(Plugin):
    """Ranks the nodes that passed."""

    WITHOUT_PRE_SCORE: ClassVar[str] = ""
    """What Score fails with, in kube-scheduler's words, where the plugin is disabled at preScore;
    "": it needs nothing of it."""

    @abstractmethod
    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores | Status:
        """Return one int64 per slot of *nodes*, or an error; only rows in ``state.feasible`` count.

        After :meth:`normalize` scores must lie in 0..100. The same score for all is cheapest as
        :func:`berth.scheduler.framework.verdict.everywhere`; of that, ``normalize`` gets one row to
        speak for all.
        """

    def normalize(self, _state: CycleState, _pod: PodInfo, scores: Scores) -> Scores:
        """Bring *scores*, of the feasible rows only, into 0..100; the default leaves them alone."""
        return scores


class ReservePlugin(Plugin):
    """Takes in memory what the pod needs on its node, and gives it back on failure."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Take in memory what the pod needs on the node; a Status fails the attempt."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Undo :meth:`reserve`; also called when it was never called. Must not fail."""


class PermitPlugin(Plugin):
    """May hold back a pod that has a node."""

    @abstractmethod
    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        """Return None, WAIT or a rejection, and for WAIT at most how many seconds (cap 900)."""


class PreBindPlugin(Plugin):
    """Does what must be done before the pod is bound, such as binding its volumes."""

    ALLOW_PARALLEL: ClassVar[bool] = False
    """Whether it may run beside its neighbours in the order that have work and allow it, too."""

    @abstractmethod
    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Return SKIP when :meth:`pre_bind` would have nothing to do."""

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Return None when the work is done; any Status fails the binding."""


class BindPlugin(Plugin):
    """Writes the binding; SKIP leaves it to the next plugin."""

    @abstractmethod
    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Return None when the pod is bound, SKIP for the next plugin, or why it failed."""


class PostBindPlugin(Plugin):
    """Told after a successful bind."""

    @abstractmethod
    async def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Take note that the pod is bound; nothing can be undone any more."""


class PlacementGeneratePlugin(Plugin):
    """Says which parts of the cluster a group may be placed in (spec G10)."""

    @abstractmethod
    def placement_generate(
        self, group: PodGroup, scheduled: Iterable[PodInfo], parent: Placement, nodes: NodeTable
    ) -> Sequence[Placement] | Status:
        """Return parts of *parent*; none, or a Status, if the group may go nowhere.

        *scheduled* are the pods of *group* that have nodes.
        """


class PlacementScorePlugin(Plugin):
    """Ranks the parts of the cluster in which a group fits (spec G10)."""

    PREFERRED_PLACEMENT: ClassVar[str] = ""
    """What has the higher score, for people, as in "the fuller one"; empty: it is not said."""

    @abstractmethod
    def placement_score(self, candidate: PodGroupPlacement, nodes: NodeTable) -> int | Status:
        """Return how good *candidate* is; its pods are not on *nodes*."""

    def normalize_placement_scores(self, scores: Sequence[int]) -> Sequence[int] | Status:
        """Turn the scores of all candidates into scores from 0 to ``MAX_NODE_SCORE``."""
        return scores


class PlacementFeasiblePlugin(Plugin):
    """Says whether a group has what it needs (1.37 spec N8.3). Not a set of the configuration."""

    @abstractmethod
    def placement_feasible(self, group: PodGroup, progress: PlacementProgress) -> Status | None:
        """Say whether *group* may start with what has been placed; asked before and in its trial.

        WAIT: not yet, but its remaining pods may make it so; UNSCHEDULABLE: they cannot. None once
        it may start: the remaining pods are tried nevertheless.
        """


class PodGroupAssignments(NamedTuple):
    """What the pods of a group come to in a trial of all of them."""

    status: Status | None
    """None: the group may start."""
    hosts: Mapping[str, str]
    """By UID the node of each pod that got one."""


class PodGroupAttempt(Protocol):
    """The attempt for a group that does not fit, for questions such as "and without these?".

    Each question leaves everything as it was.
    """

    @property
    def pods(self) -> Sequence[PodInfo]:
        """The pods of the group that wait, in the order in which they are tried."""
        ...

    @property
    def nodes(self) -> NodeTable: ...

    async def schedule_without(self, gone: Sequence[PodInfo]) -> PodGroupAssignments:
        """Try the whole group anew as if *gone* were not there; nominations do not count."""
        ...

    def fits_without(self, gone: Sequence[PodInfo], hosts: Mapping[str, str]) -> bool:
        """Say whether all pods of *hosts* fit on these very nodes if *gone* are not there."""
        ...


class PodGroupPostFilterResult(NamedTuple):
    """What PodGroupPostFilter achieved for a group."""

    status: Status | None
    """None: the group can be scheduled later thanks to this plugin."""
    message: str = ""
    """What is said of that, if ``status`` is None."""
    nominations: Mapping[str, str] = {}
    """By UID the node that a pod is to be nominated to; others keep theirs."""
    victims: Sequence[PodInfo] = ()
    """The pods that the scheduler is to evict, if ``status`` is None."""
    disruptions: int = 0
    """How many groups that evicts as a whole."""
    pdb_violations: int = 0
    """How many of the victims their disruption budgets would rather keep."""


class PodGroupPostFilterPlugin(Plugin):
    """Called when a group does not fit; may make room (1.37 spec N9)."""

    @abstractmethod
    async def pod_group_post_filter(
        self, group: PodGroup, attempt: PodGroupAttempt
    ) -> PodGroupPostFilterResult:
        """Say whether *group* can be scheduled once what this plugin proposes is done.

        Success and UNSCHEDULABLE_AND_UNRESOLVABLE are final, any other status lets the next plugin
        try. Nothing may be changed: the scheduler carries out what the result says.
        """


EXTENSION_POINTS: dict[str, type[Plugin]] = {
    "pre_enqueue": PreEnqueuePlugin,
    "queue_sort": QueueSortPlugin,
    "pre_filter": PreFilterPlugin,
    "filter": FilterPlugin,
    "post_filter": PostFilterPlugin,
    "pre_score": PreScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "pre_bind": PreBindPlugin,
    "bind": BindPlugin,
    "post_bind": PostBindPlugin,
    "placement_generate": PlacementGeneratePlugin,
    "placement_score": PlacementScorePlugin,
    "pod_group_post_filter": PodGroupPostFilterPlugin,
}
"""Extension point, as the configuration names it in snake_case, to the class that declares it."""
