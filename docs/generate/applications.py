"""The HTTP applications of berth, built without a cluster, to be asked for what they serve."""

import asyncio
import random
from typing import NamedTuple

from fastapi import FastAPI

from berth.kube.client.connect import Endpoint, client_of
from berth.runtime.clock import FakeClock
from berth.scheduler.config.load import default_configuration
from berth.scheduler.profile.build import args_models
from berth.service.applications import extender_port_application, scheduler_application
from berth.service.scheduler_service import SchedulerService
from berth_plugins.registry import IN_TREE


class Applications(NamedTuple):
    scheduler: FastAPI
    extender: FastAPI


def applications() -> Applications:
    """Return what `berth run` serves, and what the extender port serves."""
    return asyncio.run(_build())


async def _build() -> Applications:
    clock = FakeClock()
    client = client_of(
        Endpoint("http://127.0.0.1:1"), qps=0, burst=1, user_agent="docs", clock=clock
    )
    config = default_configuration(args_models(IN_TREE))
    service = SchedulerService(client, config, clock=clock, rng=random.Random(0))
    built = Applications(
        scheduler_application(service), extender_port_application(service, max_body_bytes=1)
    )
    await client.close()
    return built
