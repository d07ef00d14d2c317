"""``berth up``: embedded cluster, hollow nodes and scheduler in one process."""

import argparse
import logging
import random
from collections.abc import Sequence
from pathlib import Path

from app import log
from app.addresses import UP_PORT
from app.clock import RealClock
from app.commands import plugin_flags
from app.commands.nodes import (
    add_cluster_flags,
    add_node_flags,
    embedded_cluster,
    node_template,
)
from app.commands.terminal import in_loop, naming_port, port, say
from app.config import flags
from app.embedded.up import SAMPLE_NODES, Up, UpOptions


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="berth up", allow_abbrev=False)
    add_node_flags(parser, nodes=SAMPLE_NODES)
    parser.add_argument(
        "--load", type=Path, nargs="+", action="extend", default=[], metavar="FILE",
        help="create the objects of these manifests (YAML, several documents)",
    )  # fmt: skip
    parser.add_argument("--sample", action="store_true", help="create a sample workload")
    add_cluster_flags(parser)
    parser.add_argument(
        "--debug-port", type=port, default=UP_PORT, metavar="PORT",
        help="port of the scheduler on loopback, for berth explain; default %(default)s",
    )  # fmt: skip
    parser.add_argument("--config", default="", help="a KubeSchedulerConfiguration file")
    plugin_flags.add_preset_flag(parser)
    plugin_flags.add_flags(parser)
    parser.add_argument(
        "--exit-when-idle", action="store_true",
        help="stop when every pod has a node or cannot have one; 0 if all were placed",
    )  # fmt: skip
    parser.add_argument("-v", type=int, default=0, help="4 and more: log debug messages")
    given = parser.parse_args(argv)
    chosen = flags.parse(
        flags.make_parser("berth up"), [f"--config={given.config}"] if given.config else []
    )
    config, plugins = plugin_flags.configuration(
        chosen, plugin_flags.known_plugins(given), chosen_preset=given.preset
    )
    options = UpOptions(
        nodes=given.nodes,
        template=node_template(given.node_template),
        load=given.load,
        sample=given.sample,
        port=given.port,
        debug_port=given.debug_port,
        kubeconfig=given.kubeconfig_out,
        exit_when_idle=given.exit_when_idle,
    )
    log.setup(logging.DEBUG if given.v >= 4 else logging.WARNING)
    with naming_port(given.port, flag="--port"):
        service = Up(
            options,
            config,
            embedded_cluster(given),
            plugins=plugins,
            clock=RealClock(),
            rng=random.Random(),
            say=say,
        )
        return in_loop(service.run())
