"""What the controller of HorizontalPodAutoscalers does without metrics."""

from typing import Any

import msgspec
import pytest

from berth.client.errors import NotFoundError
from berth.clock import FakeClock
from berth.cluster.actions import Action, Get, Patch
from berth.cluster.controllers.controller import Outcome, Plan
from berth.cluster.controllers.horizontal_pod_autoscaler import (
    HorizontalPodAutoscalerController,
)
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView
from berth.cluster.events.correlator import Occurrence
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.kinds.registry import Registry
from berth.cluster.resources import Object

KEY = "default/web"
SCALE = "/apis/apps/v1/namespaces/default/deployments/web/scale"
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
NO_CPU = (
    "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch "
    "metrics from resource metrics API: the server could not find the requested resource "
    "(get pods.metrics.k8s.io)"
)


class World:
    def __init__(self, **spec: Any) -> None:
        self.recorded: list[Occurrence] = []
        clock = FakeClock(1_767_225_600.0)
        self.autoscalers: Table[ResourceView] = Table()
        self.controller = HorizontalPodAutoscalerController(
            self.autoscalers,
            Registry(RESOURCES),
            clock=clock,
            recorder=EventRecorder(self.recorded.append, "horizontal-pod-autoscaler", clock),
        )
        self.controller.subscribe(lambda _key: None)
        body = {
            "metadata": {"name": "web", "namespace": "default", "uid": "u"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "minReplicas": 2,
                "maxReplicas": 5,
                "metrics": [CPU],
                **spec,
            },
        }
        self.autoscalers.on_add(msgspec.convert(body, ResourceView))

    def answered(self, replicas: int | None) -> Plan:
        """Return what is done once the scale is known; None: there is no such target."""
        asked = self.controller.plan(KEY)
        assert asked == Plan([Get(SCALE)], again=0.0)
        answer = msgspec.json.encode({"spec": {"replicas": replicas}})
        error = NotFoundError(404, "NotFound", 'deployments.apps "web" not found')
        missing = replicas is None
        outcome = Outcome(asked.actions[0], answer, error=error if missing else None)
        self.controller.finished(KEY, outcome)
        return self.controller.plan(KEY)

    def events(self) -> list[tuple[str, str]]:
        return [(each.type, each.reason) for each in self.recorded]


def conditions(actions: list[Action]) -> list[tuple[str, str, str]]:
    status = _status(actions)
    return [(each["type"], each["status"], each["reason"]) for each in status["conditions"]]


def _status(actions: list[Action]) -> Object:
    [patch] = [
        each for each in actions if isinstance(each, Patch) and each.path.endswith("/status")
    ]
    found: Object = patch.body["status"]
    return found


@pytest.mark.parametrize(
    ("replicas", "desired", "why"),
    [
        pytest.param(9, 5, "Current number of replicas above Spec.MaxReplicas", id="too many"),
        pytest.param(1, 2, "Current number of replicas below Spec.MinReplicas", id="too few"),
    ],
)
def test_a_target_is_kept_within_bounds(replicas: int, desired: int, why: str) -> None:
    world = World()
    plan = world.answered(replicas)
    rescale = plan.actions[0]
    world.controller.finished(KEY, Outcome(rescale))

    assert rescale == Patch(SCALE, {"spec": {"replicas": desired}})
    assert plan.again == 15.0
    assert conditions(plan.actions) == [("AbleToScale", "True", "SucceededRescale")]
    status = _status(plan.actions)
    assert (status["currentReplicas"], status["desiredReplicas"]) == (replicas, desired)
    assert [(each.reason, each.message) for each in world.recorded] == [
        ("SuccessfulRescale", f"New size: {desired}; reason: {why}")
    ]


def test_between_the_bounds_it_says_what_is_missing() -> None:
    world = World()
    plan = world.answered(3)
    assert conditions(plan.actions) == [
        ("AbleToScale", "True", "SucceededGetScale"),
        ("ScalingActive", "False", "FailedGetResourceMetric"),
    ]
    message = _status(plan.actions)["conditions"][1]["message"]
    assert message == f"the HPA was unable to compute the replica count: {NO_CPU}"
    assert [(each.reason, each.message) for each in world.recorded] == [
        ("FailedGetResourceMetric", NO_CPU),
        (
            "FailedComputeMetricsReplicas",
            "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource "
            f"metric value: {NO_CPU}",
        ),
    ]


def test_a_target_without_replicas_is_left_alone() -> None:
    plan = World().answered(0)
    assert conditions(plan.actions)[1] == ("ScalingActive", "False", "ScalingDisabled")


def test_a_target_that_is_not_there() -> None:
    world = World()
    plan = world.answered(None)
    assert conditions(plan.actions) == [("AbleToScale", "False", "FailedGetScale")]
    assert world.events() == [("Warning", "FailedGetScale")]


def test_a_kind_that_has_no_scale() -> None:
    world = World(scaleTargetRef={"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web"})
    [patch] = world.controller.plan(KEY).actions
    assert isinstance(patch, Patch)
    [condition] = patch.body["status"]["conditions"]
    assert condition["message"].endswith('no matches for kind "DaemonSet" in group "apps"')


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        pytest.param(
            {"type": "Pods", "pods": {"metric": {"name": "rps"}}}, "FailedGetPodsMetric", id="pods"
        ),
        pytest.param(
            {"type": "External", "external": {"metric": {"name": "queue"}}},
            "FailedGetExternalMetric",
            id="external",
        ),
        pytest.param(
            {
                "type": "ContainerResource",
                "containerResource": {"name": "cpu", "target": {"type": "AverageValue"}},
            },
            "FailedGetContainerResourceMetric",
            id="of a container",
        ),
    ],
)
def test_other_metrics(metric: Object, reason: str) -> None:
    plan = World(metrics=[metric]).answered(3)
    assert conditions(plan.actions)[1] == ("ScalingActive", "False", reason)


def test_what_has_been_said_is_not_written_again() -> None:
    world = World()
    status = _status(world.answered(3).actions)
    [old] = world.autoscalers.values()
    world.autoscalers.on_update(old, msgspec.structs.replace(old, status=status))
    assert world.answered(3).actions == []
