"""The arguments of ``berth up``."""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from berth.cli.flags import configuration, recording
from berth.cli.flags.embedded_cluster import add_cluster_flags, add_node_flags
from berth.runtime.addresses import UI_PORT, UP_PORT
from berth.runtime.terminal import port, program

SAMPLE_NODES: Final = 20
DEFAULT_NAMESPACE: Final = "default"


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("up"), allow_abbrev=False)
    add_node_flags(parser, nodes=SAMPLE_NODES, besides="--node-group")
    parser.add_argument(
        "--node-group", type=Path, nargs="+", action="extend", default=[], metavar="FILE",
        help="scale the node groups in these files: nodes are added for pods that fit nowhere, and"
        " removed when nobody needs them",
    )  # fmt: skip
    parser.add_argument(
        "--load", type=_source, nargs="+", action="extend", default=[], metavar="FILE",
        help="create the objects in these YAML or JSON manifests: files, folders with all that is"
        " below them, or - for standard input. What other objects need is created first",
    )  # fmt: skip
    parser.add_argument(
        "--namespace", default=DEFAULT_NAMESPACE, metavar="NAME",
        help="namespace of loaded objects without one, created if necessary; default: %(default)s",
    )  # fmt: skip
    parser.add_argument("--sample", action="store_true", help="create a sample workload")
    parser.add_argument(
        "--scenario", type=Path, metavar="FILE",
        help="run the steps of this file on its cluster, and say what came of them. The status is 1"
        " if an expectation is not met",
    )  # fmt: skip
    parser.add_argument(
        "--speed", type=_speed, metavar="N",
        help="with --scenario: run at most N times as fast as real time; 0: as fast as possible."
        " Default: what the file says",
    )  # fmt: skip
    parser.add_argument(
        "--exit", action="store_true", help="with --scenario: end with its last step"
    )
    add_cluster_flags(parser)
    parser.add_argument(
        "--debug-port", type=port, default=UP_PORT, metavar="PORT",
        help="port of the scheduler on loopback, for berth explain; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--ui-port", type=port, default=UI_PORT, metavar="PORT",
        help="port of the page on loopback; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--config", default="",
        help="read the configuration from this file; reloaded on SIGHUP, and when it or a file"
        " in --plugin-dir changes",
    )  # fmt: skip
    configuration.add_preset_flag(parser)
    configuration.add_plugin_flags(parser)
    recording.add_flags(parser)
    parser.add_argument(
        "--exit-when-idle", action="store_true",
        help="stop when every pod has a node or cannot have one; the status is 0 if all pods were"
        " placed, else 1. Pods that a scheduling gate holds back do not count. Refused objects are"
        " reported, and change the status only if they are pods or make pods",
    )  # fmt: skip
    parser.add_argument(
        "-v", type=int, default=0, help="log level; 4 and higher log debug messages"
    )
    given = parser.parse_args(argv)
    if given.scenario is not None:
        _check_scenario(parser, given)
    elif given.exit or given.speed is not None:
        parser.error("--speed and --exit require --scenario")
    return given


def _check_scenario(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Refuse flags that say what the file of ``--scenario`` says."""
    for name in (
        "nodes", "node_group", "node_template", "kubelet_config", "stages", "load", "sample",
        "config", "preset", "exit_when_idle", "record",
    ):  # fmt: skip
        if getattr(given, name) != parser.get_default(name):
            flag = f"--{name.replace('_', '-')}"
            parser.error(f"{flag} cannot be combined with --scenario, which describes all of it")
    if given.data_dir is not None:
        parser.error("--data-dir cannot be combined with --scenario, which begins anew")


def _speed(text: str) -> float:
    """Read an argument that is a number and not negative."""
    number = float(text)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} must be a number from 0 on")
    return number


def _source(text: str) -> str:
    """Read an argument of ``--load``."""
    if text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(
            f"{text}: manifests are not downloaded, so that what runs is what you have seen;"
            f" use `curl -L {text} | berth up --load -`, or run `kubectl apply -f {text}` later"
        )
    return text
