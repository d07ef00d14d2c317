"""Who waits for room on which node (spec §3.10)."""

import pytest

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.queue.nominator import Nominator
from tests.builders import pod


def nominations(nominator: Nominator) -> dict[str, list[str]]:
    nominator.check_invariants()
    return {
        node: [waiting.name for waiting in pods]
        for node, pods in nominator.nominated_pods().items()
    }


@pytest.mark.parametrize(
    ("a_pod", "node_name", "want"),
    [
        pytest.param(pod(), "n1", {"n1": ["p"]}, id="a node is given"),
        pytest.param(pod(nominated="n2"), "n1", {"n1": ["p"]}, id="what is given wins"),
        pytest.param(pod(nominated="n2"), None, {"n2": ["p"]}, id="the status says which"),
        pytest.param(pod(nominated="n2"), "", {}, id="cleared"),
        pytest.param(pod(), None, {}, id="nothing said"),
    ],
)
def test_add(a_pod: Pod, node_name: str | None, want: dict[str, list[str]]) -> None:
    nominator = Nominator({a_pod.key: a_pod}.get)
    nominator.add_nominated_pod(PodInfo(a_pod), node_name="before")
    nominator.add_nominated_pod(PodInfo(a_pod), node_name=node_name)

    assert nominations(nominator) == want
    assert nominator.nominated_node(a_pod.metadata.uid) == next(iter(want), None)
    assert len(nominator) == len(want)


@pytest.mark.parametrize(
    "current",
    [
        pytest.param({}, id="gone"),
        pytest.param({"default/p": pod(node="n7")}, id="bound meanwhile"),
    ],
)
def test_nobody_is_nominated_who_does_not_wait(current: dict[str, Pod]) -> None:
    nominator = Nominator(current.get)
    nominator.add_nominated_pod(PodInfo(pod()), node_name="n1")

    assert nominations(nominator) == {}


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param("", "", {"memory": ["p"]}, id="not mentioned: the one in memory stays"),
        pytest.param("", "n1", {"n1": ["p"]}, id="it appears"),
        pytest.param("n1", "n2", {"n2": ["p"]}, id="it changes"),
        pytest.param("n1", "n1", {"n1": ["p"]}, id="the object wins over memory"),
        pytest.param("n1", "", {}, id="it disappears"),
    ],
)
def test_update(old: str, new: str, want: dict[str, list[str]]) -> None:
    before, after = pod(nominated=old), pod(nominated=new, labels={"now": "changed"})
    nominator = Nominator({after.key: after}.get)
    nominator.add_nominated_pod(PodInfo(before), node_name="memory")
    nominator.update_nominated_pod(before, PodInfo(after))

    assert nominations(nominator) == want
    assert [p.pod for node in want for p in nominator.nominated_pods_for_node(node)] == [
        after for _ in want
    ]


def test_an_update_nominates_nobody_who_was_not() -> None:
    nominator = Nominator({"default/p": pod()}.get)
    nominator.update_nominated_pod(pod(), PodInfo(pod()))

    assert nominations(nominator) == {}


def test_delete_leaves_the_others_in_order() -> None:
    pods = [pod(name) for name in ("a", "b", "c")]
    nominator = Nominator({p.key: p for p in pods}.get)
    for waiting in pods:
        nominator.add_nominated_pod(PodInfo(waiting), node_name="n1")
    nominator.delete_nominated_pod_if_exists(pods[0].metadata.uid)
    nominator.delete_nominated_pod_if_exists("nobody")

    assert nominations(nominator) == {"n1": ["b", "c"]}
    assert nominator.nominated_pods_for_node("n2") == ()
