"""Carries a plan out on a simulated cluster, where the scheduler's own rules may object."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from berth.insight.whatif.placing import Placing
from berth.insight.whatif.world import unplaced
from berth.scheduler.cycle import Cycle
from berth.scheduler.find_nodes_that_fit import find_nodes_that_fit_pod
from berth.scheduler.framework.pod_info import PodInfo


async def carry_out(placing: Placing, pods: Sequence[PodInfo], nodes: Mapping[str, str]) -> str:
    """Place *pods*, which are on no node, where *nodes* has them; return what objects, or "".

    Each is nominated to its node, as by a preemption, so that the scheduler tries that node first.
    Who is refused is tried again after the others, for some rules go by the order.
    """
    left = list(pods)
    while left:
        refused = [pod for pod in left if not await _is_placed(placing, pod, nodes[pod.key])]
        if len(refused) == len(left):
            first = left[0]
            return f"{first.key} cannot go to {nodes[first.key]}: {_why(placing, first, nodes)}"
        left = refused
    return ""


async def _is_placed(placing: Placing, pod: PodInfo, node: str) -> bool:
    waiting = unplaced(pod.pod)
    status = replace(waiting.status, nominated_node_name=node)
    nominated = PodInfo(replace(waiting, status=status))
    placed = await placing.place_anew([nominated])
    if placed.nodes.get(pod.key) == node:
        placing.keep()
        return True
    placing.take_back()
    if pod.key in placing.cluster.pods:  # its nomination would go on holding room
        placing.cluster.delete(placing.cluster.pods[pod.key])
    return False


def _why(placing: Placing, pod: PodInfo, nodes: Mapping[str, str]) -> str:
    cluster = placing.cluster
    cycle = Cycle.begin(
        placing.profiles[pod.pod.spec.scheduler_name],
        PodInfo(unplaced(pod.pod)),
        cache=cluster.cache,
        nominator=cluster.core.queue.nominator,
    )
    row = cluster.cache.table.row_of[nodes[pod.key]]
    status = find_nodes_that_fit_pod(cycle, nominated_first=False).status_of(row)
    return status.message if status is not None else "it is refused after the filters"
