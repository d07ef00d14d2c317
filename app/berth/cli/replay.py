"""``berth replay``: the decisions of a recording, made again and compared."""

import argparse
import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from berth.cli import importing
from berth.cli.flags.configuration import add_plugin_flags, known_plugins
from berth.cli.flags.versions import add_emulated_version
from berth.runtime import log
from berth.runtime.release import RELEASES
from berth.runtime.terminal import DOCUMENTS, Progress, positive, program, say_document
from berth.scheduler.config.presets import PRESETS

if TYPE_CHECKING:
    from berth.insight.recording.report import Report
    from berth.insight.recording.runs import RecordedRun
    from berth.scheduler.config.types import KubeSchedulerConfiguration
    from berth.scheduler.profile.build import Registry
    from berth.service.plugin_sources import KnownPlugins

PIPE_WIDTH: Final = 200
"""Columns of a table that goes to no terminal."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    given = parser.parse_args(argv)
    if given.config and given.preset:
        parser.error("--preset and --config: give one of them")
    return given


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program("replay"),
        allow_abbrev=False,
        description="Make the decisions of a recording again and compare them. The exit status is"
        " 0 if all are the same, 1 if some differ, and 2 for an error. With --config,"
        " --preset or --emulated-version, decisions that chance alone makes another are not counted"
        " as different.",
    )
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE",
        help="a file that `berth run --record` or `berth up --record` wrote; give all files of a"
        " process, in any order. Several recordings are replayed one after the other",
    )  # fmt: skip
    add_plugin_flags(parser)
    parser.add_argument("--config", type=Path, metavar="FILE", help="decide by this configuration")
    parser.add_argument("--preset", choices=PRESETS, help="decide by this preset")
    add_emulated_version(
        parser,
        text=f"decide like this release of Kubernetes: {' or '.join(RELEASES)}; default: the one"
        " that was recorded, or that of --config",
    )
    parser.add_argument(
        "--until", type=positive, metavar="N", help="stop after attempt N of the recording"
    )
    parser.add_argument(
        "--speed", type=_speed, default=None, metavar="N",
        help="let N recorded seconds pass in one second; default: max, as fast as possible",
    )  # fmt: skip
    parser.add_argument(
        "--limit", type=positive, default=20, metavar="N",
        help="number of differing decisions in the table; default: 20",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", choices=["table", *DOCUMENTS], default="table",
        help="tables, or a JSON line, or YAML document, for each differing decision and one for the"
        " summary",
    )  # fmt: skip
    return parser


def _speed(text: str) -> float | None:
    """Read a factor; None for ``max``."""
    if text == "max":
        return None
    speed = float(text)
    if not 0 < speed < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: a number above 0, or max")
    return speed


def run(given: argparse.Namespace) -> int:
    with importing():
        from berth.insight.recording.report import Report
        from berth.insight.recording.runs import runs
        from berth.runtime.tables import show

    log.setup(logging.WARNING)
    config, plugins = _configuration(given)
    report = Report()
    for recorded in runs(given.files):
        asyncio.run(_replay(recorded, report, config, plugins.registry, given))
    if given.output in DOCUMENTS:
        for difference in report.differences:
            say_document(_json(difference.told()), given.output)
        say_document(_json(report.told()), given.output)
    else:
        show(report.tables(limit=given.limit), pipe_width=PIPE_WIDTH)
    return 1 if report.num_differing else 0


def _configuration(
    given: argparse.Namespace,
) -> "tuple[KubeSchedulerConfiguration | None, KnownPlugins]":
    """Return what is to decide in place of what was recorded, if anything, and the plugins."""
    from berth.scheduler.config.load import emulating
    from berth.service.configuration import ConfigurationSource

    plugins = known_plugins(given)
    if not given.config and not given.preset:
        return None, plugins
    return ConfigurationSource(
        find_plugins=lambda: plugins,
        file=str(given.config) if given.config else "",
        preset=given.preset,
        adjust=emulating(given.emulated_version),
    ).load()


async def _replay(
    recorded: "RecordedRun",
    report: "Report",
    config: "KubeSchedulerConfiguration | None",
    registry: "Registry",
    given: argparse.Namespace,
) -> None:
    from berth.insight.recording.lines import Attempt
    from berth.insight.recording.replay import Replay
    from berth.runtime.clock import RealClock

    release = given.emulated_version if config is None else ""
    replay = Replay(recorded.header, registry, config, release=release)
    clock, began = RealClock(), None
    progress = Progress(clock.monotonic())
    for file, line in recorded.read():
        if isinstance(line, Attempt) and given.until and line.number > given.until:
            break
        if given.speed is not None and line.t:
            began = clock.monotonic() - line.t / given.speed if began is None else began
            await clock.sleep(max(line.t / given.speed + began - clock.monotonic(), 0.0))
        with file.naming_line():
            await replay.step(line)
        if isinstance(line, Attempt):
            progress.tell(clock.monotonic(), f"replay: {line.number} attempts")
    await replay.end()
    report.add(recorded, replay)


def _json(told: dict[str, object]) -> str:
    return msgspec.json.encode(told).decode()
