"""The arguments of ``berth shadow``."""

import argparse
from collections.abc import Sequence
from typing import Final

from berth.cli.flags import running_scheduler
from berth.runtime.addresses import LOOPBACK, RUN_PORT
from berth.runtime.terminal import program

SERVER: Final = f"https://{LOOPBACK}:{RUN_PORT}"


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=program("shadow"),
        allow_abbrev=False,
        description="Ask a scheduler that runs with --shadow how it compares with the scheduler of"
        " the cluster.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    report = commands.add_parser(
        "report",
        allow_abbrev=False,
        help="print how far both agree, what they differ about, and what to do",
    )
    running_scheduler.add_flags(report.add_argument_group("the shadow"), server=SERVER)
    report.add_argument(
        "--output",
        choices=["table", "json", "html"],
        default="table",
        help="output format; html is one file without scripts; default: %(default)s",
    )
    return parser.parse_args(argv)
