"""A reflector of typed pods over a real connection, across a break and an expired version."""

import asyncio
import random

import msgspec
import pytest
from aiohttp import web

from berth.kube.informer.reflector import Reflector
from berth.kube.objects.pod import Pod
from berth.runtime.clock import RealClock
from tests.builders import pod
from tests.kube.client.serving import serving
from tests.kube.informer.scripted import error, initial_end, line


class LastPods:
    """A handler that knows when it was told of a pod on the node ``last``."""

    def __init__(self) -> None:
        self.nodes: dict[str, str] = {}
        self.done = asyncio.Event()

    def on_add(self, pod: Pod) -> None:
        self.nodes[pod.key] = pod.spec.node_name
        if pod.spec.node_name == "last":
            self.done.set()

    def on_update(self, old: Pod, new: Pod) -> None:
        assert self.nodes[old.key] == old.spec.node_name
        self.on_add(new)

    def on_delete(self, pod: Pod) -> None:
        del self.nodes[pod.key]


@pytest.mark.wall
async def test_pods_are_followed_across_breaks() -> None:
    first = [line("ADDED", pod("a", version="1")), line("ADDED", pod("b", version="2"))]
    answers = [
        [*first, initial_end(3), line("MODIFIED", pod("a", version="4", node="n1"))],
        [error(410, "Expired", "too old")],
        [line("ADDED", pod("a", version="9", node="last")), initial_end(9)],
    ]
    versions = []
    handler = LastPods()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        versions.append(request.query.get("resourceVersion"))
        response = web.StreamResponse()
        await response.prepare(request)
        for each in answers.pop(0):
            await response.write(each + b"\n")
        if not answers:
            await handler.done.wait()
        return response

    async with serving(handle) as client:
        reflector = Reflector(
            client,
            "/api/v1/pods",
            decode=msgspec.json.Decoder(Pod).decode,
            handler=handler,
            clock=RealClock(),
            rng=random.Random(1),
            on_malformed=lambda key, raw, exc: pytest.fail(f"{key}: {exc}"),
        )
        running = asyncio.create_task(reflector.run(), name="reflector")
        await asyncio.wait_for(handler.done.wait(), timeout=60)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert handler.nodes == {"default/a": "last"}
    assert versions == [None, "4", None]
