"""A scheduler that is started before its API server."""

import asyncio
import random
import socket

import pytest

from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.kube.client.connect import connect
from berth.runtime.clock import FakeClock, RealClock
from berth.scheduler.config.load import default_configuration
from berth.scheduler.profile.build import args_models
from berth.service.scheduler_service import SchedulerService
from berth_plugins.registry import IN_TREE

pytestmark = pytest.mark.wall


class CountingClock(FakeClock):
    """Does not wait, and lets a test wait until somebody did."""

    def __init__(self) -> None:
        super().__init__()
        self.slept = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.slept.set()
        await asyncio.sleep(0)


async def test_it_waits_until_the_server_is_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    clock, rng = CountingClock(), random.Random(1)
    client = await connect(kubeconfig=None, master=f"http://127.0.0.1:{port}", qps=0)
    config = default_configuration(args_models(IN_TREE))
    service = SchedulerService(client, config, clock=clock, rng=rng)
    running = asyncio.create_task(service.run(), name="scheduler")
    await clock.slept.wait()
    cluster = EmbeddedCluster(clock=RealClock(), rng=rng, insecure=True)
    await cluster.start(port)
    try:
        async with asyncio.timeout(30):
            await service.pods.synced.wait()
        assert not running.done()
    finally:
        running.cancel()
        await asyncio.wait([running])
        await client.close()
        await cluster.stop()
