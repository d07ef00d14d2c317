"""``berth extender``: answers other schedulers, and schedules nothing itself."""

import argparse
from collections.abc import Sequence
from functools import partial

from berth.cli import importing
from berth.cli.flags.configuration import add_plugin_flags, add_preset_flag, configuration_source
from berth.cli.flags.extender_port import add_extender_flags, extender_port
from berth.cli.flags.versions import add_emulated_version, with_versions
from berth.runtime import log
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
    add_extender_flags(parser, default=EXTENDER_PORT)
    add_plugin_flags(parser)
    add_preset_flag(parser)
    add_emulated_version(parser)
    return parser.parse_args(argv)


def run(given: argparse.Namespace) -> int:
    with importing():
        from berth.runtime.event_loop import in_loop
        from berth.service.extender_process import run_extender

    settings = extender_port(given)
    assert settings is not None, "the port has a default"
    adjust = partial(with_versions, emulated=given.emulated_version)
    source = configuration_source(given, adjust=adjust)
    loaded = source.load()
    log.setup_by_flags(given.v)
    return in_loop(
        run_extender(source, loaded, settings, kubeconfig=given.kubeconfig, master=given.master)
    )
