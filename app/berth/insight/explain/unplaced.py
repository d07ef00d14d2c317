"""A pod that has a node, as if it had none yet."""

from typing import Final

import msgspec

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo

AS_IF_UNPLACED: Final = "evaluated on the cluster as it is now, as if the pod had no node yet"


def as_if_unplaced(pod: Pod, placed: PodInfo, nodes: NodeTable) -> PodInfo:
    """Take *pod* off *nodes*, which may be changed, and return it without its node.

    *placed* is how *nodes* counts it.
    """
    row = nodes.row_of.get(placed.node_name)
    if row is not None:
        nodes.remove_pod(row, placed)
    return PodInfo(unplaced(pod))


def unplaced(pod: Pod) -> Pod:
    """Return *pod* without its node and nomination."""
    replace = msgspec.structs.replace
    return replace(
        pod,
        spec=replace(pod.spec, node_name=""),
        status=replace(pod.status, nominated_node_name=""),
    )
