"""``berth version``, and what ``berth run --version`` prints."""

import argparse
import platform

from berth.runtime.release import RELEASE, version
from berth.runtime.terminal import say


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
