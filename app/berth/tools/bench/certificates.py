"""``berth bench certificates``: whether certificates are right, and how soon.

Two kinds of clusters: planted ones, of which the fewest nodes are known; and full ones, made after
arXiv 2511.08373, on which some pods are pending and a solver looks for a placement of more.
"""

import random
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import msgspec

from berth.insight.certificate.carrying_out import carry_out
from berth.insight.certificate.model import model_of
from berth.insight.certificate.problem import Goal, Limits, Status
from berth.insight.certificate.repacking import prove_repacking
from berth.insight.certificate.solver_process import find, is_installed
from berth.insight.whatif.placing import Placing
from berth.insight.whatif.question import Question
from berth.insight.whatif.world import unplaced
from berth.kube.objects.pod import Pod
from berth.runtime.terminal import UsageError
from berth.scheduler.config.load import default_configuration
from berth.scheduler.core.simulated_cluster import SimulatedCluster, SimulationOptions
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.profile.build import Registry, args_models
from berth.tools.bench.planted import SEEDS, VARIANTS, node_of, planted
from berth.tools.bench.results import Figure, figure
from berth.tools.bench.workloads import requests

PACKED: Final = "binpack"
"""The preset that packs."""

# Full clusters, after the paper.

FULL_NODES: Final = (4, 8, 16, 32)
PODS_PER_NODE: Final = (4, 8)
PRIORITIES: Final = (1, 2, 4)
USAGES: Final = (90, 95, 100, 105)
"""What all pods request, in percent of what all nodes have."""
AMOUNTS: Final = (100, 1_000)
"""The least and the most that a pod requests, before all are scaled to the nodes; of both."""


async def measure_planted(
    registry: Registry, *, nodes: Sequence[int], seconds: float
) -> AsyncIterator[Figure]:
    """Prove how many nodes planted clusters need, and compare with what is known."""
    _check_solver()
    right = total = 0
    for count, variant, seed in product(nodes, VARIANTS, SEEDS):
        cluster = planted(count, variant, seed)
        certificate = prove_repacking(
            Question(repack=True, preset=PACKED),
            cluster.snapshot,
            registry,
            Limits(seconds=seconds),
        )
        [number] = certificate.numbers
        is_right = number.bound <= cluster.fewest and (
            number.value is None or number.value >= cluster.fewest
        )
        total, right = total + 1, right + is_right
        within = certificate.within_one_percent
        outcome = (
            f"{'right' if is_right else 'WRONG'}, fewest {cluster.fewest}, plan {number.value},"
            f" bound {number.bound}, now {certificate.before},"
            f" scheduler {certificate.by_scheduler},"
            f" {cluster.pods} pods"
            + ("" if within is not None else f", not within 1% (gap {number.gap:.1%})")
        )
        yield figure(
            "seconds to a gap of 1%",
            certificate.seconds if within is None else within,
            "s",
            outcome=outcome,
            nodes=count,
            variant=variant,
            seed=seed,
        )
    yield figure("certificates that are right", float(right), "", outcome=f"of {total}")


def _check_solver() -> None:
    if not is_installed():
        raise UsageError("needs a solver: pip install 'berth-scheduler[solver]'")


@dataclass(frozen=True, slots=True)
class Full:
    """How a full cluster is made."""

    nodes: int
    pods_per_node: int
    priorities: int
    usage: int
    seed: int


@dataclass(slots=True)
class Comparison:
    """What became of full clusters on which pods were pending, for one limit of time."""

    failures: int = 0
    better: int = 0
    proven: int = 0
    """Those where it is proven that the scheduler did best."""
    dropped: int = 0


async def measure_full(
    registry: Registry, *, seconds: Sequence[float], seeds: int
) -> AsyncIterator[Figure]:
    """Compare the scheduler with the solver on full clusters, for each limit of time."""
    _check_solver()
    totals = {(limit, fits): Comparison() for limit in seconds for fits in (True, False)}
    made = (
        Full(*values)
        for values in product(FULL_NODES, PODS_PER_NODE, PRIORITIES, USAGES, range(seeds))
    )
    for full in made:
        running, waiting = await scheduled(full, registry)
        if not waiting:
            continue
        for limit in seconds:
            comparison = totals[limit, full.usage <= 100]
            await compare(full, registry, running, waiting, limit, comparison)
    for (limit, fits), comparison in totals.items():
        failures = max(comparison.failures, 1)
        yield figure(
            "failures where the solver places more, by priority",
            100 * comparison.better / failures,
            "%",
            outcome=f"{comparison.better} of {comparison.failures}; the scheduler's is proven the"
            f" best in {comparison.proven} ({comparison.proven / failures:.0%});"
            f" {comparison.dropped} plans dropped",
            seconds=f"{limit:g}",
            usage="up to 100%" if fits else "above 100%",
        )


async def compare(
    full: Full,
    registry: Registry,
    running: Sequence[PodInfo],
    waiting: Sequence[PodInfo],
    limit: float,
    comparison: Comparison,
) -> None:
    cluster = _cluster(full, registry, preempts=False)
    model = model_of(cluster, Goal.MOST_PENDING, running=running, waiting=waiting, may_lose=True)
    solution = find(model.problem, Limits(seconds=limit))
    comparison.failures += 1
    if solution.status is not Status.SOLVED:
        return
    of_priorities = [stage for stage in solution.stages if stage.what.startswith("priority")]
    is_complete = len(of_priorities) == len({pod.priority for pod in (*running, *waiting)})
    placed = model.assigned(solution.placement)
    ours = _by_priority([*running, *waiting], set(placed))
    theirs = _by_priority([*running, *waiting], {pod.key for pod in running})
    if ours > theirs:
        pods = [pod for pod in (*running, *waiting) if pod.key in placed]
        if await carry_out(Placing(cluster, seed=None), pods, placed):
            comparison.dropped += 1
        else:
            comparison.better += 1
    elif is_complete and all(stage.value == stage.bound for stage in of_priorities):
        comparison.proven += 1


def _by_priority(pods: Sequence[PodInfo], placed: set[str]) -> list[int]:
    """Return how many of each priority are placed, the highest first."""
    priorities = sorted({pod.priority for pod in pods}, reverse=True)
    return [
        sum(pod.priority == priority and pod.key in placed for pod in pods)
        for priority in priorities
    ]


def _cluster(full: Full, registry: Registry, *, preempts: bool) -> SimulatedCluster:
    """Make the nodes of *full*: alike, and as large together as its usage says."""
    config = default_configuration(args_models(registry))
    cluster = SimulatedCluster(
        config, registry, SimulationOptions(preempts=preempts), listers=Listers
    )
    cluster.rng.seed(full.seed)
    sizes = [size for _, size, _ in _made(full)]
    cpu, memory = (
        -(-sum(size[i] for size in sizes) * 100 // (full.usage * full.nodes)) for i in (0, 1)
    )
    for number in range(full.nodes):
        cluster.put(node_of(number, (cpu, memory)))
    cluster.cache.refresh_order()
    return cluster


def _made(full: Full) -> Iterator[tuple[str, tuple[int, int], int]]:
    """Yield the pods in the order in which they come: name, milli-cores and MiB, priority."""
    rng = random.Random(repr(full))
    for number in range(full.nodes * full.pods_per_node):
        yield (
            f"pod-{number}",
            (rng.randint(*AMOUNTS), rng.randint(*AMOUNTS)),
            rng.randrange(full.priorities),
        )


async def scheduled(full: Full, registry: Registry) -> tuple[list[PodInfo], list[PodInfo]]:
    """Have pods come one after the other; return those with a node in the end, and the others.

    Who is evicted for another comes again.
    """
    cluster = _cluster(full, registry, preempts=True)
    for name, (cpu, memory), priority in _made(full):
        spec = requests(cpu, memory) | {"priority": priority}
        meta = {"name": name, "namespace": "default", "uid": name}
        seen = len(cluster.victims)
        cluster.put(msgspec.convert({"metadata": meta, "spec": spec}, Pod))
        await cluster.run_until_quiet()
        while len(cluster.victims) > seen:
            evicted = cluster.victims[seen:]
            seen = len(cluster.victims)
            for victim in evicted:
                cluster.put(unplaced(victim.pod.pod))
            await cluster.run_until_quiet()
    pods = [PodInfo(pod) for pod in cluster.pods.values()]
    running = [pod for pod in pods if pod.node_name]
    return running, [PodInfo(unplaced(pod.pod)) for pod in pods if not pod.node_name]
