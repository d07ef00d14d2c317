"""``berth version``, and what ``berth run --version`` prints."""

import argparse
import platform
from collections.abc import Sequence

from berth.release import RELEASE, version
from berth.terminal import program, say


def main(argv: Sequence[str]) -> int:
    """Print the version; with ``--raw`` also what it is like and what it runs on."""
    parser = argparse.ArgumentParser(prog=program("version"), allow_abbrev=False)
    parser.add_argument(
        "--raw", action="store_true",
        help="also print the compatible kube-scheduler release, and the platform",
    )  # fmt: skip
    line = f"berth {version()}"
    if parser.parse_args(argv).raw:
        runs_on = f"{platform.python_implementation()} {platform.python_version()}"
        line += f" (kube-scheduler {RELEASE}; {runs_on}; {platform.platform()})"
    say(line)
    return 0
