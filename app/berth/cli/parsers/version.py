"""The arguments of ``berth version``."""

import argparse
from collections.abc import Sequence

from berth.runtime.terminal import program


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("version"), allow_abbrev=False)
    parser.add_argument(
        "--raw", action="store_true",
        help="also print the compatible kube-scheduler release, and the platform",
    )  # fmt: skip
    return parser.parse_args(argv)
