"""``berth bench``: what scheduling costs on this machine."""

import argparse
import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from berth.cli import importing
from berth.runtime import log
from berth.runtime.terminal import (
    DOCUMENTS,
    CommandError,
    note,
    positive,
    program,
    say,
    say_document,
)
from berth.tools.bench.names import (
    CLUSTER_PODS,
    CLUSTER_WATCHERS,
    CROWDED,
    CROWDED_DIFFERENT,
    WORKLOADS,
)

FEW: Final = 5
"""Runs of what takes seconds."""
ONE: Final = 1
"""Runs of what takes minutes."""
PLANTED: Final = (50, 100, 200, 300, 400, 500)
SIZES: Final = (1_000, 5_000, 20_000, 50_000, 130_000)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse *argv*; ``command`` is the whole command line, for results."""
    given = _parser().parse_args(argv)
    given.command = " ".join((program("bench"), *argv))
    return given


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program("bench"), allow_abbrev=False)
    kinds = parser.add_subparsers(dest="what", required=True, metavar="WHAT")

    def kind(
        name: str, does: str, *, runs: int, nodes: Sequence[int] | None = ()
    ) -> argparse.ArgumentParser:
        added = kinds.add_parser(name, allow_abbrev=False, help=does)
        if nodes is None:
            added.set_defaults(nodes=None)
        elif nodes:
            added.add_argument(
                "--nodes", type=node_counts, default=nodes, metavar="NODES[,NODES...]",
                help=f"sizes of the cluster; default: {','.join(map(str, nodes))}",
            )  # fmt: skip
        else:
            added.add_argument(
                "--nodes", type=positive, default=5_000, help="size of the cluster; default: 5000"
            )
        added.add_argument(
            "--runs", type=positive, default=runs,
            help=f"measure so many times, and print medians; default: {runs}",
        )  # fmt: skip
        added.add_argument(
            "--output", choices=["table", *DOCUMENTS], default="table",
            help="output format; json, yaml: a line or document for each figure",
        )  # fmt: skip
        return added

    one = kind("engine", "measure decisions in one process", runs=FEW)
    _add_running_pods(one)
    _add_repetitions(one, "decisions of each row", default=300)
    many = kind("throughput", "measure a scheduler process", runs=ONE)
    many.add_argument(
        "--pods", type=positive, default=3_000, help="number of pending pods; default: 3000"
    )
    many.add_argument(
        "--workload", default="plain", choices=[*WORKLOADS, CROWDED, CROWDED_DIFFERENT, "all"],
        help="kind of pending pods; crowded: plain ones, and ten times as many that fit nowhere;"
        " crowded-different: no two of those are equal; all: each but these; default: plain",
    )  # fmt: skip
    _add_kubeconfig(many)
    _add_cmd(many)
    upstream = kind(
        "scheduler_perf", "run test cases of kube-scheduler's benchmark", runs=ONE, nodes=None
    )
    upstream.add_argument(
        "workload", nargs="*", metavar="NAME[/WORKLOAD]",
        help="a test case, such as SchedulingBasic, which means its first workload that has a"
        " threshold, or one of its workloads, such as SchedulingBasic/5000Nodes_10000Pods",
    )  # fmt: skip
    upstream.add_argument("--list", action="store_true", help="list all workloads")
    _add_kubeconfig(upstream)
    _add_cmd(upstream)
    at_rate = kind("steady", "measure how long pods wait at a given rate", runs=ONE)
    at_rate.add_argument("--rate", type=amount, default=300.0, help="pods per second; default: 300")
    at_rate.add_argument(
        "--seconds", type=amount, default=60.0, help="how long pods are created; default: 60"
    )
    at_rate.add_argument(
        "--lifetime", type=amount, default=10.0, metavar="SECONDS",
        help="delete each pod after so long; default: 10",
    )  # fmt: skip
    at_rate.add_argument(
        "--poisson", action="store_true", help="create pods at random moments, not evenly"
    )
    at_rate.add_argument("--seed", type=int, default=1, help="of the random moments; default: 1")
    at_rate.add_argument(
        "--waiting", type=pod_count, default=0, metavar="PODS",
        help="pods that fit nowhere and wait all the time; default: 0",
    )  # fmt: skip
    at_rate.add_argument(
        "--node-changes", type=amount, default=0.0, metavar="RATE",
        help="changes of nodes per second; default: none",
    )  # fmt: skip
    at_rate.add_argument(
        "--turns", action="store_true",
        help="ask the scheduler all that it answers, and print the longest turns of its event loop,"
        " in CPU time",
    )  # fmt: skip
    _add_cmd(at_rate)
    first = kind("startup", "measure from process start, or Lease, to the first bind", runs=FEW)
    _add_cmd(first)
    sizes = kind(
        "scale", "measure decisions at several sizes of the cluster", runs=FEW, nodes=SIZES
    )
    sizes.add_argument(
        "--pods", type=pod_counts, default=[10_000], metavar="PODS[,PODS...]",
        help="numbers of running pods; default: 10000",
    )  # fmt: skip
    _add_repetitions(sizes, "decisions of each row", default=100)
    urgent = kind("preemption", "measure a scheduler process whose pods preempt", runs=ONE)
    urgent.add_argument(
        "--preemptors", type=positive, default=1_000, help="number of pending pods; default: 1000"
    )
    _add_kubeconfig(urgent)
    _add_cmd(urgent)
    asked = kind("extender", "measure the extender over HTTP", runs=ONE)
    _add_repetitions(asked, "requests of each row", default=300)
    together = kind("groups", "measure pod groups", runs=ONE)
    _add_running_pods(together)
    large = kind("cluster", "measure a large `berth up`", runs=ONE)
    large.add_argument(
        "--pods", type=positive, default=CLUSTER_PODS,
        help=f"number of pods to create; default: {CLUSTER_PODS}",
    )  # fmt: skip
    large.add_argument(
        "--watchers", type=positive, default=CLUSTER_WATCHERS,
        help=f"clients that watch all pods; default: {CLUSTER_WATCHERS}",
    )  # fmt: skip
    large.add_argument(
        "--keep", action="store_true",
        help="start `berth up` with `--data-dir`, and start it again at the end",
    )  # fmt: skip
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
    proven = kind(
        "certificates", "measure proofs of how many nodes are needed", runs=ONE, nodes=PLANTED
    )
    proven.add_argument(
        "--seconds", type=amount, default=20.0,
        help="what the solver may take for each cluster; default: 20",
    )  # fmt: skip
    full = kind("packing", "compare with a solver on full clusters", runs=ONE, nodes=None)
    full.add_argument(
        "--seconds", type=amounts, default=[1.0, 10.0], metavar="SECONDS[,SECONDS...]",
        help="what the solver may take for each cluster; default: 1,10",
    )  # fmt: skip
    full.add_argument("--seeds", type=positive, default=1, help="clusters of each kind; default: 1")
    seen = kind("watch", "measure what the changes of a cluster cost a scheduler", runs=ONE)
    seen.add_argument(
        "--pods", type=positive, default=50_000, help="number of running pods; default: 50000"
    )
    seen.add_argument(
        "--rate", type=positive, default=2_000, help="changes per second; default: 2000"
    )
    seen.add_argument(
        "--seconds", type=positive, default=10, help="for each kind of changes; default: 10"
    )
    shared = kind("shards", "measure several active schedulers, and let them fail", runs=ONE)
    shared.add_argument(
        "--part", default="all", choices=["soak", "cost", "quality", "all"],
        help="soak: what is broken while replicas fail; cost: CPU of each replica per pod; quality:"
        " where pods go at 50, 80 and 95%% fill; default: all",
    )  # fmt: skip
    shared.add_argument(
        "--pods", type=positive, default=10_000, help="number of pods; default: 10000"
    )
    shared.add_argument(
        "--replicas", type=node_counts, default=[1, 2, 4, 8], metavar="REPLICAS[,REPLICAS...]",
        help="numbers of replicas, of which soak takes the last; default: 1,2,4,8",
    )  # fmt: skip
    shared.add_argument(
        "--faults",
        type=positive,
        default=12,
        help="faults in soak, each of a replica or two; default: 12",
    )
    shared.add_argument("--seed", type=int, default=1, help="of what happens; default: 1")
    return parser


def _add_running_pods(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pods", type=pod_count, default=10_000, help="number of running pods; default: 10000"
    )


def _add_repetitions(parser: argparse.ArgumentParser, what: str, *, default: int) -> None:
    parser.add_argument(
        "--repetitions", type=positive, default=default, help=f"{what}; default: {default}"
    )


def _add_kubeconfig(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="FILE",
        help="an API server without node controllers; default: an embedded one",
    )  # fmt: skip


def _add_cmd(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cmd", default="", metavar="COMMAND",
        help="measure this scheduler command instead; {kubeconfig} in it is replaced",
    )  # fmt: skip


def pod_count(text: str) -> int:
    """Read how many pods run, which may be none."""
    return positive(text) if text != "0" else 0


def pod_counts(text: str) -> list[int]:
    """Read numbers of running pods, with commas between them."""
    return [pod_count(count) for count in text.split(",")]


def node_counts(text: str) -> list[int]:
    """Read sizes of clusters, with commas between them."""
    return [positive(count) for count in text.split(",")]


def amount(text: str) -> float:
    """Read a rate or a duration."""
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} must be a number above 0")
    return number


def amounts(text: str) -> list[float]:
    """Read durations, with commas between them."""
    return [amount(part) for part in text.split(",")]


def run(given: argparse.Namespace) -> int:
    with importing():
        from berth.runtime.event_loop import in_loop
        from berth.tools.bench.process import BenchError

    log.setup(logging.ERROR)
    if given.what == "scheduler_perf" and given.list:
        _list_scheduler_perf()
        return 0
    try:
        return in_loop(_measure(given))
    except BenchError as exc:
        raise CommandError(str(exc)) from exc


async def _measure(given: argparse.Namespace) -> int:
    with importing():
        from msgspec.structs import replace

        from berth.tools.bench.instructions import why_not
        from berth.tools.bench.results import HEADER, Machine, as_json, as_row, repeated
        from berth.tools.bench.steps import STEPS
        from berth.tools.bench.targets import target

    steps, machine, is_table = STEPS[given.what](given), Machine.here(), given.output == "table"
    if is_table:
        say(f"{machine}; runs: {given.runs}")
    if reason := why_not():
        note(f"Instructions are not counted: {reason}")
    if is_table:
        say(HEADER)
    for step in steps:
        async for measured in repeated(step, given.runs):
            at_most = target(given.what, measured.label, given.nodes)
            figure = replace(measured, at_most=at_most)
            if is_table:
                say(as_row(figure))
            else:
                document = as_json(figure, bench=given.what, command=given.command, machine=machine)
                say_document(document, given.output)
    return 0


def _list_scheduler_perf() -> None:
    from berth.tools.bench.scheduler_perf.cases import CASES

    say("* is what a test case means without a workload")
    for name, case in CASES.items():
        for of_workload, workload in case.workloads.items():
            params = " ".join(f"{key}={value}" for key, value in case.params(workload).items())
            threshold = f" threshold={workload.threshold:g}" if workload.threshold else ""
            mark = "*" if of_workload == case.default else " "
            say(f"{mark} {name}/{of_workload}  {params}{threshold}")
