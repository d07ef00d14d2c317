"""``berth lab``: the same workload scheduled by several policies, and how they compare."""

import argparse
import logging
import sys
import time
from typing import Final

import msgspec

from berth import log
from berth.files import PUBLIC, write_file
from berth.lab.curves import RunResult
from berth.lab.load import LabFile
from berth.lab.parallel import run_all
from berth.lab.plots import check_library, draw
from berth.lab.report import tables
from berth.lab.summary import only, summarize
from berth.tables import show, shown_live
from berth.terminal import naming_file, say, say_json

BAR: Final = 30
"""Characters of the bar."""
PIPE_WIDTH: Final = 160
"""Columns of a table that goes to no terminal."""


def run(given: argparse.Namespace) -> int:
    log.setup(logging.ERROR)
    if given.plots is not None:
        check_library()
    file = LabFile(given.file)
    names = [policy.name for policy in file.policies()]
    file.workload()  # its errors are told before there are processes
    results = _results(file, given)
    summaries = only(summarize(results, names), file.lab.report.measures)
    if given.output == "json":
        for summary in summaries:
            say_json(msgspec.json.encode(summary).decode())
    else:
        show(tables(summaries, bins=file.lab.report.at), pipe_width=PIPE_WIDTH)
    if given.plots is not None:
        for path in draw(summaries, given.plots, title=file.name):
            say(f"wrote {path}")
    return 0


def _results(file: LabFile, given: argparse.Namespace) -> list[RunResult]:
    """Do all runs, and write what comes of each; those of a seed are in the order of the file."""
    total = file.lab.seeds.count * len(file.lab.policies)
    results = []
    with shown_live(sys.stderr) as screen:
        began = time.monotonic()
        for result in run_all(file, jobs=min(given.jobs, total)):
            results.append(result)
            if screen is not None:
                screen.show(progress(len(results), total, time.monotonic() - began))
    order = {policy.name: place for place, policy in enumerate(file.lab.policies)}
    results.sort(key=lambda each: (each.seed, order[each.policy]))
    if given.results is not None:
        lines = (msgspec.json.encode(each) + b"\n" for each in results)
        with naming_file("--results", str(given.results)):
            write_file(given.results, b"".join(lines), mode=PUBLIC)
    return results


def progress(done: int, total: int, seconds: float) -> str:
    """Return a bar, and how long it will take if the rest goes on like this."""
    filled = BAR * done // total
    left = round(seconds / done * (total - done))
    bar = "#" * filled + "-" * (BAR - filled)
    return f"[{bar}] {done} of {total} runs, {left // 60}:{left % 60:02} left"
