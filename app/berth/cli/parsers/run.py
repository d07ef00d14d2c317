"""The arguments of ``berth run``."""

import argparse
from collections.abc import Sequence
from typing import Final

from berth.cli.flags import configuration, extender_port, kube_scheduler, recording
from berth.runtime.terminal import program

EXTENDER: Final = "extender-"
"""How the flags of the extender port begin."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse *argv*; ``options`` has the flags of kube-scheduler, as its Options."""
    parser = kube_scheduler.make_parser(program("run"))
    extender_port.add_flags(parser, prefix=EXTENDER, default=None)
    configuration.add_plugin_flags(parser)
    configuration.add_preset_flag(parser)
    parser.add_argument(
        "--serve-ui", action="store_true",
        help="Serve the page below /ui/ of the secure port, to who may get these paths.",
    )  # fmt: skip
    idle = parser.add_mutually_exclusive_group()
    idle.add_argument(
        "--no-scheduling", action="store_true",
        help="Do not schedule, write, or take part in leader election; only answer requests"
        " such as /simulate.",
    )  # fmt: skip
    idle.add_argument(
        "--shadow", action="store_true",
        help="Do not schedule, write, or take part in leader election; decide for the pods that"
        " another scheduler schedules under the schedulerNames of the profiles, and compare: see"
        " `berth shadow`.",
    )  # fmt: skip
    recording.add_flags(parser)
    given = parser.parse_args(kube_scheduler.spelled(argv))
    given.options = kube_scheduler.checked_options(parser, given)
    return given
