"""Runs PodTopologySpread over a table, PreFilter and PreScore included."""

import msgspec

from berth.kube.objects.cluster import ReplicaSet, ReplicationController, Service, StatefulSet
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Status
from berth_plugins.pod_topology_spread.plugin import PodTopologySpread, PodTopologySpreadArgs


def listers(*objects: msgspec.Struct) -> Listers:
    """Return listers of services and workloads."""
    found = Listers()
    for thing in objects:
        match thing:
            case Service():
                found.services.on_add(thing)
            case ReplicationController():
                found.replication_controllers.on_add(thing)
            case ReplicaSet():
                found.replica_sets.on_add(thing)
            case StatefulSet():
                found.stateful_sets.on_add(thing)
    return found


def plugin(
    nodes: NodeTable, *objects: msgspec.Struct, args: PodTopologySpreadArgs | None = None
) -> PodTopologySpread:
    """Return the plugin in a cluster with *objects* beside the nodes."""
    return PodTopologySpread(args, Handle(nodes, listers=listers(*objects)))


def verdicts(spreading: PodTopologySpread, pod: Pod, nodes: NodeTable) -> dict[str, Status | None]:
    """Return what PreFilter and Filter together say of each node; None: it passes."""
    state, info = CycleState(nodes.exists.copy()), PodInfo(pod)
    status = spreading.pre_filter(state, info, nodes)
    assert status is None or status is SKIP
    if status is SKIP:
        return dict.fromkeys(nodes.row_of)
    verdict = spreading.filter(state, info, nodes)
    return {name: verdict.status_of(row) for name, row in nodes.row_of.items()}


def final_scores(
    spreading: PodTopologySpread, pod: Pod, nodes: NodeTable, *, on: list[str] | None = None
) -> dict[str, int] | None:
    """Return the normalised scores of the nodes *on*, all by default; None if it skips."""
    names = list(nodes.row_of) if on is None else on
    state, info = CycleState(nodes.rows_named(names)), PodInfo(pod)
    status = spreading.pre_score(state, info, nodes)
    assert status is None or status is SKIP
    if status is SKIP:
        return None
    rows = [nodes.row_of[name] for name in names]
    normal = spreading.normalize(state, info, spreading.score(state, info, nodes)[rows])
    return dict(zip(names, normal.tolist(), strict=True))
