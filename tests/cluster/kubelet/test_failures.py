"""What becomes of pods on machines that fail and return, and of those that the node ends."""

import msgspec
import pytest

from berth.cluster.actions import Action, Delete, Patch
from berth.cluster.pods.kubelet import KubeletPod
from berth.cluster.resources import Object
from berth.kube.objects.node import Node
from tests.cluster.kubelet.test_pod_lifecycles import PATH, World, pod

START = 2.0


@pytest.fixture
def world() -> World:
    return World()


def fail(world: World, failure: str) -> None:
    """Let the machine node-0 fail, or return if *failure* is empty."""
    node = world.nodes["node-0"]
    metadata = {"name": "node-0", "annotations": {"berth.dev/failure": failure}}
    returned = node.observe(msgspec.convert({"metadata": metadata}, Node))
    if returned is not None:
        world.pods.node_returned(node, restarted=returned.name == "RESTARTED")


def statuses(actions: list[Action]) -> list[Object]:
    return [action.body["status"] for action in actions if isinstance(action, Patch)]


@pytest.mark.parametrize("failure", ["stopped", "unreachable"])
def test_nothing_is_heard_of_pods_until_the_machine_is_back(world: World, failure: str) -> None:
    fail(world, failure)
    world.pods.on_add(pod())
    early = world.after(100)
    fail(world, "")

    assert early == []
    assert [status["phase"] for status in statuses(world.after(START))] == ["Running"]


def test_a_pod_that_was_deleted_meanwhile_ends_then(world: World) -> None:
    running = pod(phase="Running")
    world.pods.on_add(running)
    fail(world, "unreachable")
    world.pods.on_update(running, pod(phase="Running", grace=30))
    early = world.after(100)
    fail(world, "")

    assert early == []
    assert world.after(1) == [Delete(PATH, "uid-p", grace_seconds=0)]


def test_a_pod_that_was_removed_meanwhile_is_forgotten(world: World) -> None:
    fail(world, "unreachable")
    world.pods.on_add(pod())
    world.pods.on_delete(pod())
    fail(world, "")

    assert world.after(100) == []


@pytest.mark.parametrize(
    ("policy", "failure", "want"),
    [
        pytest.param("Always", "stopped", ("Running", 1), id="its containers are restarted"),
        pytest.param("Never", "stopped", ("Failed", 0), id="what is never restarted has failed"),
        pytest.param("Always", "unreachable", None, id="its containers have gone on"),
    ],
)
def test_a_machine_returns(
    world: World, policy: str, failure: str, want: tuple[str, int] | None
) -> None:
    world.pods.on_add(pod(phase="Running", restartPolicy=policy))
    fail(world, failure)
    world.after(100)
    fail(world, "")

    found = statuses(world.after(0))

    counts = [(each["phase"], each["containerStatuses"][0]["restartCount"]) for each in found]
    assert counts == ([] if want is None else [want])


def test_a_node_ends_a_pod(world: World) -> None:
    view = pod(phase="Running", cpu="3")
    world.pods.on_add(view)
    before = world.pods.pods_on("node-0")
    world.pods.evict(
        "default/p",
        reason="Evicted",
        message="The node was low on resource: memory.",
        grace_seconds=0,
        is_disruption=True,
    )
    (status,) = statuses(world.after(0))

    assert before == [view]
    assert world.pods.pods_on("node-0") == []
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    assert status["message"] == "The node was low on resource: memory."
    assert {
        condition["type"]: (condition["status"], condition["reason"], condition["message"])
        for condition in status["conditions"]
        if condition["type"] == "DisruptionTarget"
    } == {
        "DisruptionTarget": (
            "True",
            "TerminationByKubelet",
            "The node was low on resource: memory.",
        )
    }
    assert world.nodes["node-0"].admit(pod("q", cpu="4")) is None


def test_a_container_without_memory_is_restarted(world: World) -> None:
    world.pods.on_add(pod(phase="Running"))
    world.pods.kill_container("default/p", "c", reason="OOMKilled", exit_code=137)
    (status,) = statuses(world.after(0))

    (container,) = status["containerStatuses"]
    ended = container["lastState"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
    assert container["restartCount"] == 1


def test_a_pod_that_was_called_not_ready_says_that_it_is(world: World) -> None:
    """As the node lifecycle controller does when the node was missed."""
    world.pods.on_add(pod())
    (started,) = statuses(world.after(START))
    body = msgspec.to_builtins(pod())
    body["status"] = {
        **started,
        "conditions": [
            {"type": "PodScheduled", "status": "True"},
            *map(dict, started["conditions"]),
        ],
    }
    stored = msgspec.convert(body, KubeletPod)
    world.pods.on_update(pod(), stored)
    quiet = world.after(1)
    for condition in body["status"]["conditions"]:
        if condition["type"] == "Ready":
            condition["status"] = "False"
    world.pods.on_update(stored, msgspec.convert(body, KubeletPod))
    (report,) = statuses(world.after(0))

    assert quiet == []
    assert [(condition["type"], condition["status"]) for condition in report["conditions"]] == [
        ("Ready", "True")
    ]
    assert world.after(100) == []
