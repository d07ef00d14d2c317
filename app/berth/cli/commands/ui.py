"""``berth ui``: the page of a scheduler elsewhere, served on this machine."""

import argparse
import asyncio
import logging
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from berth.cli.settings.running_scheduler import api_server_and_service, scheduler_endpoint
from berth.kube.client.port_forward import service_tunnel
from berth.kube.client.service_pods import ServicePort
from berth.runtime import log
from berth.runtime.event_loop import in_loop
from berth.runtime.terminal import program, say
from berth.service.ui.forwarder import Forwarder, TunnelTransport, forwarder
from berth.service.ui.local_page import local_page


def run(given: argparse.Namespace) -> int:
    log.setup(logging.ERROR)
    return in_loop(serve(given))


async def serve(given: argparse.Namespace) -> int:
    """Serve the page until interrupted. Raises ApiError, ConnectError and UsageError."""
    async with (
        _scheduler(given) as scheduler,
        local_page(scheduler, port=given.ui_port, program=program("ui"), say=say) as page,
    ):
        if not given.no_browser:
            await asyncio.to_thread(_open, page.link)
        try:
            await page.server.run()
        finally:
            scheduler.end()
    return 0


@asynccontextmanager
async def _scheduler(given: argparse.Namespace) -> AsyncIterator[Forwarder]:
    """Yield what asks the scheduler that the flags mean."""
    if given.service is None:
        endpoint = await scheduler_endpoint(given)
        say(f"scheduler at {endpoint.url}")
        async with forwarder(endpoint) as scheduler:
            yield scheduler
        return
    service = ServicePort(*given.service)
    api, endpoint = await api_server_and_service(given, service)
    async with service_tunnel(api, service) as tunnel:
        say(f"scheduler behind service {service}, through {api.url}")
        transport = TunnelTransport(tunnel, endpoint.tls)
        async with forwarder(endpoint, transport=transport) as scheduler:
            yield scheduler


def _open(link: str) -> None:
    """Open *link* in the user's browser, if there is one with a window of its own."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    if type(browser) is not webbrowser.GenericBrowser:  # that is one of the terminal
        browser.open(link)
