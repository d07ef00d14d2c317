"""The extender endpoints, asked in process: paths, statuses, sizes, compression, metrics."""

import gzip
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest
from prometheus_client import CollectorRegistry

from berth.runtime.metrics import metrics_text
from berth.scheduler.metrics.recorders import ExtenderServerMetrics
from berth.service.server.extender.application import extender_application
from berth.service.server.extender.endpoints import ExtenderEndpoints
from berth.service.server.health import extender_probes
from tests.builders import node, pod
from tests.harness import Harness
from tests.service.extender_server.world import World, obj

LIMIT = 100_000
TWO_PROFILES = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {"schedulerName": "whole"},
        {
            "schedulerName": "no-fit",
            "plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}},
        },
    ],
}
QUESTION = {"Pod": obj(pod(cpu=8)), "Nodes": None, "NodeNames": ["n1"]}


class Served:
    """The endpoints over a harness with one small node."""

    def __init__(self) -> None:
        self.world = World(Harness(config=TWO_PROFILES))
        self.world.harness.put(node("n1", cpu=1))
        self.registry = CollectorRegistry()
        self.is_ready, self.is_terminating = True, False
        endpoints = ExtenderEndpoints(
            self.world.answers,
            is_ready=lambda: self.is_ready,
            metrics=ExtenderServerMetrics(self.registry),
            clock=self.world.harness.clock,
            max_body_bytes=LIMIT,
        )
        probes = extender_probes(
            is_synced=lambda: self.is_ready, is_terminating=lambda: self.is_terminating
        )
        app = extender_application(endpoints.router(), probes=probes)
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://extender"
        )

    async def post(self, path: str, content: bytes, **headers: str) -> httpx.Response:
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        said.setdefault("content-type", "application/json")
        return await self.client.post(path, content=content, headers=said)

    def metrics(self) -> list[str]:
        """Return the samples, without buckets and sums."""
        lines = metrics_text(self.registry, "")[0].decode().splitlines()
        return [x for x in lines if x[0] != "#" and "_bucket" not in x and "_sum" not in x]


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    made = Served()
    async with made.client:
        yield made


@pytest.mark.parametrize(
    ("path", "left"),
    [
        pytest.param("/extender/filter", [], id="the first profile"),
        pytest.param("/extender/whole/filter", [], id="by its name"),
        pytest.param("/extender/no-fit/filter", ["n1"], id="another"),
    ],
)
async def test_the_path_says_which_profile_answers(
    served: Served, path: str, left: list[str]
) -> None:
    answer = await served.post(path, msgspec.json.encode(QUESTION))

    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json()["NodeNames"] == left


@pytest.mark.parametrize(
    ("verb", "question", "want"),
    [
        pytest.param("prioritize", QUESTION, [{"Host": "n1", "Score": 0}], id="prioritize"),
        pytest.param(
            "preempt",
            {"Pod": obj(pod()), "NodeNameToMetaVictims": {}},
            {"NodeNameToMetaVictims": {}},
            id="preempt",
        ),
        pytest.param(
            "bind",
            {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "n1"},
            {"Error": "pod default/p with uid u does not exist"},
            id="bind",
        ),
    ],
)
async def test_every_verb(served: Served, verb: str, question: Any, want: Any) -> None:
    answer = await served.post(f"/extender/{verb}", msgspec.json.encode(question))

    assert (answer.status_code, answer.json()) == (200, want)


@pytest.mark.parametrize(
    ("path", "content", "headers", "status", "detail"),
    [
        pytest.param(
            "/extender/none/filter", b"", {}, 404,
            "profile 'none' does not exist; there are: no-fit, whole", id="no such profile",
        ),
        pytest.param(
            "/extender/filter", b'{"Pod":', {}, 400, "body: Input data was truncated", id="no JSON"
        ),
        pytest.param(
            "/extender/filter", b" " * (LIMIT + 1), {}, 413,
            "body is larger than 100000 bytes", id="too large",
        ),
        pytest.param(
            "/extender/filter", gzip.compress(b" " * (LIMIT + 1)), {"content_encoding": "gzip"},
            413, "body is larger than 100000 bytes", id="too large once decompressed",
        ),
        pytest.param(
            "/extender/filter", b"", {"content_encoding": "br"}, 415,
            "Content-Encoding 'br' is not supported, only gzip is", id="compressed otherwise",
        ),
        pytest.param(
            "/extender/filter", b"{}", {"content_encoding": "gzip"}, 400,
            "body is not valid gzip: Error -3 while decompressing data: incorrect header check",
            id="not compressed",
        ),
        pytest.param(
            "/extender/filter", gzip.compress(b"{}")[:-4], {"content_encoding": "gzip"}, 400,
            "body is not valid gzip: it ends too early", id="cut off",
        ),
    ],
)  # fmt: skip
async def test_refusals(
    served: Served,
    path: str,
    content: bytes,
    headers: dict[str, str],
    status: int,
    detail: str,
) -> None:
    answer = await served.post(path, content, **headers)

    assert (answer.status_code, answer.json()) == (status, {"detail": detail})


async def test_nothing_is_answered_before_the_state_is_known(served: Served) -> None:
    served.is_ready = False
    answer = await served.post("/extender/filter", msgspec.json.encode(QUESTION))

    want = {"detail": "the state of the cluster is not known yet"}
    assert (answer.status_code, answer.json()) == (503, want)
    assert (await served.client.get("/readyz")).text == (
        "[+]shutdown ok\n[-]sched-handler-sync failed: reason withheld\nreadyz check failed\n"
    )
    assert (await served.client.get("/livez")).status_code == 200


async def test_what_is_about_to_end_is_not_ready(served: Served) -> None:
    assert (await served.client.get("/readyz")).status_code == 200
    served.is_terminating = True
    assert (await served.client.get("/readyz")).status_code == 500
    assert (await served.client.get("/healthz?verbose")).text == (
        "[+]ping ok\nhealthz check passed\n"
    )


async def test_questions_may_be_compressed(served: Served) -> None:
    body = gzip.compress(msgspec.json.encode(QUESTION))
    answer = await served.post("/extender/no-fit/filter", body, content_encoding="gzip")

    assert answer.json()["NodeNames"] == ["n1"]


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        pytest.param("gzip", "gzip", id="as kube-scheduler says"),
        pytest.param("br;q=1.0, gzip;q=0.5", "gzip", id="among others"),
        pytest.param("gzip;q=0", None, id="refused"),
        pytest.param("identity", None, id="another"),
    ],
)
async def test_large_answers_are_compressed_for_those_who_take_it(
    served: Served, accepted: str, coding: str | None
) -> None:
    names = [f"node-{i:05}" for i in range(6_000)]
    question = msgspec.json.encode({**QUESTION, "NodeNames": names})
    answer = await served.post("/extender/filter", question, accept_encoding=accepted)

    assert answer.headers.get("content-encoding") == coding
    assert list(answer.json()["FailedAndUnresolvableNodes"]) == names


async def test_small_answers_are_not_compressed(served: Served) -> None:
    answer = await served.post(
        "/extender/filter", msgspec.json.encode(QUESTION), accept_encoding="gzip"
    )

    assert "content-encoding" not in answer.headers


async def test_metrics(served: Served) -> None:
    two = msgspec.json.encode({**QUESTION, "NodeNames": ["n1", "n2"]})
    await served.post("/extender/no-fit/filter", two)
    await served.post("/extender/filter", b"{")
    await served.post("/extender/nobody/filter", two)

    assert served.metrics() == [
        'berth_extender_server_duration_seconds_count'
        '{code="200",profile="no-fit",verb="filter"} 1.0',
        'berth_extender_server_duration_seconds_count'
        '{code="400",profile="whole",verb="filter"} 1.0',
        'berth_extender_server_nodes_asked_total{profile="no-fit",verb="filter"} 2.0',
        'berth_extender_server_nodes_passed_total{profile="no-fit",verb="filter"} 1.0',
    ]  # fmt: skip


async def test_the_endpoints_are_described(served: Served) -> None:
    paths = (await served.client.get("/openapi.json")).json()["paths"]

    verbs = ("filter", "prioritize", "preempt", "bind")
    described = {path for path in paths if path.startswith("/extender")}
    assert described == {f"/extender/{v}" for v in verbs} | {
        f"/extender/{{profile}}/{v}" for v in verbs
    }
    said = paths["/extender/bind"]["post"]
    assert said["requestBody"]["content"]["application/json"]["schema"]["required"] == [
        "PodNamespace", "PodName", "PodUID", "Node",
    ]  # fmt: skip
    assert said["responses"]["200"]["content"]["application/json"]["schema"]["properties"] == {
        "Error": {"type": "string", "default": ""}
    }
