"""``/debug/cluster``: all nodes at once."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.service.server.scheduler.debug.shared_answers import REST_SECONDS
from tests.builders import HOSTNAME, ZONE, node, pod, taint
from tests.harness import Harness
from tests.insight.explain.asking import explain
from tests.service.server.scheduler.debug.world import application, client, get

NODES = (
    node("n1", cpu=4, zone="a", allocatable={"example.com/gpu": 2}),
    node("n2", cpu=8, zone="b", taints=[taint("dedicated", "gpu")], unschedulable=True),
    node("n3", cpu=2, labels={"disk": "ssd"}),
    node("n4", cpu=1, zone="a", taints=[taint("dedicated", "gpu")]),
)


def harness_of(*objects: Node | Pod) -> Harness:
    harness = Harness()
    harness.put(*objects)
    return harness


async def ask(
    app: FastAPI, path: str, *, headers: Mapping[str, str] | None = None
) -> httpx.Response:
    async with client(app) as asking:
        return await asking.get(path, headers=headers)


async def test_all_nodes_without_groups() -> None:
    told = await get(harness_of(*NODES), "/debug/cluster")
    assert told.pop("version")
    assert told == {
        "names": ["n1", "n2", "n3", "n4"],
        "groupBy": "",
        "groups": [None],
        "group": [0, 0, 0, 0],
        "taintSets": [[], ["dedicated=gpu:NoSchedule"]],
        "taintSet": [0, 1, 0, 1],
        "unschedulable": [1],
        "resources": ["pods", "cpu", "memory", "ephemeral-storage", "example.com/gpu"],
    }


@pytest.mark.parametrize(
    ("key", "groups", "group"),
    [
        pytest.param(ZONE, ["a", "b", None], [0, 1, 2, 0], id="some nodes lack the label"),
        pytest.param("disk", [None, "ssd"], [0, 0, 1, 0], id="most nodes lack it"),
        pytest.param(HOSTNAME, ["n1", "n2", "n3", "n4"], [0, 1, 2, 3], id="all values differ"),
    ],
)
async def test_nodes_by_label(key: str, groups: list[str | None], group: list[int]) -> None:
    told = await get(harness_of(*NODES), f"/debug/cluster?groupBy={key}")
    assert (told["groupBy"], told["groups"], told["group"]) == (key, groups, group)


async def test_no_nodes() -> None:
    told = await get(Harness(), "/debug/cluster")
    assert (told["names"], told["group"], told["taintSets"]) == ([], [], [])


async def test_labels_with_the_number_of_their_values() -> None:
    told = await get(harness_of(*NODES), "/debug/cluster/labels")
    assert told["items"] == [
        {"key": "disk", "values": 1},
        {"key": HOSTNAME, "values": 4},
        {"key": ZONE, "values": 2},
    ]


@pytest.mark.parametrize(
    ("resource", "allocatable", "requested"),
    [
        pytest.param("cpu", [4000, 8000, 2000, 1000], [1500, 0, 0, 250], id="cpu"),
        pytest.param("pods", [110, 110, 110, 110], [2, 0, 0, 1], id="pods"),
        pytest.param("example.com/gpu", [2, 0, 0, 0], [0, 0, 0, 0], id="an extended resource"),
    ],
)
async def test_use(resource: str, allocatable: list[int], requested: list[int]) -> None:
    running = [
        pod("a", cpu="500m", node="n1"),
        pod("b", cpu=1, node="n1"),
        pod("c", cpu="250m", node="n4"),
    ]
    told = await get(harness_of(*NODES, *running), f"/debug/cluster/use?resource={resource}")
    assert (told["resource"], told["allocatable"], told["requested"]) == (
        resource,
        allocatable,
        requested,
    )


async def test_free_slots_are_left_out() -> None:
    harness = harness_of(*NODES)
    harness.cache.remove_node("n2")

    nodes = await get(harness, "/debug/cluster")
    use = await get(harness, "/debug/cluster/use?resource=cpu")

    assert nodes["names"] == ["n1", "n3", "n4"]
    assert use["allocatable"] == [4000, 2000, 1000]
    assert nodes["version"] == use["version"]


async def test_filters_by_node() -> None:
    told = await get(
        harness_of(*NODES, pod("big", cpu=3, node_selector={ZONE: "a"})),
        "/debug/cluster/filters?pod=default/big",
    )
    assert told.pop("version")
    of_node = [told["pluginSets"][each] for each in told.pop("pluginSet")]
    assert of_node == [
        [],
        ["NodeUnschedulable", "TaintToleration", "NodeAffinity"],
        ["NodeAffinity", "NodeResourcesFit"],
        ["TaintToleration", "NodeResourcesFit"],
    ]
    assert (told["pod"], told["numFeasible"], told["message"]) == ("default/big", 1, "")


HUGE = pod("p", cpu=99)
FILTERED = [
    pytest.param((HUGE,), id="it is too large for all"),
    pytest.param((pod("p"),), id="it fits on most"),
    pytest.param((pod("p", cpu=1, tolerations=[]), pod("q", cpu=4, node="n1")), id="n1 is full"),
    pytest.param(
        (pod("p", cpu=3), pod("first", cpu=3, priority=9, nominated="n1")),
        id="room is kept for a nominated pod",
    ),
    pytest.param((pod("p", cpu=3, nominated="n1"),), id="it is nominated itself"),
    pytest.param((pod("p", claims=["missing"]),), id="PreFilter rejects it as such"),
]


@pytest.mark.parametrize("pods", FILTERED)
async def test_filters_are_those_that_an_explanation_names(pods: tuple[Pod, ...]) -> None:
    harness = harness_of(*NODES, *pods)
    told = await get(harness, "/debug/cluster/filters?pod=default/p")

    evaluation = explain(harness, "default/p").evaluation
    assert evaluation is not None
    expected = {
        verdict.node: {verdict.plugin, *(obstacle.plugin for obstacle in verdict.obstacles)} - {""}
        for verdict in evaluation.nodes
    }
    of_node = [told["pluginSets"][each] for each in told["pluginSet"]]
    names = [each.name for each in NODES]
    assert {name: {*found} for name, found in zip(names, of_node, strict=True)} == expected
    assert told["numFeasible"] == evaluation.num_feasible
    assert told["message"] == ("" if evaluation.num_feasible else evaluation.message)


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        pytest.param("?groupBy=nothing", 404, "no node has the label 'nothing'", id="a label"),
        pytest.param("/use?resource=tpu", 404, "no node has 'tpu'", id="a resource"),
        pytest.param("/filters?pod=default/x", 404, "'default/x': not found", id="a pod"),
        pytest.param("/filters?pod=default/a", 404, "it has the node n1", id="not pending"),
        pytest.param("/filters?pod=default/else", 404, "for the scheduler other", id="foreign"),
        pytest.param("/filters?pod=x", 422, "pattern", id="not the name of a pod"),
        pytest.param("/filters", 422, "Field required", id="no pod"),
        pytest.param("?group=zone", 422, "There is no such parameter", id="another parameter"),
    ],
)
async def test_refusals(path: str, status: int, words: str) -> None:
    harness = harness_of(*NODES, pod("a", node="n1"), pod("else", scheduler="other"))
    answer = await ask(application(harness), f"/debug/cluster{path}")
    assert answer.status_code == status
    assert words in answer.text


async def test_what_has_not_changed_is_not_sent_again() -> None:
    app = application(harness_of(*NODES))
    first = await ask(app, "/debug/cluster")
    for known in (first.headers["ETag"], f'"x", W/{first.headers["ETag"]}', "*"):
        again = await ask(app, "/debug/cluster", headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["ETag"] == first.headers["ETag"]
    other = await ask(app, "/debug/cluster", headers={"If-None-Match": '"other"'})
    assert other.json() == first.json()


def _use_of_n1(told: Any) -> int:
    requested: int = told.json()["requested"][0]
    return requested


async def test_an_answer_is_made_again_when_something_has_changed_and_it_has_rested() -> None:
    harness = harness_of(*NODES)
    app = application(harness)
    first = await ask(app, "/debug/cluster/use")

    harness.put(pod("a", cpu=1, node="n1"))
    soon = await ask(app, "/debug/cluster/use")
    harness.clock.advance(REST_SECONDS)
    later = await ask(app, "/debug/cluster/use")

    assert [_use_of_n1(told) for told in (first, soon, later)] == [0, 0, 1000]
    assert first.json()["version"] == later.json()["version"]
    assert first.headers["ETag"] == soon.headers["ETag"] != later.headers["ETag"]


async def test_the_version_changes_with_nodes() -> None:
    harness = harness_of(*NODES)
    app = application(harness)
    before = (await ask(app, "/debug/cluster")).json()

    harness.put(node("n5"))
    harness.clock.advance(REST_SECONDS)
    after = (await ask(app, "/debug/cluster")).json()

    assert after["names"] == [*before["names"], "n5"]
    assert after["version"] != before["version"]
