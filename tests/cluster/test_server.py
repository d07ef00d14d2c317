"""The server around the resources: version, health, sockets."""

import asyncio

import httpx
import msgspec
import pytest

from berth.cluster.http.requests import BODY_LIMIT
from berth.runtime.clock import FakeClock
from tests.cluster.serving import Serving, pod

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def serving() -> Serving:
    return Serving()


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_health(serving: Serving, path: str) -> None:
    response = await serving.http.get(path)
    assert (response.status_code, response.text) == (200, "ok")


async def test_the_version_is_one_that_kubectl_reads(serving: Serving) -> None:
    version = await serving.get("/version")
    assert (version["major"], version["minor"]) == ("1", "37")
    assert version["gitVersion"] == "v1.37.0+berth"


async def test_everything_is_allowed_where_nobody_is_asked_who_he_is(serving: Serving) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    review = {"spec": {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}}
    code, answer = await serving.request("POST", path, review, authorization="Bearer nonsense")
    assert (code, answer["status"]) == (201, {"allowed": True})


async def test_methods_that_a_path_does_not_have(serving: Serving) -> None:
    for method, path in (("PUT", "/version"), ("PUT", PODS), ("POST", f"{PODS}/p")):
        code, answer = await serving.request(method, path)
        assert (code, answer["reason"]) == (405, "MethodNotAllowed")


@pytest.mark.wall
async def test_a_watch_over_a_socket() -> None:
    serving = Serving()
    port = await serving.server.start("127.0.0.1", 0)
    base = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(base_url=base) as client:
        async with client.stream("GET", f"{PODS}?watch=1") as response:
            lines = response.aiter_lines()
            created = await client.post(PODS, json=pod("p"))
            event = msgspec.json.decode(await anext(lines))
            assert event == {"type": "ADDED", "object": created.json()}
            await serving.server.stop()
            assert [line async for line in lines] == []
        with pytest.raises(httpx.ConnectError):
            await client.get("/version")


class BrokenClock(FakeClock):
    async def sleep(self, seconds: float) -> None:
        raise OSError("the clock has stopped")


@pytest.mark.wall
async def test_who_runs_the_server_learns_of_its_death() -> None:
    serving = Serving(clock=BrokenClock())
    await serving.server.start("127.0.0.1", 0)
    with pytest.raises(OSError, match="the clock has stopped"):
        await serving.server.run()
    await serving.server.stop()


@pytest.mark.wall
async def test_running_ends_with_the_server(serving: Serving) -> None:
    await serving.server.start("127.0.0.1", 0)
    running = asyncio.create_task(serving.server.run())
    await serving.server.stop()
    await running


@pytest.mark.wall
async def test_the_connection_survives_a_body_that_is_too_long(serving: Serving) -> None:
    port = await serving.server.start("127.0.0.1", 0)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        as_json = {"Content-Type": "application/json"}
        answer = await client.post(PODS, content=bytes(BODY_LIMIT + 1), headers=as_json)
        assert answer.status_code == 413
        assert (await client.get("/healthz")).text == "ok"
    await serving.server.stop()


@pytest.mark.wall
async def test_a_client_that_goes_away_ends_its_watch() -> None:
    serving = Serving()
    port = await serving.server.start("127.0.0.1", 0)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        async with client.stream("GET", f"{PODS}?watch=1") as response:
            assert response.status_code == 200
        assert (await client.get("/healthz")).text == "ok"
    await serving.server.stop()


@pytest.mark.wall
async def test_an_address_that_is_taken(serving: Serving) -> None:
    port = await serving.server.start("127.0.0.1", 0)
    with pytest.raises(OSError, match="in use"):
        await Serving().server.start("127.0.0.1", port)
    await serving.server.stop()
