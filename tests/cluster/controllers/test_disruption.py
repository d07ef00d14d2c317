"""How many pods may be evicted: what the controller of budgets plans."""

from typing import Any

import pytest

from berth.clock import FakeClock
from berth.cluster.actions import Patch
from berth.cluster.controllers.disruption import DisruptionController
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import (
    Meta,
    PodView,
    ReplicationControllerView,
    ResourceView,
    WorkloadView,
)
from berth.cluster.resources import Object
from tests.cluster.objects import pod_view, workload_view

SELECTOR = {"matchLabels": {"app": "web"}}


class World:
    """Four pods wanted by a Deployment; of the three that there are two are ready."""

    def __init__(self, spec: Object, status: Object | None = None) -> None:
        self.budgets: Table[ResourceView] = Table()
        self.pods: Table[PodView] = Table()
        deployments: Table[WorkloadView] = Table()
        replica_sets: Table[WorkloadView] = Table()
        self.controller = DisruptionController(
            self.budgets,
            self.pods,
            {"Deployment": deployments, "ReplicaSet": replica_sets},
            clock=FakeClock(1_767_225_600.0),
        )
        self.enqueued: list[str] = []
        self.controller.subscribe(self.enqueued.append)
        deployments.on_add(workload_view("shop", replicas=4))
        replica_sets.on_add(workload_view("web", replicas=3, of="shop"))
        for pod in (pod_view("a"), pod_view("b"), pod_view("c", ready=None)):
            self.pods.on_add(pod)
        self.pods.on_add(pod_view("other", labels={"app": "db"}))
        meta = Meta("budget", "uid-budget", "default", generation=2)
        self.budgets.on_add(ResourceView(meta, spec, status or {}))

    def status(self) -> Object | None:
        actions = self.controller.plan("default/budget").actions
        if not actions:
            return None
        [patch] = actions
        assert isinstance(patch, Patch)
        status: Object = patch.body["status"]
        return status


@pytest.mark.parametrize(
    ("spec", "expected", "desired", "allowed"),
    [
        pytest.param({"minAvailable": 1}, 3, 1, 1, id="a number that must stay"),
        pytest.param({"minAvailable": "50%"}, 4, 2, 0, id="a share that must stay"),
        pytest.param({"maxUnavailable": 3}, 4, 1, 1, id="a number that may be away"),
        pytest.param({"maxUnavailable": "60%"}, 4, 1, 1, id="a share that may be, rounded up"),
        pytest.param({"maxUnavailable": 9}, 4, 0, 2, id="more than there are"),
        pytest.param({}, 0, 0, 0, id="nothing is said"),
        pytest.param({"minAvailable": 0, "selector": None}, 0, 0, 0, id="about nobody"),
        pytest.param({"minAvailable": 0, "selector": {}}, 4, 0, 3, id="about everybody"),
    ],
)
def test_counts(spec: Object, expected: int, desired: int, allowed: int) -> None:
    status = World({"selector": SELECTOR, **spec}).status()
    assert status is not None
    [condition] = status.pop("conditions")
    assert status == {
        "currentHealthy": 3 if spec.get("selector") == {} else 2 if expected or not spec else 0,
        "desiredHealthy": desired,
        "disruptionsAllowed": allowed,
        "expectedPods": expected,
        "observedGeneration": 2,
    }
    assert condition["reason"] == ("SufficientPods" if allowed else "InsufficientPods")


def test_what_was_told_is_not_told_again() -> None:
    spec = {"selector": SELECTOR, "minAvailable": 1}
    assert World(spec, World(spec).status()).status() is None


def test_a_pod_wakes_the_budgets_that_select_it() -> None:
    world = World({"selector": SELECTOR, "minAvailable": 1})
    world.enqueued.clear()
    world.pods.on_add(pod_view("d"))
    world.pods.on_add(pod_view("unrelated", labels={"app": "db"}))
    assert world.enqueued == ["default/budget"]


def test_replication_controllers_are_read_like_replica_sets() -> None:
    data: Any = b'{"metadata":{"name":"r","uid":"u"},"spec":{"replicas":2,"selector":{"a":"b"}}}'
    view = ReplicationControllerView.decoder()(data)
    assert (view.replicas, view.spec["selector"]) == (2, {"matchLabels": {"a": "b"}})
