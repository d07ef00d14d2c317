"""The API for plugin authors. All other modules of berth may change without notice.

A plugin is a class that inherits one or more extension points. Inheriting is the declaration; the
extension points are those of kube-scheduler. This one keeps pods off nodes of another team::

    from berth.plugin import CycleState, NodeInfo, PluginArgs, PodInfo, ScalarFilter, Status
    from berth.testing import node, pod, run_filter

    OTHER_TEAM = Status.unresolvable("node(s) belong to another team")


    class TeamNodesArgs(PluginArgs):
        label: str = "team"


    class TeamNodes(ScalarFilter):
        NAME = "TeamNodes"
        ARGS = TeamNodesArgs

        def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
            team = node.labels.get(self.args.label, pod.namespace)
            return None if team == pod.namespace else OTHER_TEAM


    nodes = [node("n1", labels={"team": "shop"}), node("n2")]
    assert run_filter(TeamNodes, pod("web"), objects=nodes) == {
        "n1": ("node(s) belong to another team",),
        "n2": (),
    }

Scalar plugins are called once per node. :class:`FilterPlugin` and :class:`ScorePlugin` answer for
all rows of a :class:`NodeTable` at once, with NumPy. Tests are written with :mod:`berth.testing`.
"""

from berth.kube.objects import quantity
from berth.kube.objects.meta import KubeStruct, ObjectMeta
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.change import Change, ChangeKind, Detail
from berth.scheduler.framework.cycle_state import CycleState, Gang
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    HintIndex,
    QueueingHint,
    QueueingHintFn,
)
from berth.scheduler.framework.explanation import Explains
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import (
    MAX_NODE_SCORE,
    BindPlugin,
    EnqueueExtensions,
    FilterPlugin,
    FilterRunner,
    PermitPlugin,
    Plugin,
    PluginArgs,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    Scores,
)
from berth.scheduler.framework.kind import Kind
from berth.scheduler.framework.lab_plugin import LabPlugin
from berth.scheduler.framework.listers import Lister, Listers
from berth.scheduler.framework.node_info import NodeInfo
from berth.scheduler.framework.node_table import CPU, MEMORY, NodeTable
from berth.scheduler.framework.overlay import Overlay
from berth.scheduler.framework.pod_batch import PodBatch
from berth.scheduler.framework.pod_info import PodInfo, PodTemplate, QueuedPodInfo
from berth.scheduler.framework.scalar import ScalarFilter, ScalarPreFilterExtensions, ScalarScore
from berth.scheduler.framework.scoring import default_normalize
from berth.scheduler.framework.status import SKIP, WAIT, Code, GatedUntilTold, Status
from berth.scheduler.framework.verdict import PASS, Ints, Mask, Rejection, Rows, Verdict, everywhere
from berth.scheduler.framework.writes import PluginWrites

__all__ = [
    "CPU",
    "MAX_NODE_SCORE",
    "MEMORY",
    "PASS",
    "SKIP",
    "WAIT",
    "ActionType",
    "BindPlugin",
    "Change",
    "ChangeKind",
    "ClusterEvent",
    "ClusterEventWithHint",
    "Code",
    "CycleState",
    "Detail",
    "Diagnosis",
    "EnqueueExtensions",
    "EventResource",
    "Explains",
    "FilterPlugin",
    "FilterRunner",
    "Gang",
    "GatedUntilTold",
    "Handle",
    "HintIndex",
    "Ints",
    "Kind",
    "KubeStruct",
    "LabPlugin",
    "Lister",
    "Listers",
    "Mask",
    "Node",
    "NodeInfo",
    "NodeTable",
    "ObjectMeta",
    "Overlay",
    "PermitPlugin",
    "Plugin",
    "PluginArgs",
    "PluginWrites",
    "Pod",
    "PodBatch",
    "PodInfo",
    "PodTemplate",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterExtensions",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "QueueSortPlugin",
    "QueuedPodInfo",
    "QueueingHint",
    "QueueingHintFn",
    "Rejection",
    "ReservePlugin",
    "Rows",
    "ScalarFilter",
    "ScalarPreFilterExtensions",
    "ScalarScore",
    "ScorePlugin",
    "Scores",
    "Status",
    "Verdict",
    "default_normalize",
    "everywhere",
    "quantity",
]
