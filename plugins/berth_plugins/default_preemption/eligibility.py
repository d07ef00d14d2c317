"""Eligibility to preempt others now (spec §6.1)."""

from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.candidate import is_leaving_for_preemption
from berth.scheduler.framework.status import Code


def pod_eligible_to_preempt_others(
    pod: PodInfo, nodes: NodeTable, diagnosis: Diagnosis, *, nominated: str = ""
) -> tuple[bool, str]:
    """Say whether *pod* may preempt, and if not, why.

    Victims that are still leaving the pod's nominated node will make room by themselves, unless
    the pod cannot run there any more whoever leaves. That is the node its status tells, else
    *nominated*: a nomination may not have come to the API server yet, or have been lost.
    """
    if pod.pod.spec.preemption_policy == "Never":
        return False, "not eligible due to preemptionPolicy=Never."
    row = nodes.row_of.get(pod.pod.status.nominated_node_name or nominated)
    if row is None:
        return True, ""
    status = diagnosis.status_of(row) or diagnosis.absent
    if status is not None and status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return True, ""
    for other in nodes.pods[row].values():
        if other.priority < pod.priority and is_leaving_for_preemption(other.pod):
            return False, "not eligible due to a terminating pod on the nominated node."
    return True, ""
