"""Who may preempt."""

import pytest

from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth_plugins.default_preemption.plugin import pod_eligible_to_preempt_others
from tests.builders import condition, node, pod

EVICTED = condition("DisruptionTarget", reason="PreemptionByScheduler")
DRAINED = condition("DisruptionTarget", reason="EvictionByEvictionAPI")
SINCE = "2026-01-01T00:00:00Z"
NEVER = "not eligible due to preemptionPolicy=Never."
LEAVING = "not eligible due to a terminating pod on the nominated node."
FULL = Status.unschedulable("Insufficient cpu")
HOPELESS = Status.unresolvable("node(s) had untolerated taint(s)")


def low(
    *,
    deleted: str | None = SINCE,
    priority: int = 1,
    conditions: tuple[Condition, ...] = (EVICTED,),
) -> Pod:
    return pod("low", node="n1", priority=priority, deleted=deleted, conditions=conditions)


@pytest.mark.parametrize(
    ("preemptor", "other", "status", "why"),
    [
        pytest.param(pod(priority=5), low(), FULL, None, id="a pod that is nominated nowhere may"),
        pytest.param(
            pod(priority=5, preemption_policy="PreemptLowerPriority"),
            low(),
            FULL,
            None,
            id="saying the default changes nothing",
        ),
        pytest.param(
            pod(priority=5, preemption_policy="Never", nominated="n1"),
            low(),
            HOPELESS,
            NEVER,
            id="who never preempts does not",
        ),
        pytest.param(
            pod(priority=5, nominated="n1"), low(), FULL, LEAVING, id="a victim is still leaving"
        ),
        pytest.param(
            pod(priority=5, nominated="n1"),
            low(),
            HOPELESS,
            None,
            id="nobody's leaving helps on the nominated node",
        ),
        pytest.param(
            pod(priority=5, nominated="gone"), low(), FULL, None, id="the nominated node is gone"
        ),
        pytest.param(
            pod(priority=5, nominated="n1"),
            low(deleted=None),
            FULL,
            None,
            id="the victim is not deleted yet",
        ),
        pytest.param(
            pod(priority=5, nominated="n1"),
            low(conditions=(DRAINED,)),
            FULL,
            None,
            id="somebody leaves for another reason",
        ),
        pytest.param(
            pod(priority=5, nominated="n1"),
            low(conditions=(condition("DisruptionTarget", "False", reason=EVICTED.reason),)),
            FULL,
            None,
            id="the condition does not hold",
        ),
        pytest.param(
            pod(priority=1, nominated="n1"), low(), FULL, None, id="who leaves is no lesser pod"
        ),
    ],
)
def test_eligibility(preemptor: Pod, other: Pod, status: Status, why: str | None) -> None:
    nodes = NodeTable()
    row = nodes.add_node(node("n1"))
    nodes.add_pod(row, PodInfo(other))
    diagnosis = Diagnosis(1, statuses={row: status})
    is_eligible, reason = pod_eligible_to_preempt_others(PodInfo(preemptor), nodes, diagnosis)
    assert (is_eligible, reason) == (why is None, why or "")


@pytest.mark.parametrize(
    ("absent", "why"),
    [
        pytest.param(HOPELESS, None, id="PreFilter left the nominated node out"),
        pytest.param(FULL, LEAVING, id="PreFilter refused the pod for now"),
    ],
)
def test_a_nominated_node_that_was_not_evaluated(absent: Status, why: str | None) -> None:
    nodes = NodeTable()
    nodes.add_pod(nodes.add_node(node("n1")), PodInfo(low()))
    preemptor = PodInfo(pod(priority=5, nominated="n1"))
    is_eligible, reason = pod_eligible_to_preempt_others(
        preemptor, nodes, Diagnosis(1, absent=absent)
    )
    assert (is_eligible, reason) == (why is None, why or "")
