"""``berth simulate``: recorded sequences of pods, scheduled one after the other."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from app import log
from app.commands.terminal import UsageError
from app.offline.files import answer_all
from app.offline.simulate import simulate
from plugins.registry import IN_TREE


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="berth simulate", allow_abbrev=False)
    parser.add_argument(
        "-f", dest="source", type=Path, required=True, metavar="IN",
        help="scenarios with a list of pods, as JSON lines, .gz too",
    )  # fmt: skip
    parser.add_argument(
        "-o", dest="target", type=Path, required=True, metavar="OUT",
        help="where the assignments go, a JSON line each",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int,
        help="draw one of several best nodes, the same with every run; default: the smallest name",
    )  # fmt: skip
    given = parser.parse_args(argv)
    log.setup(logging.ERROR)
    problems = answer_all(
        given.source, given.target, lambda found: simulate(found, IN_TREE, seed=given.seed)
    )
    if problems:
        raise UsageError("\n".join(problems))
    return 0
