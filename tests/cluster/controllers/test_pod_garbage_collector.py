"""Which pods are deleted because nobody else does it."""

from typing import Any

import msgspec
import pytest

from berth.cluster.actions import STRATEGIC_MERGE, Action, Delete, Get, Patch
from berth.cluster.controllers.controller import NOTHING, Outcome
from berth.cluster.controllers.pod_garbage_collector import LOOK, PodGarbageCollector
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import (
    NodeCondition,
    NodeSpecView,
    NodeStatusView,
    NodeTaint,
    NodeView,
)
from berth.cluster.object_views import Meta
from berth.cluster.pods.controllers import PodStatusView, PodView
from berth.runtime.clock import FakeClock
from tests.cluster.objects import pod_view

OUT_OF_SERVICE = NodeTaint("node.kubernetes.io/out-of-service", "nodeshutdown", "NoExecute")


def node_view(name: str, *taints: NodeTaint, ready: str = "True") -> NodeView:
    status = NodeStatusView([NodeCondition("Ready", ready)])
    return NodeView(Meta(name, f"uid-{name}"), NodeSpecView(taints), status)


class World:
    """The nodes ``n1``, which is well, and ``n2``, which is out of service."""

    def __init__(self, *pods: PodView, threshold: int = 12_500) -> None:
        self.clock = FakeClock(1_767_225_600.0)
        self.nodes: Table[NodeView] = Table()
        self.pods: Table[PodView] = Table()
        self.controller = PodGarbageCollector(
            self.nodes, self.pods, threshold=threshold, clock=self.clock
        )
        self.queue: list[str] = []
        self.controller.subscribe(self.queue.append)
        self.nodes.on_add(node_view("n1"))
        self.nodes.on_add(node_view("n2", OUT_OF_SERVICE, ready="Unknown"))
        for pod in pods:
            self.pods.on_add(pod)

    def look(self, *, found: bool = False) -> list[Action]:
        """Look at all pods and do what is to be done; the API says whether a node is *found*."""
        actions: list[Action] = []
        self.queue[:] = [LOOK]
        while self.queue:
            key = self.queue.pop(0)
            again: float | None = 0.0
            while again == 0.0:
                plan = self.controller.plan(key)
                again = plan.again
                for action in plan.actions:
                    actions.append(action)
                    answer = msgspec.json.encode({"items": [{}] if found else []})
                    self.controller.finished(key, Outcome(action, answer=answer))
        return actions


def path(name: str) -> str:
    return f"/api/v1/namespaces/default/pods/{name}"


def failed(name: str, **status: Any) -> Patch:
    body = {"metadata": {"uid": f"uid-{name}"}, "status": {"phase": "Failed", **status}}
    return Patch(f"{path(name)}/status", body, STRATEGIC_MERGE)


def deleted(name: str) -> Delete:
    return Delete(path(name), f"uid-{name}", grace_seconds=0)


def evicted(name: str, born: str) -> PodView:
    pod = pod_view(name, phase="Failed", born=born)
    return msgspec.structs.replace(pod, status=PodStatusView("Failed", reason="Evicted"))


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(pod_view("a"), [], id="it runs"),
        pytest.param(pod_view("a", deleted=True), [], id="its kubelet ends it"),
        pytest.param(
            pod_view("a", node=None, phase="Pending", deleted=True), [failed("a"), deleted("a")],
            id="it was never bound, and is to go",
        ),
        pytest.param(pod_view("a", node=None, phase="Pending"), [], id="it waits for a node"),
        pytest.param(
            pod_view("a", node="n2", deleted=True), [failed("a"), deleted("a")],
            id="it is to go, on a node that is out of service",
        ),
        pytest.param(
            pod_view("a", node="n2", phase="Succeeded", deleted=True), [deleted("a")],
            id="the same, and it has ended",
        ),
        pytest.param(pod_view("a", node="n2"), [], id="it may stay on a node out of service"),
        pytest.param(pod_view("a", phase="Failed"), [], id="it has ended: there is room for it"),
    ],
)  # fmt: skip
def test_which_pods_go(pod: PodView, want: list[Action]) -> None:
    assert World(pod).look() == want


def test_a_node_out_of_service_that_is_ready_ends_its_pods_itself() -> None:
    world = World(pod_view("a", node="n3", deleted=True))
    world.nodes.on_add(node_view("n3", OUT_OF_SERVICE))
    assert world.look() == []


def test_too_many_that_have_ended() -> None:
    world = World(
        pod_view("new", phase="Succeeded", born="2026-01-01T00:00:03Z"),
        pod_view("old", phase="Failed", born="2026-01-01T00:00:01Z"),
        pod_view("b", phase="Failed", born="2026-01-01T00:00:02Z"),
        pod_view("a", phase="Failed", born="2026-01-01T00:00:02Z"),
        evicted("evicted", born="2026-01-01T00:00:04Z"),
        pod_view("running"),
        threshold=2,
    )
    assert world.look() == [deleted("evicted"), deleted("old"), deleted("a")]


def test_any_number_may_stay_without_a_threshold() -> None:
    assert World(pod_view("a", phase="Failed"), threshold=0).look() == []


ASKED = Get("/api/v1/nodes", {"fieldSelector": "metadata.name=gone"})
ORPHANED = failed(
    "a",
    conditions=[
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
            "observedGeneration": 0,
            "lastProbeTime": None,
            "lastTransitionTime": "2026-01-01T00:00:40Z",
        }
    ],
)


def test_the_pods_of_a_node_that_is_gone() -> None:
    world = World(pod_view("a", node="gone"), pod_view("b", node="gone", phase="Succeeded"))
    assert world.look() == []
    world.clock.advance(39.0)
    assert world.look() == []
    world.clock.advance(1.0)
    assert world.look() == [ASKED, ORPHANED, deleted("a"), deleted("b")]


def test_a_node_that_the_watch_has_missed_is_not_gone() -> None:
    world = World(pod_view("a", node="gone"))
    world.look()
    world.clock.advance(40.0)
    assert world.look(found=True) == [ASKED]


def test_a_node_that_comes_back_is_not_gone() -> None:
    world = World(pod_view("a", node="gone"))
    world.look()
    back = node_view("gone")
    world.nodes.on_add(back)
    world.clock.advance(40.0)
    assert world.look() == []
    world.nodes.on_delete(back)
    assert world.look() == [], "the quarantine starts anew"


def test_a_pod_that_another_took_the_place_of_stays() -> None:
    world = World(pod_view("a", node="n2", deleted=True))
    world.queue[:] = []
    assert world.controller.plan(LOOK).again == 20.0
    world.pods.on_delete(pod_view("a", node="n2", deleted=True))
    assert world.queue == ["default/a"]
    assert world.controller.plan("default/a") == NOTHING
