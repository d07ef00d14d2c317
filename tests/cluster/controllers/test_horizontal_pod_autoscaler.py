"""What the controller of HorizontalPodAutoscalers decides, writes and says."""

from typing import Any, TypeGuard

import msgspec
import pytest

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
from berth.kube.client.errors import ApiError, NotFoundError, ServerError
from berth.runtime.clock import FakeClock, rfc3339

KEY = "default/web"
SCALE = "/apis/apps/v1/namespaces/default/deployments/web/scale"
PODS = "/api/v1/namespaces/default/pods"
METRICS = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"
SELECTED = {"labelSelector": "app=web"}
NOW = 1_767_225_600.0
STAMP = "2026-01-01T00:00:00Z"
EARLIER = "2025-12-31T23:00:00Z"
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
NO_CPU = (
    "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch "
    "metrics from resource metrics API: the server is on holiday"
)
ON_HOLIDAY = ServerError(503, "ServiceUnavailable", "the server is on holiday")


class World:
    def __init__(self, **spec: Any) -> None:
        self.recorded: list[Occurrence] = []
        self.clock = clock = FakeClock(NOW)
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

    def answered(
        self, replicas: int | None, used: str = "", *, error: ApiError | None = None
    ) -> Plan:
        """Return what is done once the scale is known; None: there is no such target.

        Each of so many pods requests 100m and uses *used*; *error*: nobody knows what they use.
        """
        asked = self.controller.plan(KEY)
        assert asked == Plan([Get(SCALE)], again=0.0)
        scale = {"spec": {"replicas": replicas}, "status": {"selector": "app=web"}}
        missing = NotFoundError(404, "NotFound", 'deployments.apps "web" not found')
        self._answer(asked.actions[0], scale, missing if replicas is None else None)
        plan = self.controller.plan(KEY)
        if plan.again != 0.0:
            return plan
        names = [f"web-{number}" for number in range(replicas or 0)]
        assert plan.actions == [Get(PODS, SELECTED), Get(METRICS, SELECTED)]
        self._answer(plan.actions[0], {"items": [pod(name) for name in names]})
        measured = [pod_metrics(name, used, self.clock) for name in names if used]
        self._answer(plan.actions[1], {"items": measured}, error)
        return self.controller.plan(KEY)

    def _answer(self, action: Action, body: Any, error: ApiError | None = None) -> None:
        outcome = Outcome(action, msgspec.json.encode(body), error=error)
        self.controller.finished(KEY, outcome)

    def scaled(self, replicas: int, used: str) -> int | None:
        """Return to how many replicas the target is scaled; None: it stays as it is."""
        actions = self.answered(replicas, used).actions
        for action in actions:
            if isinstance(action, Patch):
                self.controller.finished(KEY, Outcome(action))
        sizes = [action.body["spec"]["replicas"] for action in actions if is_rescale(action)]
        return sizes[0] if sizes else None

    def events(self) -> list[tuple[str, str]]:
        return [(each.type, each.reason) for each in self.recorded]


def is_rescale(action: Action) -> TypeGuard[Patch]:
    return isinstance(action, Patch) and action.path == SCALE


def pod(name: str) -> Object:
    """A pod that has been ready for long."""
    container = {"name": "c", "resources": {"requests": {"cpu": "100m"}}}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": EARLIER}
    return {
        "metadata": {"name": name, "uid": name, "namespace": "default"},
        "spec": {"containers": [container]},
        "status": {"phase": "Running", "startTime": EARLIER, "conditions": [ready]},
    }


def pod_metrics(name: str, used: str, clock: FakeClock) -> Object:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "timestamp": rfc3339(clock.now()),
        "window": "15s",
        "containers": [{"name": "c", "usage": {"cpu": used}}],
    }


def conditions(actions: list[Action]) -> list[tuple[str, str, str]]:
    status = _status(actions)
    return [
        (condition["type"], condition["status"], condition["reason"])
        for condition in status["conditions"]
    ]


def _status(actions: list[Action]) -> Object:
    [patch] = [
        action
        for action in actions
        if isinstance(action, Patch) and action.path.endswith("/status")
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
    plan = world.answered(3, error=ON_HOLIDAY)
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
    status = _status(world.answered(3, error=ON_HOLIDAY).actions)
    [old] = world.autoscalers.values()
    world.autoscalers.on_update(old, msgspec.structs.replace(old, status=status))
    assert world.answered(3, error=ON_HOLIDAY).actions == []


def test_scaling_up_says_why_and_what_was_measured() -> None:
    world = World()
    plan = world.answered(3, "120m")

    assert plan.actions[0] == Patch(SCALE, {"spec": {"replicas": 5}})
    status = _status(plan.actions)
    del status["conditions"]
    assert status == {
        "currentReplicas": 3,
        "desiredReplicas": 5,
        "lastScaleTime": STAMP,
        "currentMetrics": [
            {
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "current": {"averageUtilization": 120, "averageValue": "120m"},
                },
            }
        ],
    }
    world.controller.finished(KEY, Outcome(plan.actions[0]))
    assert [each.message for each in world.recorded] == [
        "New size: 5; reason: cpu resource utilization (percentage of request) above target"
    ]


@pytest.mark.parametrize(
    ("replicas", "used", "want"),
    [
        pytest.param(
            3,
            "80m",
            [
                ("AbleToScale", "True", "ReadyForNewScale"),
                ("ScalingActive", "True", "ValidMetricFound"),
                ("ScalingLimited", "False", "DesiredWithinRange"),
            ],
            id="on target",
        ),
        pytest.param(
            3,
            "20m",
            [
                ("AbleToScale", "True", "ScaleDownStabilized"),
                ("ScalingActive", "True", "ValidMetricFound"),
                ("ScalingLimited", "False", "DesiredWithinRange"),
            ],
            id="below, but not for long enough",
        ),
        pytest.param(
            5,
            "200m",
            [
                ("AbleToScale", "True", "ReadyForNewScale"),
                ("ScalingActive", "True", "ValidMetricFound"),
                ("ScalingLimited", "True", "TooManyReplicas"),
            ],
            id="as large as it may be",
        ),
        pytest.param(
            3,
            "120m",
            [
                ("AbleToScale", "True", "SucceededRescale"),
                ("ScalingActive", "True", "ValidMetricFound"),
                ("ScalingLimited", "False", "DesiredWithinRange"),
            ],
            id="scaled",
        ),
    ],
)
def test_conditions(replicas: int, used: str, want: list[tuple[str, str, str]]) -> None:
    assert conditions(World().answered(replicas, used).actions) == want


def test_up_at_once_and_down_after_five_minutes() -> None:
    world = World()
    sizes = [world.scaled(3, "120m")]
    for _ in range(21):
        world.clock.advance(15)
        sizes.append(world.scaled(5, "20m"))
    assert sizes == [5] + [None] * 20 + [2]
    assert world.recorded[-1].message == "New size: 2; reason: All metrics below target"


def test_the_rate_of_a_policy_counts_what_was_done() -> None:
    policy = {"type": "Pods", "value": 1, "periodSeconds": 60}
    rules = {"policies": [policy], "selectPolicy": "Max", "stabilizationWindowSeconds": 0}
    world = World(behavior={"scaleUp": rules, "scaleDown": rules}, maxReplicas=10)
    sizes, size = [], 3
    for _ in range(9):
        scaled = world.scaled(size, "300m")
        sizes.append(scaled)
        size = scaled or size
        world.clock.advance(15)
    assert sizes == [4, None, None, None, 5, None, None, None, 6]


def test_a_rescale_that_fails_is_told_and_counts_for_nothing() -> None:
    policy = {"type": "Pods", "value": 1, "periodSeconds": 60}
    rules = {"policies": [policy], "stabilizationWindowSeconds": 0}
    world = World(behavior={"scaleUp": rules, "scaleDown": rules})
    [rescale, *_] = world.answered(3, "300m").actions
    world.controller.finished(KEY, Outcome(rescale, error=ON_HOLIDAY))

    assert world.events() == [("Warning", "FailedRescale")]
    told = world.controller.plan(KEY)
    assert conditions(told.actions) == [("AbleToScale", "False", "FailedUpdateScale")]
    assert told.again == 15.0
    assert world.scaled(3, "300m") == 4


def test_the_largest_of_several_metrics_counts() -> None:
    value = {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "25m"}}
    world = World(metrics=[CPU, {"type": "Resource", "resource": value}])
    plan = world.answered(3, "40m")

    assert plan.actions[0] == Patch(SCALE, {"spec": {"replicas": 5}})
    assert [metric["type"] for metric in _status(plan.actions)["currentMetrics"]] == [
        "Resource"
    ] * 2
    assert plan.actions[0].note == "cpu resource above target"


@pytest.mark.parametrize(
    ("used", "size"),
    [
        pytest.param("160m", 5, id="up by the one that is known"),
        pytest.param("20m", None, id="not down: the other may call for more"),
    ],
)
def test_a_metric_that_is_missing(used: str, size: int | None) -> None:
    custom = {"type": "Pods", "pods": {"metric": {"name": "rps"}}}
    world = World(metrics=[custom, CPU])
    assert world.scaled(3, used) == size
    assert ("Warning", "FailedGetPodsMetric") in world.events()


def test_an_autoscaler_that_is_made_anew_remembers_nothing() -> None:
    world = World()
    world.scaled(3, "120m")
    [old] = world.autoscalers.values()
    world.autoscalers.on_delete(old)
    world.autoscalers.on_add(old)
    conditions_now = conditions(world.answered(3, "80m").actions)
    assert conditions_now[0] == ("AbleToScale", "True", "ReadyForNewScale")
