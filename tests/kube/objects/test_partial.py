"""Objects of which something cannot be read."""

from typing import Any

import msgspec
import pytest

from berth.kube.objects.node import Node
from berth.kube.objects.partial import read_partly
from berth.kube.objects.pod import Pod
from berth.kube.objects.quantity import NANO
from berth.kube.objects.resources import pod_requests, requested
from tests.builders import container
from tests.builders import pod as make_pod

ORDINARY: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"app": "web"}},
    "spec": {
        "nodeName": "n1",
        "containers": [
            {"name": "a", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
            {"name": "b", "resources": {"requests": {"cpu": "2"}}},
        ],
    },
}


def changed(path: str, value: object) -> bytes:
    """Return the ordinary pod with another value at the dotted *path*."""
    pod = msgspec.json.decode(msgspec.json.encode(ORDINARY))
    *steps, last = path.split(".")
    at = pod
    for step in steps:
        at = at[int(step)] if isinstance(at, list) else at.setdefault(step, {})
    at[last] = value
    return msgspec.json.encode(pod)


@pytest.mark.parametrize(
    ("path", "value", "cpu", "unread"),
    [
        pytest.param(
            "spec.containers.0.resources.requests.cpu",
            "1x",
            2,
            ["spec.containers[0].resources.requests.cpu: quantity '1x': want a number"],
            id="a quantity",
        ),
        pytest.param(
            "spec.containers.0.resources.requests.cpu",
            "-1",
            2,
            ["spec.containers[0].resources.requests.cpu: quantity '-1': must not be negative"],
            id="a negative quantity",
        ),
        pytest.param(
            "spec.containers.0.resources",
            "much",
            2,
            ["spec.containers[0].resources: Expected `object`, got `str`"],
            id="the resources of a container",
        ),
        pytest.param(
            "spec.containers.0.ports",
            [{"hostPort": "http"}, {"hostPort": 80}],
            3,
            ["spec.containers[0].ports[0].hostPort: Expected `int`, got `str`"],
            id="something else of a container",
        ),
        pytest.param(
            "spec.containers", {}, 0, ["spec.containers: Expected `array`"], id="the containers"
        ),
        pytest.param(
            "spec.tolerations",
            [7, {"key": "k"}],
            3,
            ["spec.tolerations[0]: Expected `object`, got `int`"],
            id="an item",
        ),
        pytest.param(
            "status.containerStatuses",
            [{"name": "a", "resources": {"requests": {"cpu": []}}}],
            3,
            ["status.containerStatuses[0].resources.requests.cpu: Expected"],
            id="a status",
        ),
        pytest.param("metadata.labels.n", 7, 3, ["metadata.labels.n: Expected"], id="a label"),
        pytest.param("spec.tolerations", None, 3, [], id="null, as Go writes an empty list"),
        pytest.param("spec.volumes", [{"name": "v", "csi": None}], 3, [], id="null for an object"),
        pytest.param(
            "spec.affinity",
            {
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": 1}]
                }
            },
            3,
            [
                "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
                ".topologyKey: Expected"
            ],
            id="deep inside of what may be missing",
        ),
    ],
)
def test_the_rest_of_a_pod_counts(path: str, value: object, cpu: int, unread: list[str]) -> None:
    data = changed(path, value)

    pod, found = read_partly(data, Pod)

    assert (pod.key, pod.metadata.uid, pod.spec.node_name) == ("ns/p", "u", "n1")
    assert pod.metadata.labels == {"app": "web"}
    assert pod_requests(pod, use_status=True, pod_level=True).get("cpu", 0) == cpu * NANO
    assert len(found) == len(unread)
    for each, start in zip(found, unread, strict=True):
        assert str(each).startswith(start)


def test_an_ordinary_pod_is_read_whole() -> None:
    data = msgspec.json.encode(ORDINARY)
    assert read_partly(data, Pod) == (msgspec.json.decode(data, type=Pod), [])


def test_what_cannot_be_read_stays_as_it_was() -> None:
    last = make_pod("p", containers=[container(cpu="4"), container(cpu="2")])
    written = msgspec.json.decode(msgspec.json.encode(last))
    written["spec"]["containers"][0]["resources"]["requests"]["cpu"] = {}
    written["spec"]["nodeName"] = []
    data = msgspec.json.encode(written)

    kept, unread = read_partly(data, Pod, last)
    alone, _ = read_partly(data, Pod)

    assert (requested(kept).milli_cpu, requested(alone).milli_cpu) == (6000, 2000)
    assert len(unread) == 2


def test_items_are_not_mistaken_for_others() -> None:
    last = make_pod("p", containers=[container(cpu="4"), container(cpu="2")])
    written = msgspec.json.decode(msgspec.json.encode(last))
    del written["spec"]["containers"][0]
    written["spec"]["containers"][0]["resources"]["requests"]["cpu"] = {}

    pod, _ = read_partly(msgspec.json.encode(written), Pod, last)

    assert requested(pod).milli_cpu == 0


def test_enums_are_kept_as_they_are_written() -> None:
    selector = {"matchExpressions": [{"key": "k", "operator": "Like", "values": ["v"]}]}
    spread = [{"topologyKey": "t", "whenUnsatisfiable": "Hope", "labelSelector": selector}]
    data = changed("spec.topologySpreadConstraints", spread)
    constraint = msgspec.json.decode(data, type=Pod).spec.topology_spread_constraints[0]
    assert constraint.when_unsatisfiable == "Hope"
    assert constraint.label_selector is not None
    assert constraint.label_selector.match_expressions[0].operator == "Like"


def test_a_node() -> None:
    data = b"""{"metadata":{"name":"n"},"spec":{"taints":[{"key":1},{"key":"k"}]},
        "status":{"allocatable":{"cpu":"4","memory":"lots"},"images":[{"sizeBytes":"x"}]}}"""
    node, unread = read_partly(data, Node)
    assert node.status.allocatable == {"cpu": "4"}
    assert [taint.key for taint in node.spec.taints] == ["", "k"]
    assert {each.path for each in unread} == {
        ("spec", "taints", 0, "key"),
        ("status", "allocatable", "memory"),
        ("status", "images", 0, "sizeBytes"),
    }


@pytest.mark.parametrize("data", [b"[]", b"7", b"null", b"{", b""])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_partly(data, Pod)


def test_what_strangers_write_is_told_in_few_words() -> None:
    data = changed("metadata.labels." + "k" * 5000, {"v": "x" * 5000})
    _, [unread] = read_partly(data, Pod)
    assert len(str(unread)) < 400
    _, [deep] = read_partly(
        changed("spec.x", 1)[:-1] + b',"y":' + b"[" * 3000 + b"]" * 3000 + b"}", Pod
    )
    assert str(deep) == "object: nested too deeply"
