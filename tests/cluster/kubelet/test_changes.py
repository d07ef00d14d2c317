"""What hollow kubelets do about pods whose spec changes while they run."""

from typing import Any

import msgspec
import pytest

from berth.cluster.actions import Action, Patch
from berth.cluster.pods.kubelet import KubeletPod
from berth.cluster.resources import Object
from berth.kube.client.errors import ServerError
from tests.cluster.kubelet.test_pod_lifecycles import World, pod

START = 2.0


class Running:
    """A pod that runs, with all that is reported of it."""

    def __init__(self, world: World, name: str = "p", **spec: Any) -> None:
        self.world = world
        self.pod = pod(name, **spec)
        world.pods.on_add(self.pod)
        (started,) = world.after(START)
        self.reported: Object = {}
        self.take(started)

    def take(self, action: Action) -> Object:
        """Let the API server store a report; return it."""
        assert isinstance(action, Patch)
        status = action.body["status"]
        self.reported |= status
        conditions = [
            condition for condition in status.get("conditions", []) if "$patch" not in condition
        ]
        stored = msgspec.to_builtins(self.pod)
        stored["status"] = {**self.reported, "conditions": conditions}
        self._update(stored)
        return dict(status)

    def change(self, **spec: Any) -> list[Action]:
        """Change the spec; return what is reported at once."""
        body = msgspec.to_builtins(self.pod)
        body["spec"] |= spec
        body["metadata"]["generation"] += 1
        self._update(body)
        return self.world.after(0)

    def resize(self, cpu: str) -> list[Action]:
        container = {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}
        return self.change(containers=[container])

    def _update(self, body: Object) -> None:
        old, self.pod = self.pod, msgspec.convert(body, KubeletPod)
        self.world.pods.on_update(old, self.pod)


@pytest.fixture
def world() -> World:
    return World()


def cpu_of(status: Object) -> tuple[str, str]:
    """Return what the container has, and what is set aside for it."""
    (container,) = status["containerStatuses"]
    return container["resources"]["requests"]["cpu"], container["allocatedResources"]["cpu"]


def test_a_pod_says_what_it_has(world: World) -> None:
    assert cpu_of(Running(world).reported) == ("1", "1")


def test_a_resize_is_done_at_once_where_there_is_room(world: World) -> None:
    running = Running(world)
    (report,) = running.resize("3")
    status = running.take(report)
    assert cpu_of(status) == ("3", "3")
    assert status["observedGeneration"] == 2
    assert "PodResizePending" not in {
        condition["type"] for condition in status.get("conditions", ())
    }
    assert world.after(100) == []
    world.nodes["node-0"].check_invariants()


@pytest.mark.parametrize(
    ("cpu", "reason", "message"),
    [
        pytest.param(
            "5",
            "Infeasible",
            "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000",
            id="more than the node has",
        ),
        pytest.param(
            "3",
            "Deferred",
            "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000",
            id="more than is left",
        ),
    ],
)
def test_a_resize_that_waits(world: World, cpu: str, reason: str, message: str) -> None:
    Running(world, "other", cpu="2")
    running = Running(world)
    (report,) = running.resize(cpu)
    status = running.take(report)
    assert cpu_of(status) == ("1", "1")
    (condition,) = [each for each in status["conditions"] if each["type"] != "PodScheduled"]
    assert (condition["type"], condition["status"]) == ("PodResizePending", "True")
    assert (condition["reason"], condition["message"]) == (reason, message)


def test_a_resize_is_done_when_others_have_gone(world: World) -> None:
    other, running = Running(world, "other", cpu="2"), Running(world)
    (report,) = running.resize("3")
    running.take(report)
    world.pods.on_delete(other.pod)
    (report,) = world.after(0)
    assert cpu_of(running.take(report)) == ("3", "3")


def test_ephemeral_containers_start(world: World) -> None:
    running = Running(world)
    first = {"name": "one", "image": "busybox"}
    (report,) = running.change(ephemeralContainers=[first])
    (one,) = running.take(report)["ephemeralContainerStatuses"]
    assert (one["name"], one["image"]) == ("one", "busybox")
    world.after(10)
    (report,) = running.change(ephemeralContainers=[first, {"name": "two", "image": "busybox"}])
    again, two = running.take(report)["ephemeralContainerStatuses"]
    assert again == one
    assert two["state"]["running"]["startedAt"] == "2026-01-01T00:00:12Z"


def test_a_report_that_failed_is_made_again(world: World) -> None:
    running = Running(world)
    body = msgspec.to_builtins(running.pod)
    body["metadata"]["generation"] += 1
    body["spec"]["ephemeralContainers"] = [{"name": "one", "image": "busybox"}]
    running._update(body)
    assert len(world.after(0, error=ServerError(500, "", "no"))) == 1
    assert len(world.after(3)) == 1
    assert world.after(3) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(None, 10, id="a pod that had none"),
        pytest.param(100, 10, id="a shorter one"),
    ],
)
def test_a_deadline_that_is_set_later_counts_from_the_start(
    world: World, before: int | None, after: int
) -> None:
    running = Running(world, activeDeadlineSeconds=before)
    world.after(4)
    running.change(activeDeadlineSeconds=after)
    assert running.reported["phase"] == "Running"
    (ended,) = world.after(after - 4 + 1)
    report = running.take(ended)
    assert (report["phase"], report["reason"]) == ("Failed", "DeadlineExceeded")
