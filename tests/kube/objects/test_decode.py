"""Structs come out of API bytes as tests build them."""

import msgspec
import pytest

from berth.kube.objects.meta import KubeStruct
from berth.kube.objects.node import ContainerImage, Node
from berth.kube.objects.pod import Pod
from tests.builders import (
    affinities,
    container,
    namespace,
    node,
    node_affinity,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    priority_class,
    replica_set,
    replication_controller,
    requirement,
    selector,
    service,
    sidecar,
    spread,
    stateful_set,
    taint,
    term,
    to_json,
    toleration,
)

TERM = term(requirement("zone", "In", "a"))
POD_TERM = pod_term({"app": "web"}, namespace_selector=selector())


@pytest.mark.parametrize(
    "thing",
    [
        node("n1", zone="a", taints=[taint("gpu")], images={"web:1": 5}, features=["X"]),
        pod(
            "web-1",
            cpu=0.5,
            ports=[80],
            owner="web",
            node="n1",
            claims=["data"],
            gates=["later"],
            priority=-5,
            tolerations=[toleration("gpu")],
            spread=[spread(soft=True, selector=selector({"app": "web"}), min_domains=2)],
            affinity=affinities(
                node_affinity(required=[TERM], preferred=[(2, TERM)]),
                pod_affinity(required=[POD_TERM]),
                pod_anti_affinity(preferred=[(3, POD_TERM)]),
            ),
        ),
        pod(containers=[container()], init_containers=[sidecar(cpu=1)], pod_level={"cpu": 3}),
        namespace("team", labels={"tier": "a"}),
        priority_class("high", 1000, is_default=True),
        service("web", selects={"app": "web"}),
        replication_controller("web", selects={"app": "web"}),
        replica_set("web", selects=selector({"app": "web"})),
        stateful_set("web"),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_round_trip(thing: KubeStruct) -> None:
    assert msgspec.json.decode(to_json(thing), type=type(thing)) == thing


def test_to_json_names_the_kind() -> None:
    assert to_json(namespace("x")) == (
        b'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x","uid":"ns-x",'
        b'"resourceVersion":"1","labels":{"kubernetes.io/metadata.name":"x"}}}'
    )


def test_nothing_said_is_what_the_builder_says() -> None:
    assert msgspec.json.decode(b'{"spec":{"containers":[{"name":"main"}]}}', type=Pod) == Pod(
        spec=pod().spec
    )


def test_an_image_without_names() -> None:
    """Images that lost their last tag have null for names, as real nodes report."""
    images = b'[{"names":null,"sizeBytes":3},{"names":["a"]},{}]'
    decoded = msgspec.json.decode(b'{"status":{"images":%s}}' % images, type=Node).status.images
    assert [(image.names, image.size_bytes) for image in decoded] == [((), 3), (("a",), 0), ((), 0)]
    assert ContainerImage().names == ()
