"""``berth version``, and what ``berth run --version`` prints."""

import argparse
import platform
from collections.abc import Sequence

from berth.runtime.release import RELEASE, version
from berth.runtime.terminal import program, say


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("version"), allow_abbrev=False)
    parser.add_argument(
        "--raw", action="store_true",
        help="also print the compatible kube-scheduler release, and the platform",
    )  # fmt: skip
    return parser.parse_args(argv)


def run(given: argparse.Namespace) -> int:
    tell(raw=given.raw)
    return 0


def tell(*, raw: bool) -> None:
    """Print the version; with *raw* also what it is like and what it runs on."""
    line = f"berth {version()}"
    if raw:
        runs_on = f"{platform.python_implementation()} {platform.python_version()}"
        line += f" (kube-scheduler {RELEASE}; {runs_on}; {platform.platform()})"
    say(line)
