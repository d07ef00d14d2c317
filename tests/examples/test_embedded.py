"""The examples as they are used: found in their folders, deciding over the API of a cluster."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.responses import Response

from berth.runtime.clock import RealClock, rfc3339
from berth.runtime.http_server import HttpServer
from berth.service.plugin_sources import KnownPlugins
from tests.tools.up.world import PODS, Object, pod, running, running_world, why_pending

pytestmark = pytest.mark.wall

EXAMPLES = Path(__file__).parents[2] / "examples" / "plugins"


def known(name: str) -> KnownPlugins:
    return KnownPlugins.find(directories=[EXAMPLES / name])


def configuration(name: str) -> Any:
    return yaml.safe_load((EXAMPLES / name / "config.yaml").read_text(encoding="utf-8"))


def member(name: str, *, gang: str, cpu: str = "1") -> Object:
    labels = {"gang.example.com/name": gang, "gang.example.com/size": "3"}
    return pod(name, cpu=cpu, labels=labels)


async def test_a_gang_waits_for_its_last_member_and_then_for_room() -> None:
    async with running_world(
        nodes=2, cpu="2", config=configuration("gang"), plugins=known("gang")
    ) as world:
        await world.create(PODS, member("one-0", gang="one"), member("one-1", gang="one"))
        await world.create(PODS, pod("other"))
        pods = await world.until_running("other")
        assert set(running(pods)) == {"other"}

        await world.create(PODS, member("one-2", gang="one"))
        pods = await world.until_running("one-0", "one-1", "one-2")
        await world.create(PODS, *(member(f"two-{i}", gang="two") for i in range(3)))
        pods = await world.until(
            PODS, lambda pods: all(why_pending(pods[f"two-{i}"]) for i in range(3))
        )

    assert set(running(pods)) == {"other", "one-0", "one-1", "one-2"}
    assert all(why_pending(pods[f"two-{i}"]).startswith("gang two: ") for i in range(3))


async def test_pods_go_where_little_is_done() -> None:
    names: list[str] = []

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        """Answer as metrics-server does: the first node is idle, the others are busy."""
        items = [
            {
                "metadata": {"name": name},
                "timestamp": rfc3339(RealClock().now()),
                "usage": {"cpu": "3900m" if i else "10m", "memory": "7Gi" if i else "100Mi"},
            }
            for i, name in enumerate(names)
        ]
        await Response(json.dumps({"items": items}))(scope, receive, send)

    server = HttpServer(serve)
    await server.start("127.0.0.1", 0)
    config = configuration("load_aware")
    args = config["profiles"][0]["pluginConfig"][0]["args"]
    args |= {"url": server.url, "refreshSeconds": 0.01, "tokenFile": "", "caFile": ""}
    try:
        async with running_world(
            nodes=3, cpu="4", config=config, plugins=known("load_aware")
        ) as world:
            names += sorted(await world.items("/api/v1/nodes"))
            await world.create(PODS, pod("first"))
            await world.until_running("first")
            for _ in range(3):  # each finds what was read for the one before it
                count = len(await world.items(PODS))
                await world.create(PODS, pod(f"p{count}"))
                pods = await world.until_running(f"p{count}")
    finally:
        await server.stop()

    where = Counter(node for name, node in running(pods).items() if name != "first")
    assert where == {names[0]: 3}
