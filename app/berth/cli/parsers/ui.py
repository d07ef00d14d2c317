"""The arguments of ``berth ui``."""

import argparse
from collections.abc import Sequence

from berth.cli.flags import running_scheduler
from berth.runtime.addresses import UI_PORT
from berth.runtime.terminal import port, program


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("ui"), allow_abbrev=False)
    running = parser.add_argument_group("a running scheduler")
    running_scheduler.add_flags(running)
    running_scheduler.add_service_flag(running)
    parser.add_argument(
        "--ui-port", type=port, default=UI_PORT, metavar="PORT",
        help="port of the page on loopback, another one if it is taken; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--no-browser", action="store_true", help="print the link only, do not open it"
    )
    given = parser.parse_args(argv)
    running_scheduler.check(parser, given)
    return given
