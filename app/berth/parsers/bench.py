"""The arguments of ``berth bench``."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from berth.bench.names import CLUSTER_PODS, CLUSTER_WATCHERS, CROWDED, WORKLOADS
from berth.terminal import positive, program

FEW: Final = 5
"""Runs of what takes seconds."""
ONE: Final = 1
"""Runs of what takes minutes."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse *argv*; ``command`` is the whole command line, for results."""
    given = _parser().parse_args(argv)
    given.command = " ".join((program("bench"), *argv))
    return given


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program("bench"), allow_abbrev=False)
    kinds = parser.add_subparsers(dest="what", required=True, metavar="WHAT")

    def kind(name: str, does: str, *, runs: int) -> argparse.ArgumentParser:
        added = kinds.add_parser(name, allow_abbrev=False, help=does)
        added.add_argument("--nodes", type=positive, default=5_000, help="default: 5000")
        added.add_argument(
            "--runs", type=positive, default=runs,
            help=f"measure so many times, and print medians; default: {runs}",
        )  # fmt: skip
        added.add_argument(
            "--output", choices=["table", "json"], default="table",
            help="output format; json: a line for each figure",
        )  # fmt: skip
        return added

    one = kind("engine", "measure decisions in one process", runs=FEW)
    one.add_argument("--pods", type=int, default=10_000, help="number of running pods")
    one.add_argument("--repetitions", type=positive, default=300)
    many = kind("throughput", "measure a scheduler process", runs=ONE)
    many.add_argument("--pods", type=positive, default=3_000, help="number of pending pods")
    many.add_argument("--workload", choices=[*WORKLOADS, CROWDED, "all"], default="plain")
    many.add_argument(
        "--kubeconfig", type=Path, metavar="FILE",
        help="an API server without node controllers; default: an embedded one",
    )  # fmt: skip
    many.add_argument(
        "--cmd", default="", metavar="COMMAND",
        help="measure this scheduler command instead; {kubeconfig} in it is replaced",
    )  # fmt: skip
    asked = kind("extender", "measure the extender over HTTP", runs=ONE)
    asked.add_argument("--repetitions", type=positive, default=300)
    together = kind("groups", "measure pod groups", runs=ONE)
    together.add_argument("--pods", type=int, default=10_000, help="number of running pods")
    large = kind("cluster", "measure a large `berth up`", runs=ONE)
    large.add_argument("--pods", type=positive, default=CLUSTER_PODS)
    large.add_argument("--watchers", type=positive, default=CLUSTER_WATCHERS)
    large.add_argument(
        "--keep", action="store_true", help="with `--data-dir`, and start it again at the end"
    )
    sized = kind("size", "measure the memory of a scheduler of a large cluster", runs=ONE)
    sized.add_argument(
        "--pods", type=positive, default=150_000, help="number of running pods; default: 150000"
    )
    sized.add_argument(
        "--rate", type=positive, default=2_000, help="changes per second; default: 2000"
    )
    sized.add_argument(
        "--seconds", type=positive, default=20, help="how long they last; default: 20"
    )
    return parser
