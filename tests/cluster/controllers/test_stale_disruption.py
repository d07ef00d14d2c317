"""Pods that were to go, and that nobody deleted."""

import msgspec
import pytest

from berth.cluster.actions import Patch
from berth.cluster.controllers.stale_disruption import StaleDisruptionController
from berth.cluster.controllers.table import Table
from berth.cluster.object_views import Condition
from berth.cluster.pods.controllers import PodStatusView, PodView
from berth.runtime.clock import FakeClock, rfc3339
from tests.cluster.objects import pod_view

NOW = 1_767_225_600.0


def target(since: float, reason: str = "EvictionByEvictionAPI", status: str = "True") -> Condition:
    return Condition("DisruptionTarget", status, rfc3339(NOW - since), reason)


def with_condition(
    condition: Condition, *, phase: str = "Running", deleted: bool = False
) -> PodView:
    view = pod_view("p", deleted=deleted)
    return msgspec.structs.replace(view, status=PodStatusView(phase, [condition]))


@pytest.mark.parametrize(
    ("pod", "again"),
    [
        pytest.param(with_condition(target(0)), 120, id="it was just marked"),
        pytest.param(with_condition(target(100)), 20, id="it was marked a while ago"),
        pytest.param(with_condition(target(200), deleted=True), None, id="it is deleted"),
        pytest.param(with_condition(target(200), phase="Failed"), None, id="it has ended"),
        pytest.param(with_condition(target(200, status="False")), None, id="that was taken back"),
        pytest.param(
            with_condition(target(200, "TerminationByKubelet")), None, id="its kubelet says so"
        ),
        pytest.param(pod_view("p"), None, id="nobody said so"),
    ],
)
def test_what_stays(pod: PodView, again: float | None) -> None:
    pods: Table[PodView] = Table()
    controller, enqueued = StaleDisruptionController(pods, clock=FakeClock(NOW)), list[str]()
    controller.subscribe(enqueued.append)
    pods.on_add(pod)
    assert enqueued == ([] if again is None else ["default/p"])
    plan = controller.plan("default/p")
    assert (plan.actions, plan.again) == ([], again)


def test_what_is_taken_back() -> None:
    pods: Table[PodView] = Table()
    pods.on_add(with_condition(target(120)))
    [patch] = StaleDisruptionController(pods, clock=FakeClock(NOW)).plan("default/p").actions
    assert isinstance(patch, Patch)
    assert patch.path == "/api/v1/namespaces/default/pods/p/status"
    assert patch.body == {
        "metadata": {"uid": "uid-p", "resourceVersion": "1"},
        "status": {
            "conditions": [
                {
                    "type": "DisruptionTarget",
                    "status": "False",
                    "lastTransitionTime": rfc3339(NOW),
                    "reason": None,
                    "message": None,
                }
            ]
        },
    }
