"""``berth ui``: the page of a scheduler elsewhere, or of a recording, served on this machine."""

import argparse
import asyncio
import logging
import webbrowser
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from berth.cli import importing
from berth.cli.flags.configuration import add_plugin_flags, known_plugins
from berth.cli.flags.looking_back import add_looking_back_flags, check_looking_back
from berth.cli.flags.running_scheduler import (
    add_scheduler_flags,
    add_service_flag,
    check,
    config_flags,
)
from berth.runtime import log
from berth.runtime.addresses import UI_PORT
from berth.runtime.terminal import port, program, say

if TYPE_CHECKING:
    from berth.service.recorded_scheduler import RecordedScheduler
    from berth.service.ui.forwarder import Forwarder


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("ui"), allow_abbrev=False)
    running = parser.add_argument_group("a running scheduler")
    add_scheduler_flags(running)
    add_service_flag(running)
    add_looking_back_flags(parser.add_argument_group("a recording"), otherwise="its end")
    add_plugin_flags(parser)
    parser.add_argument(
        "--ui-port", type=port, default=UI_PORT, metavar="PORT",
        help="port of the page on loopback, another one if it is taken; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--no-browser", action="store_true", help="print the link only, do not open it"
    )
    given = parser.parse_args(argv)
    check(parser, given)
    check_looking_back(parser, given)
    return given


def run(given: argparse.Namespace) -> int:
    with importing():
        from berth.runtime.event_loop import in_loop

    log.setup(logging.ERROR)
    return in_loop(serve(given))


async def serve(given: argparse.Namespace) -> int:
    """Serve the page until interrupted. Raises ApiError, ConnectError and UsageError."""
    with importing():
        from berth.service.ui.local_page import local_page

    async with (
        _scheduler(given) as scheduler,
        local_page(
            scheduler,
            port=given.ui_port,
            program=program("ui"),
            say=say,
            is_recording=bool(given.recording),
        ) as page,
    ):
        if not given.no_browser:
            await asyncio.to_thread(_open, page.link)
        try:
            await page.server.run()
        finally:
            scheduler.end()
    return 0


@asynccontextmanager
async def _scheduler(
    given: argparse.Namespace,
) -> "AsyncIterator[Forwarder | RecordedScheduler]":
    """Yield what asks the scheduler that the flags mean."""
    if given.recording:
        recorded = await _recorded(given)
        yield recorded
        await recorded.close()
        return
    with importing():
        from berth.kube.client.port_forward import service_tunnel
        from berth.kube.client.service_pods import ServicePort
        from berth.service.running_scheduler import scheduler_endpoint, service_endpoint
        from berth.service.ui.forwarder import TunnelTransport, forwarder

    if given.service is None:
        endpoint = await scheduler_endpoint(given.server, config_flags(given))
        say(f"scheduler at {endpoint.url}")
        async with forwarder(endpoint) as scheduler:
            yield scheduler
        return
    service = ServicePort(*given.service)
    api, endpoint = await service_endpoint(service, config_flags(given))
    async with service_tunnel(api, service) as tunnel:
        say(f"scheduler behind service {service}, through {api.url}")
        transport = TunnelTransport(tunnel, endpoint.tls)
        async with forwarder(endpoint, transport=transport) as scheduler:
            yield scheduler


async def _recorded(given: argparse.Namespace) -> "RecordedScheduler":
    """Return the recording at the moment that the flags mean."""
    with importing():
        from berth.insight.recording.runs import runs
        from berth.runtime.clock import RealClock
        from berth.service.recorded_scheduler import RecordedScheduler

    log.setup(logging.CRITICAL)  # what went wrong then is no news
    scheduler = RecordedScheduler(runs(given.recording), known_plugins(given), clock=RealClock())
    await scheduler.move(time=given.at)
    position = scheduler.position()
    say(f"recording at {position.at}, {position.made} of {position.attempts} attempts made")
    return scheduler


def _open(link: str) -> None:
    """Open *link* in the user's browser, if there is one with a window of its own."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    if type(browser) is not webbrowser.GenericBrowser:  # that is one of the terminal
        browser.open(link)
