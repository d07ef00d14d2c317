"""``/debug/shadow``: what a shadow has found."""

import httpx
import pytest

from berth.service.server.application import Application
from berth.service.server.scheduler.debug.endpoints import debug_endpoints
from tests.builders import node, pod, taint
from tests.harness import Harness
from tests.insight.shadow.watching import World
from tests.service.server.scheduler.debug.world import application, client, state


async def world() -> World:
    """Comparisons 1 to 3: one pod on the only node left, one that fits nowhere, one tie."""
    made = World()
    made.put(node("n1"), node("n2"), node("n3", taints=[taint("gpu")]))
    made.put(pod("a", priority=3, node_selector={"kubernetes.io/hostname": "n1"}))
    made.put(pod("b", priority=2, cpu=99), pod("c", priority=1))
    await made.run()
    return made


def asking(made: World) -> httpx.AsyncClient:
    app = Application()
    app.include_router(debug_endpoints(state(made.there, shadow=made.shadow)))
    return client(app)


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        pytest.param("", [3, 2, 1], id="all, the newest first"),
        pytest.param("pod=default/a", [1], id="of a pod"),
        pytest.param("node=n1", [1], id="with a node"),
        pytest.param("result=nowhere", [2], id="with a result"),
        pytest.param("plugin=NodeResourcesFit", [], id="decided by a plugin"),
        pytest.param("profile=other", [], id="of no such profile"),
        pytest.param("differing=true", [], id="that differ"),
        pytest.param("limit=2", [3, 2], id="a page"),
    ],
)
async def test_filters(query: str, numbers: list[int]) -> None:
    async with asking(await world()) as client:
        answer = await client.get(f"/debug/shadow?{query}")

    assert answer.status_code == 200, answer.text
    assert [item["number"] for item in answer.json()["items"]] == numbers


async def test_pages_follow_each_other() -> None:
    async with asking(await world()) as client:
        first = (await client.get("/debug/shadow?limit=2")).json()
        rest = (await client.get(f"/debug/shadow?limit=2&continue={first['continue']}")).json()

    assert [item["number"] for item in rest["items"]] == [1]
    assert rest["continue"] == ""


async def test_the_summary_counts_all() -> None:
    async with asking(await world()) as client:
        summary = (await client.get("/debug/shadow?limit=1")).json()["summary"]

    assert summary["compared"] == 3
    assert summary["agreement"] == 1
    assert summary["waiting"] == 1
    assert summary["results"]["nowhere"] == 1


async def test_other_processes_have_none() -> None:
    async with client(application(Harness())) as asking:
        answer = await asking.get("/debug/shadow")

    assert answer.status_code == 404
    assert answer.json()["detail"] == "this process is not a shadow: `berth run --shadow` is one"
