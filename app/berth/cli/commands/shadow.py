"""``berth shadow``: what a running shadow has found."""

import argparse
import logging

from berth.cli.settings.running_scheduler import scheduler
from berth.insight.shadow.html import page
from berth.insight.shadow.report import report
from berth.insight.shadow.tables import render
from berth.runtime import log
from berth.runtime.tables import show
from berth.runtime.terminal import say, say_json, say_lines
from berth.service.scheduler_client import ask_shadow

PIPE_WIDTH = 200
"""Columns of a table that goes to no terminal."""


def run(given: argparse.Namespace) -> int:
    log.setup(logging.ERROR)
    found = report(ask_shadow(scheduler(given)))
    match given.output:
        case "json":
            say_json(found.model_dump_json(by_alias=True))
        case "html":
            say_lines(page(found))
        case _:
            say(found.words)
            show(render(found), pipe_width=PIPE_WIDTH)
    return 0
