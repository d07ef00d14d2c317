"""Runs a service and its servers until the process is told to end, and reloads its files."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from berth.runtime.clock import RealClock
from berth.runtime.event_loop import sparing_survivors
from berth.runtime.tasks import forever
from berth.runtime.termination import on_signals, unless_hung_up, until_terminated
from berth.service.configuration import ConfigurationSource
from berth.service.plugin_sources import files_in
from berth.service.reload import Reloader
from berth.service.scheduler_service import SchedulerService

log = logging.getLogger(__name__)


async def run_until_terminated(
    run: Callable[[], Awaitable[None]],
    service: SchedulerService,
    source: ConfigurationSource,
    *,
    background: Mapping[str, Callable[[], Awaitable[None]]],
) -> None:
    """Do *run* of *service*, with the tasks of *background*, until SIGTERM or SIGINT.

    The configuration is reloaded as by :func:`run_and_reload`.
    """

    async def run_all() -> None:
        async with asyncio.TaskGroup() as tasks:
            for name, work in background.items():
                tasks.create_task(forever(name, work), name=name)
            await run_and_reload(run, service, source)

    running = until_terminated(run_all(), on_request=service.begin_termination)
    await sparing_survivors(running, RealClock())


async def run_and_reload(
    run: Callable[[], Awaitable[None]], service: SchedulerService, source: ConfigurationSource
) -> None:
    """Do *run*, and reload the configuration of *service* when a file of *source* changes.

    The files of plugins count, too. SIGHUP reloads at once, SIGUSR2 logs what the service holds.
    """
    if not source.file:
        with _signals(service, reload=_nothing_to_reload):
            await run()
        return
    reloader = Reloader(
        Path(source.file),
        load=source.load,
        replace=lambda loaded: service.reconfigure(*loaded),
        also=lambda: files_in(service.plugins.directories),
        count=service.count_reload,
        clock=RealClock(),
    )
    with _signals(service, reload=reloader.ask):
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
