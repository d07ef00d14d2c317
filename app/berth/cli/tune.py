"""``berth tune``: a configuration that does better on a recording or a workload."""

import argparse
import logging
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from berth.cli import importing
from berth.cli.flags.configuration import add_plugin_flags, known_plugins
from berth.cli.flags.progress import progress, raised_on_sigterm
from berth.runtime import log
from berth.runtime.release import RELEASES
from berth.runtime.terminal import (
    DOCUMENTS,
    UsageError,
    naming_file,
    note,
    positive,
    program,
    say,
    say_document,
)
from berth.scheduler.config.presets import PRESETS

if TYPE_CHECKING:
    from berth.tools.lab.load import LabFile

LAB_SUFFIXES: Final = (".yaml", ".yml")
PIPE_WIDTH: Final = 160
"""Columns of a table that goes to no terminal."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=program("tune"),
        allow_abbrev=False,
        description="Search a configuration that does better than the present one on some parts of"
        " a recording or of the workload of a Lab, and say by how much it is better on the"
        " others. The exit status is 0 if it is beyond noise, 1 if nothing was found, and"
        " 2 for an error.",
    )
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE",
        help="a Lab file, whose first policy is the present configuration; or the files of a"
        " recording, which has it",
    )  # fmt: skip
    goal = parser.add_argument_group("the objective: the sum of these, as low as possible")
    goal.add_argument(
        "--minimize", type=_weighed, action="append", default=[], metavar="MEASURE[=WEIGHT]",
        help="what is to be low, such as `nodes used`, `waiting p99`, `fragmentation of cpu`,"
        " `imbalance of cpu` or `cost`, times WEIGHT, by default 1",
    )  # fmt: skip
    goal.add_argument(
        "--maximize", type=_weighed, action="append", default=[], metavar="MEASURE[=WEIGHT]",
        help="what is to be high",
    )  # fmt: skip
    goal.add_argument(
        "--at-most", type=_bound, action="append", default=[], metavar="MEASURE=VALUE",
        help="what must not be higher, on average over the parts",
    )  # fmt: skip
    goal.add_argument(
        "--at-least", type=_bound, action="append", default=[], metavar="MEASURE=VALUE",
        help="what must not be lower",
    )  # fmt: skip
    space = parser.add_argument_group("what is tried")
    space.add_argument("--config", type=Path, metavar="FILE", help="the present configuration")
    space.add_argument("--preset", choices=PRESETS, help="the present configuration")
    add_plugin_flags(parser)
    space.add_argument(
        "--try", dest="more", type=_tried, action="append", default=[], metavar="NAME=[VALUE,...]",
        help="values of PLUGIN.weight, of PLUGIN.ARGUMENT or of percentageOfNodesToScore, as a JSON"
        " array; in place of those that are tried otherwise",
    )  # fmt: skip
    space.add_argument("--try-only", action="store_true", help="try nothing but what --try names")
    space.add_argument(
        "--candidates", type=positive, default=32, metavar="N",
        help="number of configurations; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--parts", type=positive, default=10, metavar="N",
        help="number of parts of the workload, of which every second one is held out; default:"
        " %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N",
        help="where random numbers begin; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--shuffle", action="store_true",
        help="exchange results between configurations at random, so that there is nothing to find:"
        " a check of the search itself",
    )  # fmt: skip
    parser.add_argument(
        "-j", "--jobs", type=positive, default=os.cpu_count() or 1, metavar="N",
        help="runs at a time; default: one for each CPU",
    )  # fmt: skip
    parser.add_argument(
        "--write-config-to", type=Path, metavar="FILE",
        help="write the configuration to this file, if it is better",
    )  # fmt: skip
    parser.add_argument(
        "-o",
        "--output",
        choices=["text", *DOCUMENTS],
        default="text",
        help="tables, or one document",
    )
    given = parser.parse_args(argv)
    if not given.minimize and not given.maximize:
        parser.error("--minimize or --maximize: what is to be better is needed")
    if given.config and given.preset:
        parser.error("--preset and --config: give one of them")
    return given


def _weighed(text: str) -> tuple[str, float]:
    name, _, weight = text.partition("=")
    return name, _number(weight, text) if weight else 1.0


def _bound(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    return name, _number(value, text)


def _number(number: str, text: str) -> float:
    try:
        return float(number)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: {number!r} is no number") from None


def _tried(text: str) -> tuple[str, list[Any]]:
    name, _, values = text.partition("=")
    try:
        decoded = msgspec.json.decode(values)
    except msgspec.DecodeError:
        decoded = None
    if not isinstance(decoded, list) or not decoded:
        raise argparse.ArgumentTypeError(f"{text}: a JSON array of values is needed")
    return name, decoded


def run(given: argparse.Namespace) -> int:
    with importing():
        from berth.runtime.tables import show, shown_live
        from berth.tools.tune.objective import Objective
        from berth.tools.tune.report import tables
        from berth.tools.tune.tune import TuneOptions, Tuner

    log.setup(logging.ERROR)
    weights = dict(given.minimize) | {name: -weight for name, weight in given.maximize}
    options = TuneOptions(
        candidates=given.candidates, parts=given.parts, seed=given.seed, jobs=given.jobs,
        shuffles=given.shuffle,
    )  # fmt: skip
    tuner = Tuner(
        _lab(given),
        Objective(weights, dict(given.at_most), dict(given.at_least)),
        options,
        more=dict(given.more),
        only_more=given.try_only,
    )
    for warning in tuner.warnings:
        note(f"{program('tune')}: {warning}")
    began, most = time.monotonic(), tuner.most_runs
    with raised_on_sigterm(), shown_live(sys.stderr) as screen:

        def look(done: float) -> None:
            if screen is not None:
                screen.show(progress(done, most, time.monotonic() - began))

        tuned = tuner.run(look if screen is not None else None)
    path = given.write_config_to
    if tuned.is_better and path is not None:
        with naming_file("--write-config-to", str(path)):
            path.write_text(tuned.configuration)
    if given.output in DOCUMENTS:
        say_document(msgspec.json.encode(tuned).decode(), given.output)
    else:
        show(tables(tuned), pipe_width=PIPE_WIDTH)
    if tuned.is_better and path is not None and given.output == "text":
        say("")
        say(f"wrote {path}; see beside your scheduler what it would change:")
        say(f"  {program('run')} --shadow --config {path} --kubeconfig ~/.kube/config")
        say(f"  {program('shadow')} report --insecure-skip-tls-verify")
    return 0 if tuned.is_better else 1


def _lab(given: argparse.Namespace) -> "LabFile":
    """Return the Lab to run: that of the file, or one of the recording."""
    from berth.insight.recording.runs import runs
    from berth.tools.lab.load import LabFile
    from berth.tools.lab.types import API_VERSION, KIND

    path = given.files[0]
    is_lab = path.suffix in LAB_SUFFIXES
    if is_lab and len(given.files) > 1:
        raise UsageError(f"{given.files[1]}: only one Lab file can be tuned")
    if is_lab:
        fields = dict(LabFile(path).fields)
    else:
        *_, last = runs(given.files)
        # The first recordings do not say which release they are like; there was one.
        config = {"emulatedVersion": RELEASES[0], **last.header.config}
        fields = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "workload": {"recording": {"files": [str(file.absolute()) for file in given.files]}},
            "policies": [{"name": "recorded", "config": config}],
        }
    if given.config:
        fields["policies"] = [{"name": "given", "config": {"file": str(given.config.absolute())}}]
    elif given.preset:
        fields["policies"] = [{"name": given.preset, "preset": given.preset}]
    directories = [str(folder.absolute()) for folder in known_plugins(given).directories]
    fields["pluginDirs"] = [*fields.get("pluginDirs", ()), *directories]
    return LabFile(path, fields)
