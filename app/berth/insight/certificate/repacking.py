"""The fewest nodes for the pods that run: ``berth simulate --repack --prove``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from berth.insight.certificate import counting
from berth.insight.certificate.carrying_out import carry_out
from berth.insight.certificate.certificate import (
    COUNTING,
    SOLVER,
    Certificate,
    Number,
    PlannedMove,
)
from berth.insight.certificate.model import Model, model_of
from berth.insight.certificate.problem import Goal, Limits, Solution, Status
from berth.insight.certificate.solver_process import Find, find
from berth.insight.whatif.claims import free_claims
from berth.insight.whatif.deciding import decider
from berth.insight.whatif.engine import answer
from berth.insight.whatif.movable import Movable
from berth.insight.whatif.placing import Placing
from berth.insight.whatif.question import Question
from berth.insight.whatif.snapshot import Snapshot
from berth.insight.whatif.world import World
from berth.kube.objects.node_pods import goes_with_node
from berth.scheduler.core.simulated_cluster import run_simulation
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.profile.build import Registry

NODES: Final = "nodes that run pods"
NO_COMPARISON: Final[dict[str, Any]] = {
    "compare_config": None,
    "compare_preset": None,
    "compare_emulated_version": "",
    "compare_weights": {},
    "compare_profile": "",
    "find_nodes": None,
}


@dataclass(slots=True)
class _Emptied:
    """The cluster of a question without its movable pods."""

    world: World
    placing: Placing
    running: list[PodInfo]
    before: int
    """Nodes that ran pods."""


def prove_repacking(
    question: Question,
    snapshot: Snapshot,
    registry: Registry,
    limits: Limits,
    *,
    look: Callable[[], None] = lambda: None,
    find: Find = find,
) -> Certificate:
    """Find the fewest nodes for the pods that run in the cluster of *question*, and those it adds.

    Pods that wait in the snapshot are left waiting. Raises what :func:`answer` of what-if raises.
    """
    alone = question.model_copy(update={"include_pending": False, **NO_COMPARISON})
    repacked = answer(alone, snapshot, registry)
    by_scheduler = None
    if repacked.fits and repacked.repacked is not None:
        by_scheduler = repacked.repacked.nodes_after
    emptied = _emptied(question, snapshot, registry)
    model = model_of(
        emptied.placing.cluster,
        Goal.FEWEST_NODES,
        running=emptied.running,
        waiting=emptied.world.asked,
    )
    solution = find(model.problem, limits, look)
    return run_simulation(_certificate(emptied, model, solution, by_scheduler))


def _emptied(question: Question, snapshot: Snapshot, registry: Registry) -> _Emptied:
    question = question.model_copy(update={"include_pending": False, "repack": False})
    decides = decider(question, snapshot, registry)
    placing = Placing.on_empty_cluster(
        decides.config,
        registry,
        seed=None,
        preempts=False,
        now=snapshot.now,
        listers=snapshot.listers,
    )
    cluster = placing.cluster
    world = World.of(question, snapshot, cluster, decides.state)
    world.leave_to_others(placing.profiles)
    before = len(world.busy_nodes())
    movable = Movable(cluster.listers, placing.profiles)
    running = [
        pod
        for pod in cluster.cache.pods()
        if not goes_with_node(pod.pod)
        and pod.node_name in cluster.cache.table.row_of
        and not movable.why_not(pod)
    ]
    for pod in running:
        cluster.delete(pod.pod)
        free_claims(cluster, pod.pod)
    cluster.put_aside_waiting()
    cluster.cache.refresh_order()
    return _Emptied(world, placing, running, before)


async def _certificate(
    emptied: _Emptied, model: Model, solution: Solution, by_scheduler: int | None
) -> Certificate:
    notes: list[str] = [f"no plan by the solver: {solution.why}"] if solution.why else []
    bound = counting.bound(model.problem)
    method, value, moves = COUNTING, by_scheduler, tuple[PlannedMove, ...]()
    if solution.status is Status.IMPOSSIBLE:
        notes.append("proven: not all of these pods have a node, however they are placed")
    elif solution.status is Status.SOLVED:
        stage = solution.stages[0]
        method, bound = SOLVER, max(stage.bound, bound)
        nodes = model.assigned(solution.placement)
        pods = [*emptied.running, *emptied.world.asked]
        if objection := await carry_out(emptied.placing, pods, nodes):
            notes.append(f"a plan with {stage.value} was dropped: {objection}")
        elif value is None or stage.value <= value:
            value = len(emptied.world.busy_nodes())
            moves = tuple(
                PlannedMove(pod.key, pod.node_name, nodes[pod.key])
                for pod in emptied.running
                if nodes[pod.key] != pod.node_name
            )
            notes.append(f"the plan moves {len(moves)} of {len(emptied.running)} pods")
    if value is not None and value < bound:
        notes.append(f"the bound {bound} does not hold: please report this")
        bound = value
    return Certificate(
        goal=f"fewest nodes for {len(emptied.running) + len(emptied.world.asked)} pods",
        numbers=(Number(NODES, value, bound),),
        method=method,
        seconds=solution.seconds,
        within_one_percent=solution.within_one_percent,
        left_out=tuple(model.left_out),
        notes=tuple(notes),
        moves=moves,
        before=emptied.before,
        by_scheduler=by_scheduler,
    )
