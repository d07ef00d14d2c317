"""The process of ``berth extender``: answers other schedulers, and schedules nothing itself."""

import random

from berth.runtime.clock import RealClock
from berth.service.api_connection import ApiConnection
from berth.service.configuration import ConfigurationSource, Loaded
from berth.service.extender_port import extender_port
from berth.service.extender_port_settings import ExtenderPortSettings
from berth.service.running import run_until_terminated
from berth.service.scheduler_service import SchedulerService


async def run_extender(
    source: ConfigurationSource,
    loaded: Loaded,
    settings: ExtenderPortSettings,
    *,
    kubeconfig: str = "",
    master: str = "",
) -> int:
    """Answer until a signal; the status is 0 then.

    *loaded* is what *source* has now. *kubeconfig* and *master* win over the configuration.
    """
    config, plugins = loaded
    api = ApiConnection.of(config.client_connection, kubeconfig=kubeconfig, master=master)
    clock = RealClock()
    async with api.client("extender") as client:
        service = SchedulerService(
            client, config, clock=clock, rng=random.Random(), schedules=False, plugins=plugins
        )
        async with extender_port(service, settings, api, clock=clock) as port:
            await run_until_terminated(
                service.run_extender, service, source, background={"extender port": port.run}
            )
    return 0
