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

    PostFilter is not run.
    """
    return place_on_a_candidate(cycle, find_nodes_that_fit_pod(cycle, sampling), select=select)


def evaluate_pod(cycle: Cycle, *, select: Select) -> Outcome:
    """Decide the same, and find out about every node: all are filtered, all candidates scored."""
    found = evaluate_all_nodes(cycle)
    if len(found.candidates) == 1:
        return place_on_best(cycle, found, select=select)
    return place_on_a_candidate(cycle, found, select=select)


def place_on_a_candidate(
    cycle: Cycle,
    found: FeasibleNodes,
    *,
    select: Select,
    extender_scores: Mapping[str, int] | None = None,
) -> Outcome:
    """Take one of the candidates; as in kube-scheduler, a single one is not scored."""
    pod, profile, candidates = cycle.pod, cycle.profile.name, found.candidates
    if found.error is not None:
        return Failed(pod, profile, found, found.error)
    if not len(candidates):
        return Unschedulable(pod, profile, found)
    if len(candidates) == 1:
        return Placed(pod, profile, found, cycle.nodes.name(int(candidates[0])))
    return place_on_best(cycle, found, select=select, extender_scores=extender_scores)


def place_on_best(
    cycle: Cycle,
    found: FeasibleNodes,
    *,
    select: Select,
    extender_scores: Mapping[str, int] | None = None,
) -> Placed | Failed:
    """Score the candidates and take one of those with the highest total."""
    pod, profile = cycle.pod, cycle.profile.name
    scores = prioritize_nodes(cycle, found.candidates, extender_scores=extender_scores)
    if isinstance(scores, Status):
        return Failed(pod, profile, found, scores)
    row, best = select_host(scores, select)
    return Placed(pod, profile, found, cycle.nodes.name(row), scores, best)
