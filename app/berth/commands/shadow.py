"""``berth shadow``: what a running shadow has found."""

import argparse
import logging

from berth import log
from berth.scheduler_client import ask_shadow
from berth.settings.running_scheduler import scheduler
from berth.shadow.html import page
from berth.shadow.report import report
from berth.shadow.tables import render
from berth.tables import show
from berth.terminal import say, say_json, say_lines

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
