"""The arguments of ``berth simulate``."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from berth.cli.flags import running_scheduler
from berth.cli.flags.configuration import add_plugin_flags
from berth.runtime.terminal import positive, program
from berth.scheduler.config.presets import PRESETS

LONGEST_WEIGHT: Final = 10
"""Digits; what is too large nevertheless, the question refuses."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    given = parser.parse_args(argv)
    asks = given.server or given.kubeconfig
    if sum(source is not None for source in (given.snapshot, asks, given.source)) > 1:
        parser.error("--snapshot, --server, --kubeconfig and -f exclude each other")
    if (given.source is None) != (given.target is None):
        parser.error("-f requires -o, and -o requires -f")
    for flag in ("", "compare_"):
        if getattr(given, f"{flag}config") and getattr(given, f"{flag}preset"):
            spelled = flag.replace("_", "-")
            parser.error(f"--{spelled}preset and --{spelled}config: give one of them")
    if given.replicas is not None and not (given.template or given.like):
        parser.error("--replicas requires --template or --like")
    if given.count is not None and not given.add_nodes:
        parser.error("--count requires --add-nodes")
    return given


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program("simulate"),
        allow_abbrev=False,
        description="Answer what-if questions. The exit status is 0 if all pods have a node, 1"
        " if some do not, and 2 for an error. TYPE is a file with a Node, or the"
        " name of a node to copy.",
    )
    where = parser.add_argument_group(
        "the cluster",
        "By default the cluster of a running scheduler, found as berth explain finds it.",
    )
    where.add_argument(
        "--snapshot", type=Path, metavar="FILE",
        help="read a snapshot, or a List from `kubectl get -o json`, from this file; .gz is"
        " supported",
    )  # fmt: skip
    running_scheduler.add_flags(
        where,
        kubeconfig=f"with --server: {running_scheduler.CREDENTIALS}. Without: list from this API"
        " server, and use the default configuration",
    )
    add_plugin_flags(parser)
    ask = parser.add_argument_group("what if")
    ask.add_argument(
        "--pod", type=Path, action="append", default=[], metavar="FILE",
        help="place these Pods; other objects in the file are used as with --template",
    )  # fmt: skip
    ask.add_argument(
        "--template", type=Path, action="append", default=[], metavar="FILE",
        help="place the pods of these Deployments, StatefulSets, DaemonSets, Jobs and so on, or"
        " copies of a Pod; the file may contain any objects, such as the output of helm"
             " template; - reads standard input",
    )  # fmt: skip
    ask.add_argument(
        "--like", action="append", default=[], metavar="NAMESPACE/NAME",
        help="place copies of this pod of the cluster",
    )  # fmt: skip
    ask.add_argument(
        "--replicas", type=positive, metavar="N",
        help="number of replicas for each --template except DaemonSets, and of copies of --like",
    )  # fmt: skip
    ask.add_argument(
        "-n", "--namespace", default="", metavar="NAME",
        help="namespace of objects in --pod and --template without one; default: default",
    )  # fmt: skip
    ask.add_argument(
        "--no-pending", action="store_true", help="ignore pods that are already pending"
    )
    ask.add_argument("--add-nodes", metavar="TYPE", help="add nodes")
    ask.add_argument(
        "--count", type=positive, metavar="N", help="number of nodes to add; default: 1"
    )
    ask.add_argument(
        "--find-nodes", metavar="TYPE", help="find how many of these nodes are missing"
    )
    for flag, does in (
        ("remove-node", "remove nodes and place their pods elsewhere"),
        ("cordon-node", "cordon nodes"),
    ):
        ask.add_argument(
            f"--{flag}", action="append", default=[], metavar="NAME",
            help=f"{does}; accepts NAME,NAME and patterns such as node-*",
        )  # fmt: skip
        ask.add_argument(
            f"--{flag}-selector", default="", metavar="SELECTOR",
            help="also the nodes with these labels, as kubectl drain --selector",
        )  # fmt: skip
    ask.add_argument(
        "--remove-pod", action="append", default=[], metavar="NAME", help="remove this pod"
    )
    ask.add_argument(
        "--find-removable", nargs="?", const="", metavar="NAME",
        help="find the nodes that can go, among these or among all; names as for --remove-node",
    )  # fmt: skip
    ask.add_argument(
        "--find-removable-selector",
        default="",
        metavar="SELECTOR",
        help="find the nodes that can go, among those with these labels",
    )
    ask.add_argument(
        "--repack", action="store_true",
        help="place all movable running pods again, as if they were not running",
    )  # fmt: skip
    ask.add_argument("--config", type=Path, metavar="FILE", help="use this configuration")
    ask.add_argument("--compare-config", type=Path, metavar="FILE", help="compare with this one")
    ask.add_argument("--preset", choices=PRESETS, help="use this preset")
    ask.add_argument("--compare-preset", choices=PRESETS, help="compare with this one")
    for flag, does in (("weight", "give"), ("compare-weight", "compare with giving")):
        ask.add_argument(
            f"--{flag}", type=_weight, action="append", default=[], metavar="[PROFILE/]PLUGIN=N",
            help=f"{does} this weight to the scores of this plugin; with 0 it does not score;"
            " default of PROFILE: default-scheduler",
        )  # fmt: skip
    ask.add_argument(
        "--profile", default="", metavar="NAME",
        help="use this profile for the pods in question, instead of their spec.schedulerName",
    )  # fmt: skip
    ask.add_argument(
        "--compare-profile", default="", metavar="NAME", help="compare with this profile"
    )
    ask.add_argument(
        "--preemption", action="store_true", help="allow the eviction of pods of lower priority"
    )
    parser.add_argument(
        "--seed", type=int,
        help="choose among the best nodes at random, with this seed; default: the first by name",
    )  # fmt: skip
    parser.add_argument(
        "--output", choices=["table", "json"], default="table", help="output format"
    )
    recorded = parser.add_argument_group("recorded sequences")
    recorded.add_argument(
        "-f", dest="source", type=Path, metavar="IN",
        help="read scenarios with lists of pods, as JSON lines, from this file; .gz is supported",
    )  # fmt: skip
    recorded.add_argument(
        "-o", dest="target", type=Path, metavar="OUT",
        help="write the assignments to this file, as JSON lines",
    )  # fmt: skip
    return parser


def _weight(text: str) -> tuple[str, str, int]:
    """Return profile, empty if none is named, plugin and weight."""
    name, _, number = text.rpartition("=")
    profile, slash, plugin = name.rpartition("/")
    if not plugin or (slash and not profile):
        raise argparse.ArgumentTypeError(f"{text!r} must be [PROFILE/]PLUGIN=N")
    if not (number.isascii() and number.isdecimal() and len(number) <= LONGEST_WEIGHT):
        raise argparse.ArgumentTypeError(f"{text!r}: {number!r} must be a number, 0 or more")
    return profile, plugin, int(number)
