"""Sequences of pods: what a pod finds that comes after others.

The recorded sequences are compared in tests/conformance.
"""

import json
from typing import Any

import pytest

from berth.insight.offline.scenario import ScenarioError
from berth.insight.offline.simulate import simulate
from berth.kube.objects.meta import KubeStruct
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import Plugin, ReservePlugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod, to_json


def as_object(thing: KubeStruct) -> Any:
    return json.loads(to_json(thing))


def sequence(*pods: Pod, on: list[Node | Pod], **more: Any) -> dict[str, Any]:
    return {
        "id": "s",
        "objects": [as_object(thing) for thing in on],
        "pods": [as_object(each) for each in pods],
        **more,
    }


def big(name: str, **more: Any) -> Pod:
    """A pod that fills a node of one cpu."""
    return pod(name, cpu="1", **more)


ONE, TWO = node("one", cpu="1"), node("two", cpu="1")


def test_each_pod_finds_those_before_it_in_place() -> None:
    assert simulate(sequence(big("a"), big("b"), big("c"), on=[TWO, ONE]), IN_TREE) == {
        "id": "s",
        "assignments": {"default/a": "one", "default/b": "two", "default/c": None},
        "fitErrors": {"default/c": "0/2 nodes are available: 2 Insufficient cpu."},
    }


def test_who_fits_nowhere_takes_no_room() -> None:
    answer = simulate(sequence(pod("huge", cpu="2"), big("a"), on=[ONE]), IN_TREE)
    assert answer["assignments"] == {"default/huge": None, "default/a": "one"}


def test_without_nodes() -> None:
    answer = simulate(sequence(pod("a"), on=[]), IN_TREE)
    assert answer["fitErrors"] == {"default/a": "no nodes available to schedule pods"}


@pytest.mark.parametrize(
    ("priority", "want"),
    [
        pytest.param(0, None, id="the nominated pod is as important"),
        pytest.param(1, "one", id="the nominated pod is less important"),
    ],
)
def test_room_is_left_to_a_nominated_pod(priority: int, want: str | None) -> None:
    waiting = big("waiting", nominated="one", priority=0)
    coming = big("coming", priority=priority)
    answer = simulate(sequence(coming, on=[ONE, waiting]), IN_TREE)
    assert answer["assignments"] == {"default/coming": want}


def test_a_nominated_pod_of_the_sequence_gets_the_room_that_was_left_to_it() -> None:
    last = big("last", nominated="one")
    answer = simulate(sequence(big("first"), last, big("late"), on=[ONE, TWO]), IN_TREE)
    assert answer["assignments"] == {
        "default/first": "two",
        "default/last": "one",
        "default/late": None,
    }


def test_a_nomination_ends_when_the_pod_has_a_node() -> None:
    small = pod("small", cpu="500m", nominated="one")
    answer = simulate(sequence(small, pod("next", cpu="500m"), on=[ONE]), IN_TREE)
    assert answer["assignments"] == {"default/small": "one", "default/next": "one"}


class Refuser(ReservePlugin):
    """Refuses pods by name, and remembers what it gave back."""

    NAME = "Refuser"

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        match pod.name:
            case "refused":
                return Status.unschedulable("it has no luck")
            case "failing":
                return Status.error("out of order")
            case _:
                return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        assert pod.name in ("refused", "failing")


def test_a_pod_that_cannot_reserve_gives_its_room_back() -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {"reserve": {"enabled": [{"name": "Refuser"}]}},
            }
        ],
    }
    pods = (big("refused"), big("failing"), big("a"))
    registry: dict[str, type[Plugin]] = {**IN_TREE, "Refuser": Refuser}
    assert simulate(sequence(*pods, on=[ONE], config=config), registry) == {
        "id": "s",
        "assignments": {"default/refused": None, "default/failing": None, "default/a": "one"},
        "fitErrors": {"default/refused": "0/1 nodes are available: 1 it has no luck."},
        "errors": {"default/failing": 'running Reserve plugin "Refuser": out of order'},
    }


def test_one_pod_is_no_sequence() -> None:
    answer = simulate({"id": "s", "objects": [], "pod": as_object(pod())}, IN_TREE)
    assert answer == {
        "id": "s",
        "unsupported": "a single pod; simulate takes a sequence of pods",
    }


@pytest.mark.parametrize(
    ("pods", "message"),
    [
        pytest.param(
            [pod("a", scheduler="mine")],
            "pod default/a: spec.schedulerName: no profile 'mine'",
            id="an unknown scheduler",
        ),
        pytest.param(
            [pod("a", uid="u"), pod("b", uid="u")],
            "pod default/b: metadata.uid: 'u' is that of another pod",
            id="two pods with one uid",
        ),
    ],
)
def test_malformed_sequences(pods: list[Pod], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        simulate(sequence(*pods, on=[ONE]), IN_TREE)


def test_a_seed_draws_the_same_nodes_every_time() -> None:
    names = [f"n{i}" for i in range(9)]
    room = {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}}
    scenario = {
        "objects": [{"kind": "Node", "metadata": {"name": n}, "status": room} for n in names],
        "pods": [
            {"kind": "Pod", "metadata": {"name": f"p{i}", "namespace": "default", "uid": f"u{i}"}}
            for i in range(9)
        ],
    }

    drawn = [simulate(scenario, IN_TREE, seed=seed)["assignments"] for seed in (1, 1, 2)]

    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]
