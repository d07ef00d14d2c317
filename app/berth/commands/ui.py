"""``berth ui``: the page of a scheduler elsewhere, served on this machine."""

import argparse
import asyncio
import logging
import webbrowser

from berth import log
from berth.event_loop import in_loop
from berth.settings.running_scheduler import scheduler_endpoint
from berth.terminal import program, say
from berth.ui.forwarder import forwarder
from berth.ui.local_page import local_page


def run(given: argparse.Namespace) -> int:
    log.setup(logging.ERROR)
    return in_loop(serve(given))


async def serve(given: argparse.Namespace) -> int:
    """Serve the page until interrupted. Raises ConnectError and UsageError."""
    endpoint = await scheduler_endpoint(given)
    say(f"scheduler at {endpoint.url}")
    async with (
        forwarder(endpoint) as scheduler,
        local_page(scheduler, port=given.ui_port, program=program("ui"), say=say) as page,
    ):
        if not given.no_browser:
            await asyncio.to_thread(_open, page.link)
        await page.server.run()
    return 0


def _open(link: str) -> None:
    """Open *link* in the user's browser, if there is one with a window of its own."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    if type(browser) is not webbrowser.GenericBrowser:  # that is one of the terminal
        browser.open(link)
