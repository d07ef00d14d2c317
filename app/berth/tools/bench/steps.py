"""What ``berth bench`` measures, step by step, as its arguments ask for it."""

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import repeat
from typing import Final

from berth.runtime.clock import CpuClock, RealClock
from berth.runtime.terminal import UsageError
from berth.tools.bench import (
    certificates,
    cluster,
    crowded,
    engine,
    extender,
    group_preemption,
    groups,
    preemption,
    preemptors,
    size,
    startup,
    steady,
    throughput,
    watch,
)
from berth.tools.bench.instructions import InstructionClock, counter_of
from berth.tools.bench.names import CROWDED, CROWDED_DIFFERENT, WORKLOADS
from berth.tools.bench.results import Figure, Step, figure, used_figure
from berth.tools.bench.scheduler_perf import measure as scheduler_perf
from berth.tools.bench.shards import cost, quality, soak
from berth.tools.bench.workloads import WORKLOADS as ENGINE_WORKLOADS
from berth_plugins.registry import IN_TREE

SCALED: Final = (
    "plain, all requests equal",
    "plain, all requests different",
    "required zone spread",
    "required zone affinity",
    "required anti-affinity on hostname",
)
"""The kinds of pods of ``berth bench scale``."""

Steps = Callable[[argparse.Namespace], Iterable[Step]]
"""Makes of the arguments what is measured, step by step; all runs of a step come one after the
other."""


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
    settings = throughput.Settings(
        given.nodes,
        given.pods,
        given.kubeconfig,
        given.cmd,
        hopeless_differ=given.workload == CROWDED_DIFFERENT,
    )
    if given.workload in (CROWDED, CROWDED_DIFFERENT):
        return [partial(_crowded, settings)]

    async def figures(workload: str) -> AsyncIterator[Figure]:
        result = await throughput.measure(workload, settings, clock=RealClock())
        for measured in result.figures():
            yield measured

    names = [*WORKLOADS] if given.workload == "all" else [given.workload]
    return [partial(figures, name) for name in names]


def _scheduler_perf(given: argparse.Namespace) -> Iterable[Step]:
    settings = scheduler_perf.Settings(given.kubeconfig, given.cmd)
    if not given.workload:
        raise UsageError("name a test case of scheduler_perf; --list lists them")
    for name in given.workload:
        try:
            scheduler_perf.find(name)
        except LookupError as exc:
            raise UsageError(str(exc)) from exc
    return [
        partial(scheduler_perf.measure, name, settings, clock=RealClock())
        for name in given.workload
    ]


def _steady(given: argparse.Namespace) -> Iterable[Step]:
    if given.turns and given.cmd:
        raise UsageError("--turns: only of berth itself, not with --cmd")
    settings = steady.Settings(
        given.nodes,
        given.rate,
        given.seconds,
        given.lifetime,
        given.poisson,
        given.seed,
        given.cmd,
        given.waiting,
        given.node_changes,
        given.turns,
    )
    return [lambda: steady.measure(settings, clock=RealClock())]


def _preemption(given: argparse.Namespace) -> Iterable[Step]:
    settings = throughput.Settings(given.nodes, given.preemptors, given.kubeconfig, given.cmd)
    return [lambda: preemptors.measure(settings, clock=RealClock())]


def _startup(given: argparse.Namespace) -> Iterable[Step]:
    return [lambda: startup.measure(nodes=given.nodes, command=given.cmd, clock=RealClock())]


def _scale(given: argparse.Namespace) -> Iterable[Step]:
    """All kinds of pods at each size of the cluster."""

    def step(nodes: int, pods: int) -> AsyncIterator[Figure]:
        run = partial(
            engine.run,
            IN_TREE,
            num_nodes=nodes,
            num_pods=pods,
            repetitions=given.repetitions,
            workloads=[workload for workload in ENGINE_WORKLOADS if workload.name in SCALED],
        )
        return _decisions(run, given.repetitions, nodes=nodes, pods=pods)

    return [partial(step, nodes, pods) for nodes in given.nodes for pods in given.pods]


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


def _size(given: argparse.Namespace) -> Iterable[Step]:
    settings = size.Settings(given.nodes, given.pods, given.rate, given.seconds)
    return [lambda: size.measure(settings, clock=RealClock())]


def _watch(given: argparse.Namespace) -> Iterable[Step]:
    settings = size.Settings(given.nodes, given.pods, given.rate, given.seconds)
    return [lambda: watch.measure(settings, clock=RealClock())]


def _certificates(given: argparse.Namespace) -> Iterable[Step]:
    return [lambda: certificates.measure_planted(IN_TREE, nodes=given.nodes, seconds=given.seconds)]


def _packing(given: argparse.Namespace) -> Iterable[Step]:
    return [lambda: certificates.measure_full(IN_TREE, seconds=given.seconds, seeds=given.seeds)]


async def _crowded(settings: throughput.Settings) -> AsyncIterator[Figure]:
    """Pods alone, and then the same ones mixed with many that fit nowhere."""
    results = [result async for result in crowded.measure(settings, clock=RealClock())]
    for result in results:
        outcome = f"{result.bound}/{result.pods} bound, {result.told} told, {result.events} events"
        for name, seconds in (
            ("first bind to last", result.seconds),
            ("start to last bind", result.since_start),
        ):
            yield figure(name, seconds, "s", outcome=outcome, workload=result.workload)
        for name, used in (
            ("first bind to last, CPU", result.binding),
            ("start to last bind, CPU", result.until_last),
        ):
            yield used_figure(name, used, "s", outcome=outcome, workload=result.workload)
    alone, crowd = results
    for name, ratio in (
        ("first bind to last", crowd.seconds / alone.seconds),
        ("first bind to last, CPU", crowd.binding.cpu / max(alone.binding.cpu, 0.01)),
        ("start to last bind", crowd.since_start / alone.since_start),
    ):
        yield figure(f"{name}, crowded relative to alone", ratio, "times")


def _shards(given: argparse.Namespace) -> Iterable[Step]:
    settings = soak.Settings(
        replicas=given.replicas[-1],
        nodes=given.nodes,
        pods=given.pods,
        faults=given.faults,
        seed=given.seed,
    )

    async def of_soak() -> AsyncIterator[Figure]:
        for measured in (await asyncio.to_thread(soak.run_soak, settings)).figures():
            yield measured

    steps: dict[str, Step] = {
        "soak": of_soak,
        "cost": partial(cost.measure, given.nodes, given.pods, given.replicas, clock=RealClock()),
        "quality": partial(quality.measure, given.nodes, given.replicas),
    }
    return [step for name, step in steps.items() if given.part in (name, "all")]


STEPS: Final[Mapping[str, Steps]] = {
    "engine": _engine,
    "throughput": _throughput,
    "scheduler_perf": _scheduler_perf,
    "steady": _steady,
    "startup": _startup,
    "preemption": _preemption,
    "scale": _scale,
    "extender": _extender,
    "groups": _groups,
    "cluster": _cluster,
    "size": _size,
    "watch": _watch,
    "certificates": _certificates,
    "packing": _packing,
    "shards": _shards,
}
