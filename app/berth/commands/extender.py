"""``berth extender``: answers other schedulers, and schedules nothing itself."""

import argparse
import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial

from berth import log
from berth.client.api_client import ApiClient
from berth.client.connect import connect
from berth.clock import RealClock
from berth.commands import plugin_flags
from berth.commands.extender_serving import DEFAULT_PORT, Serving, add_flags, listening, serving
from berth.commands.reloading import run_by_file
from berth.commands.terminal import in_loop
from berth.config.options import Options
from berth.config.types import KubeSchedulerConfiguration
from berth.endpoints import extender_port_application
from berth.main import SchedulerService
from berth.plugin_sources import KnownPlugins
from berth.release import version
from berth.tasks import forever
from berth.termination import until_terminated


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="berth extender",
        allow_abbrev=False,
        description="Answer kube-scheduler as its extender: filter, prioritize, preempt and bind at"
        " /extender/VERB by the first profile of the configuration, at /extender/PROFILE/VERB by"
        " that schedulerName's. The configuration is read again when its file changes, and on"
        " SIGHUP. Nothing is scheduled and no leader is elected; of several replicas, each knows"
        " what another has bound once its watches tell.",
    )
    parser.add_argument(
        "--config", default="", metavar="FILE", help="A KubeSchedulerConfiguration."
    )
    parser.add_argument(
        "--kubeconfig", default="", metavar="FILE",
        help="How to reach the API server; wins over the one in the configuration.",
    )  # fmt: skip
    parser.add_argument(
        "--master", default="", metavar="URL", help="The API server's address; wins over both."
    )
    parser.add_argument("-v", "--v", type=int, default=0, metavar="N", help="How much to log.")
    add_flags(parser, default=DEFAULT_PORT)
    plugin_flags.add_flags(parser)
    plugin_flags.add_preset_flag(parser)
    given = parser.parse_args(argv)
    asked = serving(given)
    options = Options(config=given.config, kubeconfig=given.kubeconfig, master=given.master)
    find_plugins = partial(plugin_flags.known_plugins, given)
    config, plugins = plugin_flags.configuration(
        options, find_plugins(), chosen_preset=given.preset
    )
    log.setup_by_flags(given.v)
    return in_loop(_answer(options, config, plugins, asked=asked, find_plugins=find_plugins))


async def _answer(
    options: Options,
    config: KubeSchedulerConfiguration,
    plugins: KnownPlugins,
    *,
    asked: Serving,
    find_plugins: Callable[[], KnownPlugins],
) -> int:
    """Answer until a signal; the status is 0 then."""
    clock = RealClock()
    async with AsyncExitStack() as cleanup:
        client = await _connect(options, config, purpose="extender")
        cleanup.push_async_callback(client.close)
        # A client of its own: whoever comes with a wrong token must not hold up the binds.
        reviews = await _connect(options, config, purpose="reviews")
        cleanup.push_async_callback(reviews.close)
        service = SchedulerService(
            client, config, clock=clock, rng=random.Random(), schedules=False, plugins=plugins
        )
        app = extender_port_application(service, max_body_bytes=asked.max_body_bytes)
        server = await cleanup.enter_async_context(
            listening(asked, app, reviews=reviews, clock=clock)
        )
        service.add_server("extender", server)

        async def both() -> None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(forever("extender port", server.run), name="extender port")
                await run_by_file(service.run_extender, service, options, find_plugins=find_plugins)

        await until_terminated(both(), on_request=service.begin_termination)
    return 0


async def _connect(
    options: Options, config: KubeSchedulerConfiguration, *, purpose: str
) -> ApiClient:
    connection = config.client_connection
    return await connect(
        kubeconfig=options.kubeconfig or connection.kubeconfig or None,
        master=options.master or None,
        qps=connection.qps,
        burst=connection.burst,
        user_agent=f"berth/{version()} {purpose}",
    )
