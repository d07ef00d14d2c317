"""The arguments of ``berth lab``."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from berth.runtime.terminal import positive, program


def parse(argv: Sequence[str]) -> argparse.Namespace:
    return _parser().parse_args(argv)


def _parser() -> argparse.ArgumentParser:
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
        "-o", "--output", choices=["text", "json"], default="text",
        help="tables, or a JSON line for each policy",
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
    return parser
