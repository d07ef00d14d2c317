"""``berth replay``: the decisions of a recording, made again and compared."""

import argparse
import asyncio
import logging
from typing import Final

import msgspec

from berth.cli.settings.configuration import known_plugins
from berth.insight.recording import lines
from berth.insight.recording.replay import Replay
from berth.insight.recording.report import Report
from berth.insight.recording.runs import RecordedRun, runs
from berth.runtime import log as logs
from berth.runtime.clock import RealClock
from berth.runtime.tables import show
from berth.runtime.terminal import say_json
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.profile.build import Registry
from berth.service.configuration import ConfigurationSource
from berth.service.plugin_sources import KnownPlugins

PIPE_WIDTH: Final = 200
"""Columns of a table that goes to no terminal."""


def run(given: argparse.Namespace) -> int:
    logs.setup(logging.WARNING)
    config, plugins = _configuration(given)
    report = Report()
    for recorded in runs(given.files):
        asyncio.run(_replay(recorded, report, config, plugins.registry, given))
    if given.output == "json":
        for difference in report.differences:
            say_json(_json(difference.told()))
        say_json(_json(report.told()))
    else:
        show(report.tables(limit=given.limit), pipe_width=PIPE_WIDTH)
    return 1 if report.num_differing else 0


def _configuration(
    given: argparse.Namespace,
) -> tuple[KubeSchedulerConfiguration | None, KnownPlugins]:
    """Return what is to decide in place of what was recorded, if anything, and the plugins."""
    plugins = known_plugins(given)
    if not given.config and not given.preset:
        return None, plugins
    return ConfigurationSource(
        find_plugins=lambda: plugins,
        file=str(given.config) if given.config else "",
        preset=given.preset,
    ).load()


async def _replay(
    recorded: RecordedRun,
    report: Report,
    config: KubeSchedulerConfiguration | None,
    registry: Registry,
    given: argparse.Namespace,
) -> None:
    replay = Replay(recorded.header, registry, config)
    clock, began = RealClock(), None
    for file, line in recorded.read():
        if isinstance(line, lines.Attempt) and given.until and line.number > given.until:
            break
        if given.speed is not None and line.t:
            began = clock.monotonic() - line.t / given.speed if began is None else began
            await clock.sleep(max(line.t / given.speed + began - clock.monotonic(), 0.0))
        with file.naming_line():
            await replay.step(line)
    await replay.end()
    report.add(recorded, replay)


def _json(told: dict[str, object]) -> str:
    return msgspec.json.encode(told).decode()
