"""Whatever a service does, it measures itself, also while it cannot reach the API server."""

import asyncio
import random
from contextlib import suppress

import pytest

from berth.kube.client.connect import Endpoint, client_of
from berth.runtime.clock import FakeClock
from berth.scheduler.config.load import default_configuration
from berth.scheduler.profile.build import args_models
from berth.service.scheduler_service import SchedulerService
from berth_plugins.registry import IN_TREE


@pytest.mark.parametrize(
    ("schedules", "shadows", "run"),
    [
        pytest.param(True, False, "run", id="a scheduler"),
        pytest.param(False, False, "run_extender", id="an extender"),
        pytest.param(True, True, "run_shadow", id="a shadow"),
    ],
)
async def test_it_takes_samples(schedules: bool, shadows: bool, run: str) -> None:
    clock = FakeClock()
    api = client_of(Endpoint("http://127.0.0.1:1"), qps=0, burst=1, user_agent="test", clock=clock)
    config = default_configuration(args_models(IN_TREE))
    service = SchedulerService(
        api, config, clock=clock, rng=random.Random(0), schedules=schedules, shadows=shadows
    )
    running = asyncio.create_task(getattr(service, run)(), name=run)
    first = asyncio.create_task(service.overview.after(0), name="first sample")
    while not first.done():
        clock.advance(1)
        await asyncio.sleep(0)
    sample = first.result()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    await api.close()

    assert sample is not None
    assert [problem.message for problem in sample.problems] == [
        "The state of the cluster is not known yet"
    ]
    assert await service.overview.after(0) is None
