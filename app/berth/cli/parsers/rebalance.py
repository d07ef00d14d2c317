"""The arguments of ``berth rebalance``."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from berth.cli.flags.configuration import add_plugin_flags
from berth.runtime.terminal import positive, program

TIMEOUT: Final = 300


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    given = parser.parse_args(argv)
    if given.snapshot is not None and (given.kubeconfig or given.context):
        parser.error("--snapshot excludes --kubeconfig and --context")
    if given.snapshot is not None and given.apply:
        parser.error("--apply needs a cluster, not a snapshot")
    has_goal = given.for_pod or given.empty_nodes or given.mend_skew
    if given.uncordon and (has_goal or given.apply or given.snapshot is not None):
        parser.error("--uncordon excludes goals, --apply and --snapshot")
    if given.keep_cordoned and not (given.apply and given.empty_nodes):
        parser.error("--keep-cordoned needs --empty-nodes and --apply")
    if not has_goal and not given.uncordon:
        parser.error("name a goal: --for-pod, --empty-nodes or --mend-skew")
    return given


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program("rebalance"),
        allow_abbrev=False,
        description="Propose which pods to evict. The exit status is 0 if all goals are reached, 1"
        " if some are not or if --apply stops, and 2 for an error. Pods without a controller, of"
        " DaemonSets, mirror pods and critical pods are never evicted, and no more at a time than"
        " their PodDisruptionBudgets allow.",
    )
    goals = parser.add_argument_group("goals")
    goals.add_argument(
        "--for-pod", action="append", default=[], metavar="[NAMESPACE/]POD",
        help="make this pending pod fit; can be repeated",
    )  # fmt: skip
    goals.add_argument(
        "--empty-nodes", type=_number_or_names, metavar="N|NAME,NAME", default=(),
        help="empty so many nodes, the cheapest, or the nodes of these names",
    )  # fmt: skip
    goals.add_argument(
        "--mend-skew", action="store_true",
        help="move pods until the topology spread constraints of their workloads are kept",
    )  # fmt: skip
    where = parser.add_argument_group("the cluster")
    where.add_argument(
        "--snapshot", type=Path, metavar="FILE",
        help="read a snapshot, or a List from `kubectl get -o json`, from this file; .gz is"
        " supported",
    )  # fmt: skip
    where.add_argument(
        "--kubeconfig", metavar="FILE",
        help="list from this API server; default: $KUBECONFIG, or what berth up wrote",
    )  # fmt: skip
    where.add_argument(
        "--context", metavar="NAME",
        help="context of the kubeconfig to use; default: the current one",
    )  # fmt: skip
    where.add_argument(
        "--config", type=Path, metavar="FILE",
        help="the configuration of the scheduler; default: that of the snapshot, or the default",
    )  # fmt: skip
    add_plugin_flags(parser)
    parser.add_argument(
        "--apply", action="store_true",
        help="evict the pods, wait for ready ones between the rounds, and propose anew when"
        " something goes otherwise, until the goals are reached; then uncordon the nodes",
    )  # fmt: skip
    parser.add_argument(
        "--keep-cordoned", action="store_true",
        help="with --empty-nodes and --apply: leave the emptied nodes cordoned, to remove them",
    )  # fmt: skip
    parser.add_argument(
        "--uncordon", action="store_true",
        help="uncordon the nodes that an --apply which was killed has left cordoned, and exit",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", type=positive, default=TIMEOUT, metavar="SECONDS",
        help="how long --apply waits for each round, and for an API server that does not answer;"
        " default %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", choices=["text", "json"], default="text", help="output format"
    )
    return parser


def _number_or_names(text: str) -> int | tuple[str, ...]:
    if text.isdecimal():
        return positive(text)
    return tuple(filter(None, (name.strip() for name in text.split(","))))
