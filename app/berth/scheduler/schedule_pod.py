"""The scheduling algorithm: find the nodes that fit, score them, select one (spec §2.3-2.6)."""

from collections.abc import Mapping

from berth.framework.status import Status
from berth.scheduler.cycle import Cycle
from berth.scheduler.find_nodes_that_fit import (
    FeasibleNodes,
    evaluate_all_nodes,
    find_nodes_that_fit_pod,
)
from berth.scheduler.outcome import Failed, Outcome, Placed, Unschedulable
from berth.scheduler.sampling import Sampling
from berth.scheduler.score_nodes import Select, prioritize_nodes, select_host


def schedule_pod(cycle: Cycle, *, select: Select, sampling: Sampling | None = None) -> Outcome:
    """Decide where the pod of *cycle* goes; changes nothing but the rotation of *sampling*.

    As in kube-scheduler, a single candidate is taken without scoring. PostFilter is not run.
    """
    found = find_nodes_that_fit_pod(cycle, sampling)
    if len(found.candidates) == 1:
        return place_on_only_candidate(cycle, found)
    return place_on_best_candidate(cycle, found, select=select)


def evaluate_pod(cycle: Cycle, *, select: Select) -> Outcome:
    """Decide the same, and find out about every node: all are filtered, all candidates scored."""
    return place_on_best_candidate(cycle, evaluate_all_nodes(cycle), select=select)


def place_on_only_candidate(cycle: Cycle, found: FeasibleNodes) -> Placed:
    node_name = cycle.nodes.name(int(found.candidates[0]))
    return Placed(cycle.pod, cycle.profile.name, found, node_name)


def place_on_best_candidate(
    cycle: Cycle,
    found: FeasibleNodes,
    *,
    select: Select,
    extender_scores: Mapping[str, int] | None = None,
) -> Outcome:
    """Score the candidates and take one with the highest total; say why not if there is none."""
    pod, profile = cycle.pod, cycle.profile.name
    if found.error is not None:
        return Failed(pod, profile, found, found.error)
    if not len(found.candidates):
        return Unschedulable(pod, profile, found)
    scores = prioritize_nodes(cycle, found.candidates, extender_scores=extender_scores)
    if isinstance(scores, Status):
        return Failed(pod, profile, found, scores)
    row, best = select_host(scores, select)
    return Placed(pod, profile, found, cycle.nodes.name(row), scores, best)
