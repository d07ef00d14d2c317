"""A scheduler, an API server and an extender that talk over real sockets."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from berth.runtime.addresses import LOOPBACK
from berth.runtime.certificates import KeyPair, self_signed, server_context
from berth.runtime.clock import RealClock
from berth.runtime.http_server import HttpServer
from berth.scheduler.config.types import Extender as Config
from berth.scheduler.config.types import ExtenderTLSConfig
from berth.scheduler.extender.build import build_extenders
from berth.scheduler.extender.errors import ExtenderError
from berth.scheduler.framework.pod_info import PodInfo
from tests.builders import node
from tests.builders import pod as made_pod
from tests.scheduler.extender.fakes import Calls
from tests.tools.up.world import PODS, World, pod, running_world

pytestmark = pytest.mark.wall


class ExtenderService:
    """An extender with a mind of its own: it keeps pods to nodes with an even number.

    Slow enough for the cluster to move on while it thinks. It binds by itself, as ``world``.
    """

    def __init__(self) -> None:
        self.world: World | None = None
        self.seen: dict[str, list[Any]] = {"filter": [], "prioritize": [], "bind": []}
        self._verbs = {"filter": self.filter, "prioritize": self.prioritize, "bind": self.bind}
        self.application = Starlette(routes=[Route("/v1/{verb}", self._call, methods=["POST"])])

    async def _call(self, request: Request) -> JSONResponse:
        verb, asked = request.path_params["verb"], await request.json()
        self.seen[verb].append(asked)
        return JSONResponse(await self._verbs[verb](asked))

    async def filter(self, asked: Any) -> Any:
        await asyncio.sleep(0.005)
        items = asked["Nodes"]["items"]
        left = [item for item in items if int(item["metadata"]["name"][-1]) % 2 == 0]
        failed = {i["metadata"]["name"]: "odd" for i in items if i not in left}
        return {"Nodes": {"items": left}, "NodeNames": None, "FailedNodes": failed, "Error": ""}

    async def prioritize(self, asked: Any) -> Any:
        return [{"Host": i["metadata"]["name"], "Score": 5} for i in asked["Nodes"]["items"]]

    async def bind(self, asked: Any) -> Any:
        assert self.world is not None
        path = f"/api/v1/namespaces/{asked['PodNamespace']}/pods/{asked['PodName']}/binding"
        metadata = {"name": asked["PodName"], "uid": asked["PodUID"]}
        target = {"kind": "Node", "name": asked["Node"]}
        await self.world.ask("POST", path, {"metadata": metadata, "target": target})
        return {"Error": ""}


@asynccontextmanager
async def serving(application: Any, *, pair: KeyPair | None = None) -> AsyncIterator[str]:
    server = HttpServer(application, tls=None if pair is None else server_context(pair))
    await server.start(LOOPBACK, 0)
    try:
        yield server.url
    finally:
        await server.stop()


def requests_of(found: Mapping[str, Any], *, on: str) -> int:
    """Return the milli-CPUs that pods of 500m each take of a node."""
    return sum(500 for p in found.values() if p["spec"].get("nodeName") == on)


async def test_pods_go_where_the_extender_wants_them_and_no_node_is_overcommitted() -> None:
    service = ExtenderService()
    async with serving(service.application) as url:
        extender = Config(
            url_prefix=f"{url}/v1/",
            filter_verb="filter",
            prioritize_verb="prioritize",
            bind_verb="bind",
            weight=1,
        )
        async with running_world(nodes=6, cpu="2", extenders=(extender,)) as world:
            service.world = world
            names = [f"p{i:02}" for i in range(12)]
            await world.create(PODS, *(pod(name, cpu="500m") for name in names))
            found = await world.until(
                PODS, lambda all_: all(p["spec"].get("nodeName") for p in all_.values())
            )
            await world.create(PODS, pod("one-more", cpu="500m"))
            await world.until(PODS, lambda all_: "odd" in told(all_["one-more"]))

            nodes = {p["spec"]["nodeName"] for p in found.values()}
            assert {int(name[-1]) % 2 for name in nodes} == {0}
            assert {requests_of(found, on=name) for name in nodes} == {2000}
    assert sorted(asked["PodName"] for asked in service.seen["bind"]) == names
    first = service.seen["filter"][0]
    assert first["NodeNames"] is None
    assert first["Pod"]["spec"]["containers"][0]["image"] == "i"
    assert first["Pod"]["spec"]["terminationGracePeriodSeconds"] == 30
    assert "nodeInfo" in first["Nodes"]["items"][0]["status"]


def told(one: Any) -> str:
    conditions = (one.get("status") or {}).get("conditions") or ()
    return "".join(c.get("message") or "" for c in conditions if c["type"] == "PodScheduled")


# TLS.


async def grant(request: Request) -> JSONResponse:
    return JSONResponse({"NodeNames": (await request.json())["NodeNames"]})


def pair(name: str) -> KeyPair:
    return self_signed(["an.extender"], now=datetime.now(UTC), name=name)


@pytest.mark.parametrize(
    ("tls", "trusted"),
    [
        pytest.param({}, True, id="no authority: it is not verified"),
        pytest.param({"server_name": "an.extender", "ca": "its own"}, True, id="verified"),
        pytest.param({"ca": "its own"}, False, id="it goes by another name"),
        pytest.param(
            {"server_name": "an.extender", "ca": "another"}, False, id="by another authority"
        ),
    ],
)
async def test_tls(tls: dict[str, str], trusted: bool) -> None:
    own = pair("its own")
    authorities = {"its own": own.certificate, "another": pair("another").certificate, "": b""}
    application = Starlette(routes=[Route("/filter", grant, methods=["POST"])])
    async with serving(application, pair=own) as url:
        config = Config(
            url_prefix=url,
            filter_verb="filter",
            node_cache_capable=True,
            enable_https=True,
            tls_config=ExtenderTLSConfig(
                server_name=tls.get("server_name", ""), ca_data=authorities[tls.get("ca", "")]
            ),
        )
        extenders = build_extenders([config], clock=RealClock(), observer=Calls())
        (extender,) = extenders
        try:
            if trusted:
                answer = await extender.filter(PodInfo(made_pod("p")), [node("a")])
                assert answer.nodes == ["a"]
            else:
                with pytest.raises(ExtenderError, match="certificate verify failed: "):
                    await extender.filter(PodInfo(made_pod("p")), [node("a")])
        finally:
            await extenders.close()
