"""Questions with whole node objects in them."""

from typing import Any

import pytest

from berth.kube.objects.node import Node
from tests.builders import ZONE, node, pod, requirement, taint, term
from tests.builders import node_affinity as affinity
from tests.service.extender_server.world import Object, World, obj


@pytest.fixture
def world() -> World:
    """Two nodes that were told of; one has a pod."""
    made = World()
    made.harness.put(
        node("n1", cpu=2, zone="a", version="5"),
        node("n2", cpu=2, zone="b", version="6"),
        pod("old", cpu=1, node="n1"),
    )
    return made


def whole(*nodes: Node | Object) -> dict[str, Any]:
    items = [each if isinstance(each, dict) else obj(each) for each in nodes]
    return {"Nodes": {"metadata": {}, "items": items}, "NodeNames": None}


async def test_nodes_come_back_as_they_were_sent(world: World) -> None:
    first = {**obj(node("n1", version="5")), "unheard-of": {"Field": [1.50, None]}}
    second = obj(node("n2", version="6"))

    said = await world.filter(pod(cpu="1500m"), **whole(first, second))

    assert said == {
        "Nodes": {"metadata": {}, "items": [second]},
        "NodeNames": None,
        "FailedNodes": {"n1": "Insufficient cpu"},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }


@pytest.mark.parametrize(
    ("asked", "sent", "left"),
    [
        pytest.param(pod(cpu=1), node("n1", cpu=2, version="5"), True, id="as known"),
        pytest.param(pod(cpu=2), node("n1", cpu=8, version="5"), False, id="same version"),
        pytest.param(pod(cpu=2), node("n1", cpu=3, version="9"), True, id="it has grown"),
        pytest.param(pod(cpu=3), node("n1", cpu=3, version="9"), False, id="its pods are known"),
        pytest.param(
            pod(), node("n1", version="9", taints=[taint("no")]), False, id="it was tainted"
        ),
        pytest.param(
            pod(affinity=affinity(required=[term(requirement(ZONE, "In", "c"))])),
            node("n1", version="9", zone="c"),
            True,
            id="it was labelled",
        ),
        pytest.param(
            pod(affinity=affinity(required=[term(requirement(ZONE, "In", "a"))])),
            node("n1", version="9", zone="c"),
            False,
            id="its old label is gone",
        ),
        pytest.param(pod(cpu=4), node("new", cpu=4), True, id="a node nobody told of is empty"),
        pytest.param(pod(cpu=5), node("new", cpu=4), False, id="and has its limits"),
    ],
)  # fmt: skip
async def test_a_node_is_evaluated_as_it_was_sent(
    world: World, asked: Any, sent: Node, left: bool
) -> None:
    said = await world.filter(asked, **whole(sent))

    assert [item["metadata"]["name"] for item in said["Nodes"]["items"]] == [sent.name] * left
    # The caches are as before.
    assert (await world.filter(pod(cpu=1), "n1", "n2"))["NodeNames"] == ["n1", "n2"]
    assert (await world.filter(pod(cpu=2), "n1", "new"))["NodeNames"] == []
    world.harness.cache.check_invariants()


async def test_whole_nodes_are_ranked_as_they_were_sent(world: World) -> None:
    sent = whole(node("n1", cpu=2, version="5"), node("n2", cpu=2, version="6"), node("n3", cpu=64))

    said = await world.priorities(pod(cpu=1), **sent)

    assert (said["n1"], said["n3"]) == (0, 10)


async def test_without_nodes_of_our_own_those_that_were_sent_are_all_there_are() -> None:
    said = await World().filter(pod(cpu=1), **whole(node("n1"), node("n2", cpu="500m")))

    assert [item["metadata"]["name"] for item in said["Nodes"]["items"]] == ["n1"]


async def test_images_stay_as_known(world: World) -> None:
    """What a version of a node that was sent says of images is neither counted nor remembered."""
    world.harness.put(node("n3", images={"i:latest": 2**30}, version="1"))
    as_known = whole(node("n3", version="1"), node("n2", version="6"))
    newer = whole(node("n3", version="2"), node("n2", version="6", images={"i:latest": 2**30}))
    asked = pod(image="i")

    before = await world.priorities(asked, **as_known)
    meanwhile = await world.priorities(asked, **newer)
    after = await world.priorities(asked, **as_known)

    assert before == meanwhile == after == {"n3": 10, "n2": 0}


async def test_a_node_that_nobody_told_of_has_no_images(world: World) -> None:
    world.harness.put(node("n3", images={"i:latest": 2**30}, version="1"))
    sent = whole(node("n3", version="1"), node("new", images={"i:latest": 2**30}))

    assert await world.priorities(pod(image="i"), **sent) == {"n3": 10, "new": 0}
