"""What a shadow cannot do, whatever goes wrong in it: write to the API server, have pods bound."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from berth.kube.client.errors import FencedError
from berth.kube.objects.meta import Condition
from berth.runtime.clock import RealClock
from berth.scheduler.config.load import from_object
from berth.scheduler.config.types import API_VERSION, KIND
from berth.scheduler.extender.errors import ExtenderError
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.profile.build import args_models
from berth.service.leaderelection.lease_lock import LeaseLock
from berth.service.scheduler_service import SchedulerService
from berth_plugins.registry import IN_TREE
from tests.builders import pod
from tests.kube.client.serving import serving

CLOCK = RealClock()
POD = pod("asked", uid="asked")
POD_PATH = "/api/v1/namespaces/default/pods/asked"
NO: Any = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="no")


class Writes:
    """What arrives at an API server, and a scheduler that sends it what is asked of it."""

    def __init__(self) -> None:
        self.arrived: list[tuple[str, str]] = []
        self.service: SchedulerService

    async def answer(self, request: web.BaseRequest) -> web.Response:
        if request.method != "GET":
            self.arrived.append((request.method, request.path))
        return web.json_response({"metadata": {"name": "asked", "uid": "asked"}, "spec": {}})

    async def until(self, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.arrived) < count:
                await CLOCK.sleep(0.01)


@asynccontextmanager
async def scheduler(*, shadows: bool) -> AsyncIterator[Writes]:
    """Run what writes, of a scheduler or of a shadow, which never starts it."""
    writes = Writes()
    extender = {"urlPrefix": "http://127.0.0.1:1", "bindVerb": "bind"}
    config = from_object(
        {"apiVersion": API_VERSION, "kind": KIND, "extenders": [extender]},
        source="test",
        args_models=args_models(IN_TREE),
    )
    async with serving(writes.answer) as client:
        writes.service = SchedulerService(
            client, config, clock=CLOCK, rng=random.Random(1), shadows=shadows
        )
        known: Any = writes.service.core.outside.pods
        known[POD.key] = POD
        running = asyncio.create_task(writes.service.lanes.run())
        yield writes
        running.cancel()
        await writes.service.extenders.close()


async def renew(service: SchedulerService) -> None:
    lock = LeaseLock(
        service.client, namespace="kube-system", name="kube-scheduler",
        component="default-scheduler", clock=service.clock,
    )  # fmt: skip
    await lock.create({"holderIdentity": "me"}, timeout=5.0)  # type: ignore[arg-type]


def api_of(service: SchedulerService) -> Any:
    return service.core.outside.api


ACTS: list[Any] = [
    pytest.param(
        lambda service: api_of(service).bind(PodInfo(POD), "n1"),
        [("POST", f"{POD_PATH}/binding")],
        id="a Binding",
    ),
    pytest.param(
        lambda service: api_of(service).evict(POD, NO),
        [("PATCH", f"{POD_PATH}/status"), ("DELETE", POD_PATH)],
        id="an eviction",
    ),
    pytest.param(
        lambda service: api_of(service).patch_pod_status(POD, {"phase": "Pending"}),
        [("PATCH", f"{POD_PATH}/status")],
        id="a status",
    ),
    pytest.param(
        renew,
        [("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")],
        id="a Lease",
    ),
    pytest.param(
        lambda service: service.client.unlimited().request("PUT", POD_PATH, body=b"{}"),
        [("PUT", POD_PATH)],
        id="without the rate limit",
    ),
    pytest.param(
        lambda service: service.client.fenced(lambda: True).request("PUT", POD_PATH, body=b"{}"),
        [("PUT", POD_PATH)],
        id="behind a fence of its own, which is open",
    ),
]


@pytest.mark.wall
@pytest.mark.parametrize(("act", "sent"), ACTS)
async def test_no_write_leaves_a_shadow(
    act: Callable[[SchedulerService], Awaitable[object]], sent: list[tuple[str, str]]
) -> None:
    async with scheduler(shadows=True) as shadow:
        with pytest.raises(FencedError, match="not sent, a shadow only reads"):
            await act(shadow.service)
        await shadow.service.client.request("GET", POD_PATH)
    assert shadow.arrived == []

    async with scheduler(shadows=False) as one:
        await act(one.service)
    assert one.arrived == sent


def tell(service: SchedulerService) -> None:
    api = api_of(service)
    api.status(POD, condition=NO, nominated_node_name="n1")
    api.event(POD, type="Warning", reason="FailedScheduling", action="Scheduling", note="no")


@pytest.mark.wall
async def test_nothing_that_waits_to_be_written_leaves_a_shadow() -> None:
    async with scheduler(shadows=False) as one:
        tell(one.service)
        await one.until(2)
    assert sorted(one.arrived) == [
        ("PATCH", f"{POD_PATH}/status"),
        ("POST", "/api/v1/namespaces/default/events"),
    ]

    async with scheduler(shadows=True) as shadow:
        tell(shadow.service)
        while not shadow.service.lanes.idle:
            await CLOCK.sleep(0.01)
    assert shadow.arrived == []


@pytest.mark.wall
async def test_no_extender_is_asked_to_bind_by_a_shadow() -> None:
    async with scheduler(shadows=True) as shadow:
        (extender,) = shadow.service.extenders
        with pytest.raises(
            ExtenderError, match="does not lead any more and has nothing bound"
        ) as refused:
            await extender.bind(PodInfo(POD), "n1")
        assert not refused.value.may_have_acted
