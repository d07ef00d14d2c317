"""Running a service by the files that its flags name, also when these change."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from pathlib import Path

from berth.clock import RealClock
from berth.commands import plugin_flags
from berth.config.options import Options
from berth.main import SchedulerService
from berth.plugin_sources import KnownPlugins, files_in
from berth.service.reload import Reloader
from berth.tasks import forever
from berth.termination import on_signals, unless_hung_up

log = logging.getLogger(__name__)


async def run_by_file(
    run: Callable[[], Awaitable[None]],
    service: SchedulerService,
    options: Options,
    *,
    find_plugins: Callable[[], KnownPlugins],
) -> None:
    """Do *run*, with *service* configured by the file of --config, also when it changes.

    So it is with the files of plugins. SIGHUP has all read at once, SIGUSR2 has everything told
    that the service knows.
    """
    if not options.config:
        with _signals(service, reload=_nothing_to_reload):
            await run()
        return
    reloader = Reloader(
        Path(options.config),
        load=lambda text: plugin_flags.configuration(options, find_plugins(), text=text),
        replace=lambda loaded: service.reconfigure(*loaded),
        also=lambda: files_in(service.plugins.directories),
        count=service.count_reload,
        clock=RealClock(),
    )
    with _signals(service, reload=reloader.reload):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(
                forever("configuration file", reloader.run), name="configuration file"
            )
            await run()


def _signals(
    service: SchedulerService, *, reload: Callable[[], object]
) -> AbstractContextManager[None]:
    return on_signals({signal.SIGUSR2: service.dump, signal.SIGHUP: unless_hung_up(reload)})


def _nothing_to_reload() -> None:
    log.warning("no configuration file to read again", extra={"flag": "--config"})
