"""``berth lab``: the same workload scheduled by several policies, and how they compare."""

import argparse
import logging
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from berth.cli import importing
from berth.cli.flags.progress import Terminated, progress, raised_on_sigterm
from berth.runtime import log
from berth.runtime.terminal import (
    DOCUMENTS,
    INTERRUPTED,
    TERMINATED,
    UsageError,
    naming_file,
    note,
    positive,
    program,
    say,
    say_document,
)

if TYPE_CHECKING:
    from berth.tools.lab.curves import RunResult
    from berth.tools.lab.load import LabFile

PIPE_WIDTH: Final = 160
"""Columns of a table that goes to no terminal."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=program("lab"),
        allow_abbrev=False,
        description="Schedule a workload by several policies, each from several seeds, and compare"
        " what comes of it.",
    )
    parser.add_argument("file", type=Path, metavar="RUN.yaml", help="what is compared")
    parser.add_argument(
        "-j", "--jobs", type=positive, default=os.cpu_count() or 1, metavar="N",
        help="runs at a time; default: one for each CPU",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", choices=["text", *DOCUMENTS], default="text",
        help="tables, or a JSON line, or YAML document, for each policy",
    )  # fmt: skip
    parser.add_argument(
        "--results", type=Path, metavar="FILE",
        help="write a JSON line for each run to this file, as it ends",
    )  # fmt: skip
    parser.add_argument(
        "--resume", action="store_true",
        help="do only the runs that are not in the file of --results, and add them to it",
    )  # fmt: skip
    parser.add_argument(
        "--plots", type=Path, metavar="DIR",
        help="write an SVG for each measure to this folder; needs the extra `plots`",
    )  # fmt: skip
    return parser.parse_args(argv)


def run(given: argparse.Namespace) -> int:
    with importing():
        from berth.tools.lab.load import LabFile
        from berth.tools.lab.plots import check_library

    log.setup(logging.ERROR)
    if given.resume and given.results is None:
        raise UsageError("--resume: --results FILE is needed, with what was done before")
    if given.plots is not None:
        check_library()
    file = LabFile(given.file)
    origins = file.origins()
    for warning in file.workload().warnings:  # its errors are told before there are processes
        note(f"{program('lab')}: {warning}")
    results: list[RunResult] = []
    status = 0
    try:
        with raised_on_sigterm():
            _do_runs(file, given, origins, results)
    except (KeyboardInterrupt, Terminated) as exc:
        status = INTERRUPTED if isinstance(exc, KeyboardInterrupt) else TERMINATED
    if status:
        done = f"{len(results)} of {_total(file)} runs"
        note(f"{program('lab')}: interrupted after {done}{_hint(given)}")
    if results:
        _report(file, given, results)
    return status


def _hint(given: argparse.Namespace) -> str:
    if given.results is None:
        return "; with --results FILE, --resume does the others"
    return f"; --results {given.results} --resume does the others"


def _total(file: "LabFile") -> int:
    return file.lab.seeds.count * len(file.lab.policies)


def _report(file: "LabFile", given: argparse.Namespace, results: "list[RunResult]") -> None:
    """Show what came of the runs, in the order of the file."""
    from berth.runtime.tables import show
    from berth.tools.lab.plots import draw
    from berth.tools.lab.report import tables
    from berth.tools.lab.summary import only, summarize

    results.sort(key=lambda result: result.seed)
    ran = {result.policy for result in results}
    names = [policy.name for policy in file.lab.policies if policy.name in ran]
    summaries = only(summarize(results, names), file.lab.report.measures)
    if given.output in DOCUMENTS:
        for summary in summaries:
            say_document(msgspec.json.encode(summary).decode(), given.output)
    else:
        show(tables(summaries, bins=file.lab.report.at), pipe_width=PIPE_WIDTH)
    if given.plots is not None:
        for path in draw(summaries, given.plots, title=file.name):
            say(f"wrote {path}")


def _do_runs(
    file: "LabFile", given: argparse.Namespace, origins: dict[str, str], results: "list[RunResult]"
) -> None:
    """Do the runs that are missing, add what comes of each to *results*, and write it."""
    from berth.runtime.tables import shown_live
    from berth.tools.lab.parallel import run_all
    from berth.tools.lab.results import Results

    total = _total(file)
    with ExitStack() as stack:
        written: Results | None = None
        if given.results is not None:
            with naming_file("--results", str(given.results)):
                written = Results(given.results, resumes=given.resume, origins=origins)
            stack.enter_context(written)
            first = file.lab.seeds.first
            seeds = range(first, first + file.lab.seeds.count)
            results += (result for result in written.found if result.seed in seeds)
        done = {(result.policy, result.seed) for result in results}
        screen = stack.enter_context(shown_live(sys.stderr))
        began = time.monotonic()

        def look(share: float) -> None:
            if screen is not None:
                seconds = time.monotonic() - began
                screen.show(progress(len(done) + share, total, seconds, before=len(done)))

        runs = stack.enter_context(
            closing(run_all(file, jobs=given.jobs, done=done, look=look if screen else None))
        )
        for run_ in runs:
            result = msgspec.structs.replace(run_, origin=origins[run_.policy])
            results.append(result)
            if written is not None:
                with naming_file("--results", str(given.results)):
                    written.add(result)
