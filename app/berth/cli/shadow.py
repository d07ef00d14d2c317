"""``berth shadow``: what a running shadow has found."""

import argparse
import logging
from collections.abc import Sequence
from typing import Final

from berth.cli import importing
from berth.cli.flags.running_scheduler import add_scheduler_flags, scheduler
from berth.runtime import log
from berth.runtime.addresses import LOOPBACK, RUN_PORT
from berth.runtime.terminal import DOCUMENTS, program, say, say_document, say_lines

SERVER: Final = f"https://{LOOPBACK}:{RUN_PORT}"
PIPE_WIDTH: Final = 200
"""Columns of a table that goes to no terminal."""


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
    add_scheduler_flags(report.add_argument_group("the shadow"), server=SERVER)
    report.add_argument(
        "--output",
        choices=["table", *DOCUMENTS, "html"],
        default="table",
        help="output format; html is one file without scripts; default: %(default)s",
    )
    return parser.parse_args(argv)


def run(given: argparse.Namespace) -> int:
    with importing():
        from berth.insight.shadow.html import page
        from berth.insight.shadow.report import report
        from berth.insight.shadow.tables import render
        from berth.runtime.tables import show
        from berth.service.scheduler_client import ask_shadow

    log.setup(logging.ERROR)
    summary = report(ask_shadow(scheduler(given)))
    match given.output:
        case output if output in DOCUMENTS:
            say_document(summary.model_dump_json(by_alias=True), output)
        case "html":
            say_lines(page(summary))
        case _:
            say(summary.words)
            show(render(summary), pipe_width=PIPE_WIDTH)
    return 0
