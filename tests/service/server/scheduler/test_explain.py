"""``/explain``, asked in process."""

import asyncio
import time
from collections.abc import AsyncIterator
from itertools import count

import httpx
import pytest
from fastapi import FastAPI

from berth.insight.explain.explainer import NODES_PER_TURN
from berth.insight.explain.explanation import Explanation, WorkloadExplanation
from berth.insight.explain.workload import Workload
from berth.kube.objects.meta import OwnerReference
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import GroupKey
from berth.service.server.scheduler.explain import MOST_WAITING, explain_endpoints
from tests.builders import node, pod, taint
from tests.harness import Harness
from tests.insight.explain.asking import explain, explainer
from tests.loop_turns import watched_loop

numbers = count()


@pytest.fixture
async def harness() -> Harness:
    """A scheduler that has placed one pod, and found no place for another."""
    made = Harness()
    made.put(node("n1"), node("n2", cpu=1), pod("small"), pod("big", cpu=16))
    await made.until_idle()
    return made


@pytest.fixture
async def client(harness: Harness) -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    app.include_router(explain_endpoints(explainer(harness)))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://berth") as made:
        yield made


@pytest.mark.parametrize(
    ("query", "limit"),
    [
        pytest.param("", None, id="as many nodes as usual"),
        pytest.param("?nodes=1", 1, id="one node"),
        pytest.param("?nodes=0", 0, id="no nodes"),
        pytest.param("?nodes=all", None, id="all nodes"),
    ],
)
async def test_an_explanation_comes_through_whole(
    client: httpx.AsyncClient, harness: Harness, query: str, limit: int | None
) -> None:
    answer = await client.get(f"/explain/pods/default/big{query}")

    assert answer.status_code == 200
    told = Explanation.model_validate_json(answer.content)
    assert told == explain(harness, "default/big", limit=limit)


async def test_json_is_in_camel_case(client: httpx.AsyncClient) -> None:
    evaluated = (await client.get("/explain/pods/default/big?nodes=1")).json()["evaluation"]

    assert evaluated["numNodes"] == 2
    assert evaluated["nearestMiss"] == {
        "node": "n1",
        "isComplete": True,
        "words": "n1: request 12000m cpu less, or have a larger node",
        "changes": [
            {
                "kind": "RequestLess",
                "what": "cpu",
                "words": "request 12000m cpu less, or have a larger node",
                "amount": 12000,
                "shortfall": 0.75,
                "values": [],
                "removes": False,
            }
        ],
    }


async def test_without_evaluation_no_node_is_looked_at(
    client: httpx.AsyncClient, harness: Harness
) -> None:
    answer = await client.get("/explain/pods/default/big?evaluate=false")

    told = Explanation.model_validate_json(answer.content)
    whole = explain(harness, "default/big")
    assert (told.evaluation, told.state, told.history) == (None, whole.state, whole.history)


async def test_an_unknown_pod_is_refused_with_a_reason(client: httpx.AsyncClient) -> None:
    answer = await client.get("/explain/pods/default/nobody")

    assert answer.status_code == 404
    assert answer.json() == {"detail": "pod default/nobody: not found, or it has finished"}


@pytest.mark.parametrize("nodes", ["-1", "some", ""])
async def test_a_wrong_number_of_nodes_is_refused(client: httpx.AsyncClient, nodes: str) -> None:
    answer = await client.get(f"/explain/pods/default/big?nodes={nodes}")

    assert answer.status_code == 422


async def test_nothing_can_be_written(client: httpx.AsyncClient) -> None:
    assert (await client.post("/explain/pods/default/big")).status_code == 405


async def test_many_nodes_keep_nobody_waiting(harness: Harness, client: httpx.AsyncClient) -> None:
    harness.put(*(node(f"more-{i}", cpu=1) for i in range(1_600)))
    await client.get("/explain/pods/default/big?nodes=all")  # what is made once
    before = time.thread_time()
    async with watched_loop() as turns:
        answer = await client.get("/explain/pods/default/big?nodes=all")
    took = time.thread_time() - before

    assert len(answer.json()["evaluation"]["nodes"]) == 1_602
    assert turns.longest < took / 2


async def test_an_answer_is_true_of_its_beginning(
    harness: Harness, client: httpx.AsyncClient
) -> None:
    harness.put(*(node(f"more-{i}", cpu=1, taints=[taint("a")]) for i in range(100)))
    want = explain(harness, "default/big")
    asked = asyncio.create_task(client.get("/explain/pods/default/big?nodes=all"), name="asked")
    while not asked.done():
        await asyncio.sleep(0)
        number = next(numbers)
        harness.put(node(f"more-{number % 100}", cpu=32, taints=[taint(f"t{number}")]))
        harness.put(pod(f"p{number}", cpu=1, node="n1"))
    told = Explanation.model_validate_json((await asked).content)
    assert told.evaluation == want.evaluation


def replica(name: str, *, template: str = "5d9c", cpu: int = 16, ns: str = "default") -> Pod:
    """A pod of the Deployment ``web``."""
    owner = OwnerReference("apps/v1", "ReplicaSet", f"web-{template}", template, controller=True)
    return pod(name, ns=ns, owner=owner, cpu=cpu, labels={"pod-template-hash": template})


async def test_one_pod_stands_for_those_alike(harness: Harness, client: httpx.AsyncClient) -> None:
    harness.put(
        replica("web-1"),
        replica("web-2"),
        replica("web-3"),
        replica("web-new", template="77af", cpu=32),
        replica("web-placed", cpu=1),
        replica("elsewhere", ns="other"),
        pod("big", cpu=16),
    )
    await harness.until_idle()

    answer = await client.get("/explain/pods/default?workload=deployment/web&nodes=1")

    told = WorkloadExplanation.model_validate_json(answer.content)
    assert (told.num_pods, told.num_pending, told.num_left_out) == (5, 4, 0)
    assert [(each.stands_for, each.workload) for each in told.pods] == [
        (3, "deployment/web"),
        (1, "deployment/web"),
    ]
    assert told.pods[0].summary == (
        "default/web-1 and 2 more of deployment/web are pending: 0/2 nodes are available:"
        " 2 Insufficient cpu; nearest is n1: request 13000m cpu less, or have a larger node"
    )
    assert told.pods[1].summary.startswith("default/web-new is pending: 0/2 nodes are available")
    assert [len(each.evaluation.nodes) for each in told.pods if each.evaluation] == [1, 1]


async def test_pods_that_are_not_alike_are_told_of_up_to_a_limit(
    harness: Harness, client: httpx.AsyncClient
) -> None:
    harness.put(*(replica(f"web-{cpu}", cpu=cpu) for cpu in range(10, 17)))
    await harness.until_idle()

    answer = (await client.get("/explain/pods/default?workload=deploy/web")).json()
    assert (len(answer["pods"]), answer["numLeftOut"]) == (5, 2)


async def test_many_replicas_keep_nobody_waiting(
    harness: Harness, client: httpx.AsyncClient
) -> None:
    """Between two turns of the loop, few of them are looked at."""
    harness.put(replica("web-0", cpu=1, ns="one"))
    harness.put(*(replica(f"web-{i}", cpu=1, ns="many") for i in range(1500)))

    async def ask(namespace: str) -> tuple[httpx.Response, int]:
        async with watched_loop() as turns:
            answer = await client.get(f"/explain/pods/{namespace}?workload=deployment/web&nodes=1")
        return answer, turns.count

    (_, of_one), (answer, of_many) = await ask("one"), await ask("many")

    told = WorkloadExplanation.model_validate_json(answer.content)
    assert [each.stands_for for each in told.pods] == [1500]
    assert told.pods[0].summary.startswith("many/web-0 and 1499 more of deployment/web are pending")
    assert of_many - of_one >= 1500 // NODES_PER_TURN - 1


@pytest.mark.parametrize(
    ("query", "status", "why"),
    [
        pytest.param("", 422, "workload", id="no workload"),
        pytest.param("?workload=web", 422, "must be one of deployment", id="no kind"),
        pytest.param("?workload=node/n1", 422, "must be one of deployment", id="no controller"),
        pytest.param("?workload=pod/big", 422, "must be one of deployment", id="a pod"),
        pytest.param("?workload=job/", 422, "must be one of deployment", id="no name"),
        pytest.param(
            "?workload=sts/db",
            404,
            "statefulset/db in namespace default: neither it nor a pod of it is known",
            id="not known",
        ),
    ],
)
async def test_a_wrong_workload_is_refused(
    client: httpx.AsyncClient, query: str, status: int, why: str
) -> None:
    answer = await client.get(f"/explain/pods/default{query}")

    assert answer.status_code == status
    assert why in answer.text


async def test_one_at_a_time_and_not_too_many_that_wait() -> None:
    asked: list[str] = []
    may_answer = asyncio.Event()

    class Slow:
        async def explain_in_turns(
            self, key: str, *, limit: int | None, evaluates: bool = True
        ) -> None:
            asked.append(f"{key} {limit}")
            await may_answer.wait()

        async def explain_workload_in_turns(
            self, namespace: str, workload: Workload, *, limit: int | None
        ) -> None:
            await self.explain_in_turns(f"{namespace} {workload}", limit=limit)

        async def explain_pod_group_in_turns(self, key: GroupKey, *, limit: int | None) -> None:
            await self.explain_in_turns(str(key), limit=limit)

    app = FastAPI()
    app.include_router(explain_endpoints(Slow()))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://berth") as slow:

        async def ask() -> int:
            return (await slow.get("/explain/pods/default/p")).status_code

        waiting = [asyncio.create_task(ask(), name="waiting") for _ in range(1 + MOST_WAITING)]
        for _ in range(200):
            await asyncio.sleep(0)
        assert asked == ["default/p 20"]
        assert await ask() == 429
        of_all = await slow.get("/explain/pods/default?workload=job/j")
        assert of_all.status_code == 429, "workloads stand in the same line"
        may_answer.set()
        assert set(await asyncio.gather(*waiting)) == {404}
        assert len(asked) == 1 + MOST_WAITING
