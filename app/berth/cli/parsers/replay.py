"""The arguments of ``berth replay``."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from berth.cli.flags.configuration import add_plugin_flags
from berth.runtime.terminal import positive, program
from berth.scheduler.config.presets import PRESETS


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
        " 0 if all are the same, 1 if some differ, and 2 for an error. With --config or --preset,"
        " decisions that chance alone makes another are not counted as different.",
    )
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE",
        help="a file that `berth run --record` or `berth up --record` wrote; give all files of a"
        " process, in any order. Several recordings are replayed one after the other",
    )  # fmt: skip
    add_plugin_flags(parser)
    parser.add_argument("--config", type=Path, metavar="FILE", help="decide by this configuration")
    parser.add_argument("--preset", choices=PRESETS, help="decide by this preset")
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
        "-o", "--output", choices=["table", "json"], default="table",
        help="tables, or a JSON line for each differing decision and one for the summary",
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
