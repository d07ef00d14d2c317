"""``berth extender``: answers other schedulers, and schedules nothing itself."""

import argparse
from collections.abc import Sequence

from berth import log
from berth.assembly.extender_port import DEFAULT_PORT
from berth.assembly.extender_process import run_extender
from berth.event_loop import in_loop
from berth.flags import configuration, extender_port
from berth.terminal import program


def main(argv: Sequence[str]) -> int:
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
    extender_port.add_flags(parser, default=DEFAULT_PORT)
    configuration.add_plugin_flags(parser)
    configuration.add_preset_flag(parser)
    given = parser.parse_args(argv)
    settings = extender_port.settings(given)
    assert settings is not None, "the port has a default"
    source = configuration.source(given)
    loaded = source.load()
    log.setup_by_flags(given.v)
    return in_loop(
        run_extender(source, loaded, settings, kubeconfig=given.kubeconfig, master=given.master)
    )
