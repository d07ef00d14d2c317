"""``berth bench``: what decisions cost on this machine."""

import argparse
import logging
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from berth import log
from berth.bench import (
    cluster,
    crowded,
    engine,
    extender,
    group_preemption,
    groups,
    preemption,
    throughput,
)
from berth.bench.process import BenchError
from berth.clock import CpuClock, RealClock
from berth.event_loop import in_loop
from berth.memory import keep_heap
from berth.terminal import CommandError, positive, program, say
from berth_plugins.registry import IN_TREE


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog=program("bench"), allow_abbrev=False)
    kinds = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    one = kinds.add_parser("engine", allow_abbrev=False, help="measure decisions in one process")
    one.add_argument("--nodes", type=positive, default=5_000)
    one.add_argument("--pods", type=int, default=10_000, help="number of running pods")
    one.add_argument("--repetitions", type=positive, default=300)
    one.set_defaults(measure=_engine)
    many = kinds.add_parser(
        "throughput", allow_abbrev=False, help="measure a scheduler process with an API server"
    )
    many.add_argument("--nodes", type=positive, default=5_000)
    many.add_argument("--pods", type=positive, default=3_000, help="number of pending pods")
    many.add_argument(
        "--workload", choices=[*throughput.WORKLOADS, crowded.NAME, "all"], default="plain"
    )
    many.add_argument(
        "--kubeconfig", type=Path, metavar="FILE",
        help="an API server without node controllers; default: an embedded one",
    )  # fmt: skip
    many.add_argument(
        "--cmd", default="", metavar="COMMAND",
        help="measure this scheduler command instead; {kubeconfig} in it is replaced",
    )  # fmt: skip
    many.set_defaults(measure=_throughput)
    asked = kinds.add_parser("extender", allow_abbrev=False, help="measure the extender over HTTP")
    asked.add_argument("--nodes", type=positive, default=5_000)
    asked.add_argument("--repetitions", type=positive, default=300)
    asked.set_defaults(measure=_extender)
    together = kinds.add_parser("groups", allow_abbrev=False, help="measure pod groups")
    together.add_argument("--nodes", type=positive, default=5_000)
    together.add_argument("--pods", type=int, default=10_000, help="number of running pods")
    together.set_defaults(measure=_groups)
    defaults = cluster.Settings()
    large = kinds.add_parser("cluster", allow_abbrev=False, help="measure a large `berth up`")
    large.add_argument("--nodes", type=positive, default=defaults.nodes)
    large.add_argument("--pods", type=positive, default=defaults.pods)
    large.add_argument("--watchers", type=positive, default=defaults.watchers)
    large.add_argument(
        "--keep", action="store_true", help="with --data-dir, and start it again at the end"
    )
    large.set_defaults(measure=_cluster)
    given = parser.parse_args(argv)
    log.setup(logging.ERROR)
    try:
        status: int = given.measure(given)
    except BenchError as exc:
        raise CommandError(str(exc)) from exc
    return status


def _engine(given: argparse.Namespace) -> int:
    keep_heap()
    say(f"{engine.machine()}; {given.nodes} nodes, all evaluated, {given.pods} running pods")
    say(f"{'µs per decision':<38} {'mean':>8} {'median':>8} {'worst':>8} {'placed':>9}")
    results = chain(
        engine.run(
            IN_TREE,
            clock=RealClock(),
            num_nodes=given.nodes,
            num_pods=given.pods,
            repetitions=given.repetitions,
        ),
        preemption.run(
            IN_TREE, clock=RealClock(), num_nodes=given.nodes, repetitions=given.repetitions
        ),
    )
    for result in results:
        say(
            f"{result.workload:<38} {result.mean:8.0f} {result.median:8.0f} {result.worst:8.0f}"
            f" {result.placed:>4}/{given.repetitions}"
        )
    return 0


def _throughput(given: argparse.Namespace) -> int:
    settings = throughput.Settings(given.nodes, given.pods, given.kubeconfig, given.cmd)
    if given.workload == crowded.NAME:
        return in_loop(_crowded(settings))
    names = [*throughput.WORKLOADS] if given.workload == "all" else [given.workload]

    async def measuring() -> int:
        say(f"{engine.machine()}; {given.nodes} nodes, {given.pods} pending pods")
        say(f"{'ms of CPU per bound pod':<24} {'steady':>8} {'all':>8} {'pods/s':>8}"
            f" {'MiB':>6} {'bound':>11} {'events':>7}")  # fmt: skip
        for name in names:
            result = await throughput.measure(name, settings, clock=RealClock())
            say(
                f"{name:<24} {result.cpu_per_pod * 1e3:8.2f}"
                f" {result.cpu_per_pod_with_start * 1e3:8.2f} {result.pods_per_second:8.0f}"
                f" {result.peak_memory / 2**20:6.0f} {result.bound:>5}/{result.pods}"
                f" {result.events:>7}"
            )
        return 0

    return in_loop(measuring())


def _extender(given: argparse.Namespace) -> int:
    async def measuring() -> int:
        say(f"{engine.machine()}; {given.nodes} nodes, by name")
        result = await extender.measure(
            nodes=given.nodes, repetitions=given.repetitions, clock=RealClock()
        )
        say(f"{'ms per call':<24} {'p50':>8} {'p90':>8} {'p99':>8}")
        for times in result.times:
            p50, p90, p99 = (times.percentile(p) for p in (50, 90, 99))
            say(f"{times.what:<24} {p50:8.2f} {p90:8.2f} {p99:8.2f}")
        say(f"of which the extender computes {result.cpu:.2f}")
        say(f"{'ms, whole nodes':<24} {'MB':>8} {'took':>8} {'longest wait of others':>24}")
        for stall in result.stalls:
            say(
                f"{stall.what:<24} {stall.size / 1e6:8.1f} {stall.took:8.0f}"
                f" {stall.longest_wait:24.0f}"
            )
        return 0

    return in_loop(measuring())


def _groups(given: argparse.Namespace) -> int:
    async def measuring() -> int:
        say(f"{engine.machine()}; {given.nodes} nodes, {given.pods} running pods; CPU time")
        rows = groups.measure(IN_TREE, clock=CpuClock(), num_nodes=given.nodes, num_pods=given.pods)
        full = group_preemption.measure(IN_TREE, clock=CpuClock(), num_nodes=given.nodes)
        for some in (rows, full):
            async for row in some:
                say(f"{row.what:<64} {row.value:>40}")
        return 0

    keep_heap()
    return in_loop(measuring())


def _cluster(given: argparse.Namespace) -> int:
    settings = cluster.Settings(given.nodes, given.pods, given.watchers, is_kept=given.keep)

    async def measuring() -> int:
        say(f"{engine.machine()}; {settings.nodes} nodes, {settings.pods} pods")
        async for row in cluster.measure(settings, clock=RealClock()):
            say(f"{row.what:<48} {row.value}")
        return 0

    return in_loop(measuring())


async def _crowded(settings: throughput.Settings) -> int:
    say(
        f"{engine.machine()}; {settings.nodes} nodes, {settings.pods} pending pods, alone and then"
        f" mixed with {settings.pods * crowded.HOPELESS_PER_POD} that fit nowhere"
    )
    say(f"{'seconds until the last is bound':<32} {'from first':>10} {'CPU':>6} {'from start':>10}"
        f" {'CPU':>6} {'bound':>11} {'told':>6} {'events':>7}")  # fmt: skip
    results = []
    async for result in crowded.measure(settings, clock=RealClock()):
        results.append(result)
        say(
            f"{result.workload:<32} {result.seconds:10.2f} {result.cpu_binding:6.2f}"
            f" {result.since_start:10.2f} {result.cpu_before + result.cpu_binding:6.2f}"
            f" {result.bound:>5}/{result.pods} {result.told:>6} {result.events:>7}"
        )
    alone, crowd = results
    say(
        f"{'ratio':<32} {crowd.seconds / alone.seconds:10.2f}"
        f" {crowd.cpu_binding / max(alone.cpu_binding, 0.01):6.2f}"
        f" {crowd.since_start / alone.since_start:10.2f}"
    )
    return 0
