"""``berth bench``: what scheduling costs on this machine."""

import argparse
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Final

from berth import log
from berth.bench import (
    cluster,
    crowded,
    engine,
    extender,
    group_preemption,
    groups,
    preemption,
    steady,
    throughput,
)
from berth.bench.instructions import InstructionClock, counter_of, why_not
from berth.bench.process import BenchError
from berth.bench.results import HEADER, Figure, Machine, Step, as_json, as_row, figure, repeated
from berth.clock import CpuClock, RealClock
from berth.event_loop import in_loop
from berth.terminal import CommandError, positive, program, say, say_json
from berth_plugins.registry import IN_TREE

FEW: Final = 5
"""Runs of what takes seconds."""
ONE: Final = 1
"""Runs of what takes minutes."""

CMD_HELP: Final = "measure this scheduler command instead; {kubeconfig} in it is replaced"

Steps = Callable[[argparse.Namespace], Iterable[Step]]
"""Makes of the arguments what is measured, step by step; all runs of a step come one after the
other."""


def main(argv: Sequence[str]) -> int:
    given = _parser().parse_args(argv)
    log.setup(logging.ERROR)
    command = " ".join((program("bench"), *argv))
    try:
        return in_loop(_measure(given, command))
    except BenchError as exc:
        raise CommandError(str(exc)) from exc


async def _measure(given: argparse.Namespace, command: str) -> int:
    machine, is_table = Machine.here(), given.output == "table"
    if is_table:
        say(f"{machine}; runs: {given.runs}")
        if reason := why_not():
            say(f"Instructions are not counted: {reason}")
        say(HEADER)
    for step in given.steps(given):
        async for each in repeated(step, given.runs):
            if is_table:
                say(as_row(each))
            else:
                say_json(as_json(each, bench=given.what, command=command, machine=machine))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program("bench"), allow_abbrev=False)
    kinds = parser.add_subparsers(dest="what", required=True, metavar="WHAT")

    def kind(name: str, does: str, steps: Steps, *, runs: int) -> argparse.ArgumentParser:
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
        added.set_defaults(steps=steps)
        return added

    one = kind("engine", "measure decisions in one process", _engine, runs=FEW)
    one.add_argument("--pods", type=int, default=10_000, help="number of running pods")
    one.add_argument("--repetitions", type=positive, default=300)
    many = kind("throughput", "measure a scheduler process", _throughput, runs=ONE)
    many.add_argument("--pods", type=positive, default=3_000, help="number of pending pods")
    many.add_argument(
        "--workload", choices=[*throughput.WORKLOADS, crowded.NAME, "all"], default="plain"
    )
    many.add_argument(
        "--kubeconfig", type=Path, metavar="FILE",
        help="an API server without node controllers; default: an embedded one",
    )  # fmt: skip
    many.add_argument("--cmd", default="", metavar="COMMAND", help=CMD_HELP)
    even = steady.Settings()
    at_rate = kind("steady", "measure how long pods wait at a given rate", _steady, runs=ONE)
    at_rate.add_argument(
        "--rate", type=float, default=even.rate, help=f"pods per second; default: {even.rate:g}"
    )
    at_rate.add_argument(
        "--seconds", type=float, default=even.seconds, help=f"default: {even.seconds:g}"
    )
    at_rate.add_argument(
        "--lifetime", type=float, default=even.lifetime, metavar="SECONDS",
        help=f"delete each pod after so long; default: {even.lifetime:g}",
    )  # fmt: skip
    at_rate.add_argument(
        "--poisson", action="store_true", help="create pods at random moments, not evenly"
    )
    at_rate.add_argument("--seed", type=int, default=even.seed, help="of the random moments")
    at_rate.add_argument("--cmd", default="", metavar="COMMAND", help=CMD_HELP)
    asked = kind("extender", "measure the extender over HTTP", _extender, runs=ONE)
    asked.add_argument("--repetitions", type=positive, default=300)
    together = kind("groups", "measure pod groups", _groups, runs=ONE)
    together.add_argument("--pods", type=int, default=10_000, help="number of running pods")
    defaults = cluster.Settings()
    large = kind("cluster", "measure a large `berth up`", _cluster, runs=ONE)
    large.add_argument("--pods", type=positive, default=defaults.pods)
    large.add_argument("--watchers", type=positive, default=defaults.watchers)
    large.add_argument(
        "--keep", action="store_true", help="with `--data-dir`, and start it again at the end"
    )
    return parser


def _engine(given: argparse.Namespace) -> Iterable[Step]:
    nodes, repetitions = given.nodes, given.repetitions
    of_engine = partial(engine.run, IN_TREE, num_nodes=nodes, num_pods=given.pods)
    of_preemption = partial(preemption.run, IN_TREE, num_nodes=nodes)
    return [
        partial(_decisions, partial(run, repetitions=repetitions), repetitions)
        for run in (of_engine, of_preemption)
    ]


async def _decisions(
    run: Callable[..., Iterator[engine.Result]], repetitions: int, **at: int | str
) -> AsyncIterator[Figure]:
    """Measure by CPU time, and once more by instructions where they are counted."""
    counter = counter_of()
    counted = run(clock=InstructionClock(counter)) if counter else repeat(None)
    for result, instructions in zip(run(clock=CpuClock()), counted, strict=False):
        yield figure(
            result.workload,
            result.median,
            "µs",
            outcome=f"{result.placed}/{repetitions} placed, worst {result.worst:.0f} µs",
            instructions=instructions.median / 1e6 if instructions else None,
            **at,
        )
    if counter:
        counter.close()


def _throughput(given: argparse.Namespace) -> Iterable[Step]:
    settings = throughput.Settings(given.nodes, given.pods, given.kubeconfig, given.cmd)
    if given.workload == crowded.NAME:
        return [partial(_crowded, settings)]

    async def figures(workload: str) -> AsyncIterator[Figure]:
        result = await throughput.measure(workload, settings, clock=RealClock())
        for each in result.figures():
            yield each

    names = [*throughput.WORKLOADS] if given.workload == "all" else [given.workload]
    return [partial(figures, name) for name in names]


def _steady(given: argparse.Namespace) -> Iterable[Step]:
    settings = steady.Settings(
        given.nodes, given.rate, given.seconds, given.lifetime, given.poisson, given.seed, given.cmd
    )
    return [lambda: steady.measure(settings, clock=RealClock())]


def _extender(given: argparse.Namespace) -> Iterable[Step]:
    return [
        lambda: extender.measure(
            nodes=given.nodes, repetitions=given.repetitions, clock=RealClock()
        )
    ]


def _groups(given: argparse.Namespace) -> Iterable[Step]:
    return [
        lambda: groups.measure(
            IN_TREE, clock=CpuClock(), num_nodes=given.nodes, num_pods=given.pods
        ),
        lambda: group_preemption.measure(IN_TREE, clock=CpuClock(), num_nodes=given.nodes),
    ]


def _cluster(given: argparse.Namespace) -> Iterable[Step]:
    settings = cluster.Settings(given.nodes, given.pods, given.watchers, is_kept=given.keep)
    return [lambda: cluster.measure(settings, clock=RealClock())]


async def _crowded(settings: throughput.Settings) -> AsyncIterator[Figure]:
    """Pods alone, and then the same ones mixed with many that fit nowhere."""
    results = [result async for result in crowded.measure(settings, clock=RealClock())]
    for result in results:
        outcome = f"{result.bound}/{result.pods} bound, {result.told} told, {result.events} events"
        for name, seconds in (
            ("first bind to last", result.seconds),
            ("first bind to last, CPU", result.cpu_binding),
            ("start to last bind", result.since_start),
            ("start to last bind, CPU", result.cpu_before + result.cpu_binding),
        ):
            yield figure(name, seconds, "s", outcome=outcome, workload=result.workload)
    alone, crowd = results
    for name, ratio in (
        ("first bind to last", crowd.seconds / alone.seconds),
        ("first bind to last, CPU", crowd.cpu_binding / max(alone.cpu_binding, 0.01)),
        ("start to last bind", crowd.since_start / alone.since_start),
    ):
        yield figure(f"{name}, crowded relative to alone", ratio, "times")
