"""A kubelet process that starts anew takes over what the last one has reported."""

from typing import Any

import msgspec
import pytest

from berth.cluster.actions import Patch
from berth.cluster.pods.kubelet import KubeletPod
from berth.cluster.resources import Object
from tests.cluster.kubelet.test_pod_lifecycles import World, pod

EARLIER = "2025-12-31T23:59:00Z"
RUNNING = {"running": {"startedAt": EARLIER}}
DONE = {
    "terminated": {
        "exitCode": 0,
        "reason": "Completed",
        "startedAt": EARLIER,
        "finishedAt": EARLIER,
    }
}
FAILED = {"terminated": {**DONE["terminated"], "exitCode": 3, "reason": "Error"}}


@pytest.fixture
def world() -> World:
    return World()


def known(
    *statuses: Object, inits: tuple[Object, ...] = (), annotations: Any = None, **spec: Any
) -> KubeletPod:
    """A pod that runs, with what was reported of its containers."""
    body = msgspec.to_builtins(pod(phase="Running", **spec))
    body["metadata"]["annotations"] = annotations or {}
    body["status"] |= {
        "startTime": EARLIER,
        "containerStatuses": list(statuses),
        "initContainerStatuses": list(inits),
    }
    return msgspec.convert(body, KubeletPod)


def status(name: str, state: Object, *, restarts: int = 0) -> Object:
    return {"name": name, "state": state, "restartCount": restarts}


def reports(world: World, seconds: float) -> list[Object]:
    return [each.body["status"] for each in world.after(seconds) if isinstance(each, Patch)]


def test_what_runs_goes_on(world: World) -> None:
    world.pods.on_add(known(status("c", RUNNING, restarts=4)))
    quiet = reports(world, 100)
    world.pods.kill_container("default/p", "c", reason="OOMKilled", exit_code=137)
    (report,) = reports(world, 0)

    assert quiet == []
    (container,) = report["containerStatuses"]
    assert container["restartCount"] == 5
    assert container["lastState"]["terminated"]["startedAt"] == EARLIER


def test_what_should_have_ended_meanwhile_has(world: World) -> None:
    told = {"berth.dev/run-seconds": "90"}
    world.pods.on_add(known(status("c", RUNNING), annotations=told, restartPolicy="Never"))

    (report,) = reports(world, 30)

    assert report["phase"] == "Succeeded"
    (container,) = report["containerStatuses"]
    assert container["state"]["terminated"]["finishedAt"] == "2026-01-01T00:00:30Z"


def test_what_has_failed_is_restarted(world: World) -> None:
    world.pods.on_add(known(status("c", FAILED, restarts=2)))
    world.pods.kill_container("default/p", "c", reason="Error", exit_code=1)

    (report,) = reports(world, 0)

    (container,) = report["containerStatuses"]
    assert container["restartCount"] == 3
    assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"


def test_the_next_init_container_has_its_turn(world: World) -> None:
    inits = [{"name": "one", "image": "i"}, {"name": "two", "image": "i"}]
    world.pods.on_add(known(inits=(status("one", DONE),), initContainers=inits))
    world.pods.kill_container("default/p", "c", reason="Error", exit_code=1)

    (report,) = reports(world, 0)

    assert [
        next(iter(init_container_status["state"]))
        for init_container_status in report["initContainerStatuses"]
    ] == [
        "terminated",
        "terminated",
    ]
