"""The arguments of ``berth extender``."""

import argparse
from collections.abc import Sequence

from berth.cli.flags import configuration, extender_port
from berth.runtime.addresses import EXTENDER_PORT
from berth.runtime.terminal import program


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=program("extender"),
        allow_abbrev=False,
        description="Answer kube-scheduler as its extender: filter, prioritize, preempt and bind at"
        " /extender/VERB by the first profile of the configuration, at /extender/PROFILE/VERB by"
        " that schedulerName's. The configuration is read again when its file changes, and on"
        " SIGHUP. Nothing is scheduled and no leader is elected; of several replicas, each knows"
        " what another has bound once its watches show it.",
    )
    parser.add_argument(
        "--config", default="", metavar="FILE", help="Read the configuration from this file."
    )
    parser.add_argument(
        "--kubeconfig", default="", metavar="FILE",
        help="The kubeconfig of the API server; takes precedence over the configuration.",
    )  # fmt: skip
    parser.add_argument(
        "--master",
        default="",
        metavar="URL",
        help="The address of the API server; takes precedence over both.",
    )
    parser.add_argument("-v", "--v", type=int, default=0, metavar="N", help="Log level.")
    extender_port.add_flags(parser, default=EXTENDER_PORT)
    configuration.add_plugin_flags(parser)
    configuration.add_preset_flag(parser)
    return parser.parse_args(argv)
