"""Fills a cluster in memory with what a snapshot has."""

from collections.abc import Sequence
from itertools import chain

from berth.insight.whatif.placing import created
from berth.insight.whatif.snapshot import Snapshot, SnapshotError
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.cache.cache import CacheError
from berth.scheduler.core.scheduler_state import SchedulerState
from berth.scheduler.core.simulated_cluster import SimulatedCluster
from berth.scheduler.framework.pod_info import PodInfo


def fill(
    cluster: SimulatedCluster,
    snapshot: Snapshot,
    state: SchedulerState | None,
    *,
    with_waiting: bool,
) -> None:
    """Put all objects of *snapshot* into *cluster*, in their order.

    Pods without a node come last; those of our profiles wait, unless that is not wanted or they are
    leaving: as *state* says, where it knows them, and the oldest first. SnapshotError for pods that
    cannot be told apart.
    """
    pods: list[Pod] = []
    nodes: list[Node] = []
    for obj in chain(*snapshot.objects.values()):
        if isinstance(obj, Pod):
            pods.append(obj)
        elif isinstance(obj, Node):
            nodes.append(obj)
        else:
            cluster.put(obj)
    _put_nodes(cluster, nodes, state)
    known = {waiting.uid: waiting for waiting in state.waiting} if state else {}
    unbound = []
    try:
        for pod in pods:
            if pod.is_terminated:
                cluster.put_aside(pod)
            elif pod.spec.node_name:
                cluster.put(pod)
            else:
                unbound.append(PodInfo(pod))
    except CacheError as exc:
        raise SnapshotError(str(exc)) from exc
    cluster.show_to_gates(info for info in unbound if with_waiting and info.uid in known)
    place = {uid: at for at, uid in enumerate(known)}
    for info in sorted(unbound, key=lambda info: (place.get(info.uid, len(place)), created(info))):
        if not with_waiting or info.is_terminating:
            cluster.put_aside(info.pod)
        elif info.uid in known:
            cluster.restore(info.pod, known[info.uid])
        else:
            cluster.put(info.pod)
    cluster.cache.refresh_order()


def _put_nodes(
    cluster: SimulatedCluster, nodes: Sequence[Node], state: SchedulerState | None
) -> None:
    """Give the nodes rows in the order, and go round them, as the scheduler of *state* does."""
    if state is None or len(state.rows) != len(nodes):
        for node in nodes:
            cluster.put(node)
        return
    for _, at in sorted(zip(state.rows, range(len(nodes)), strict=True)):
        cluster.put(nodes[at])
    cluster.cache.go_round(node.name for node in nodes)
    cluster.core.sampling.next_start_node_index = state.next_start_node_index
