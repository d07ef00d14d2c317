"""Evaluates one pod on a table as the scheduler would, and reports everything that it finds."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from berth.insight.explain.choice import choose, scores_of
from berth.insight.explain.explanation import Choice, Evaluation, NodeScore, NodeVerdict, Obstacle
from berth.insight.explain.funnel import funnel
from berth.insight.explain.obstacles import Obstacles
from berth.insight.explain.verification import MOST_TRIED, Misses, nearest_misses
from berth.runtime.tasks import Steps, at_once
from berth.scheduler.cycle import Cycle
from berth.scheduler.find_nodes_that_fit import FeasibleNodes
from berth.scheduler.framework.cycle_state import Gang
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.placement import EVERYWHERE, Placement
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code
from berth.scheduler.framework.words import counted
from berth.scheduler.outcome import Failed, Outcome, Placed
from berth.scheduler.profile.nominated_pods import NominatedPods
from berth.scheduler.profile.profile import Profile
from berth.scheduler.schedule_pod import evaluate_pod, smallest_name

WITHOUT_EXTENDERS: Final = "evaluated without the extenders, which have a say, too"
MISSES_TOLD: Final = 5
LOOKS: Final = 2
"""Steps of an evaluation after which no plugin is asked again whether the pod fits."""


def evaluate(
    profile: Profile,
    pod: PodInfo,
    nodes: NodeTable,
    *,
    nominated: NominatedPods,
    limit: int | None,
    notes: Iterable[str] = (),
) -> Evaluation:
    """Try *pod* on *nodes*, changing nothing, and report the *limit* best nodes; None: all.

    Of equally good nodes the one with the smallest name is taken for the chosen one. PostFilter is
    not run.
    """
    steps = evaluate_in_steps(profile, pod, nodes, nominated=nominated, limit=limit, notes=notes)
    return at_once(steps)


def evaluate_in_steps(
    profile: Profile,
    pod: PodInfo,
    nodes: NodeTable,
    *,
    nominated: NominatedPods,
    limit: int | None,
    notes: Iterable[str] = (),
    placement: Placement = EVERYWHERE,
    on_trial: frozenset[str] = frozenset(),
) -> Steps[Evaluation]:
    """Do the same in steps, one for each node that is reported, for the nodes of *placement*.

    *on_trial* are the UIDs of the pods of a group that are tried together. *nodes* must not change
    meanwhile. After the first :data:`LOOKS` steps all plugins have been asked whether the pod fits,
    so that what Reserve plugins hold may change from then on.
    """
    cycle = Cycle(profile, pod, nodes, nominated, placement=placement)
    cycle.state.on_trial = on_trial
    outcome = evaluate_pod(cycle, select=smallest_name(nodes))
    feasible_nodes, gang = outcome.found, cycle.state.gang
    is_refused = not isinstance(outcome, Placed)
    message = outcome.message if not isinstance(outcome, Placed) else ""
    error = outcome.message if isinstance(outcome, Failed) else ""
    if error and not len(feasible_nodes.candidates):
        # The filters after the one that failed have not run.
        feasible_nodes = replace(feasible_nodes, feasible=nodes.no_rows())
    yield
    obstacles = Obstacles(cycle, feasible_nodes)
    yield
    wanted = cycle.num_nodes if limit is None else limit
    num_feasible = int(feasible_nodes.feasible.sum())
    reported: list[NodeVerdict] = []
    for verdict in _fitting(outcome, feasible_nodes, cycle, wanted):
        reported.append(verdict)
        yield
    is_to_be_met = is_refused and obstacles.can_be_met
    tried = MOST_TRIED if is_to_be_met else 0
    rejected = yield from obstacles.nearest(max(wanted - num_feasible, tried))
    for row, held_against in rejected[: max(wanted - len(reported), 0)]:
        reported.append(_rejected(obstacles, nodes, row, held_against))
        yield
    misses = Misses((), 0)
    if is_to_be_met:
        misses = yield from nearest_misses(cycle, rejected, obstacles, count=MISSES_TOLD)
    findings = (yield from obstacles.sums()) if is_refused and not error else ()
    return Evaluation(
        message=message,
        reasons=dict(feasible_nodes.diagnosis.reasons()) if is_refused else {},
        num_nodes=cycle.num_nodes,
        num_feasible=num_feasible,
        gang=gang.name if gang else "",
        error=error,
        num_not_evaluated=_num_not_evaluated(feasible_nodes, cycle)
        if error and not num_feasible
        else 0,
        failed_plugin=outcome.status.plugin if isinstance(outcome, Failed) and error else "",
        findings=findings,
        refused_by=_refused_by(feasible_nodes),
        advice=tuple(advice(tuple(feasible_nodes.diagnosis.reasons()), pod))
        if _refused_by(feasible_nodes)
        else (),
        notes=(*notes, *_notes(outcome, gang), *_in_vain(misses)),
        choice=_choice(outcome, cycle) if isinstance(outcome, Placed) else None,
        funnel=() if error else funnel(cycle, feasible_nodes, obstacles),
        nearest_miss=misses.found[0] if misses.found else None,
        next_misses=misses.found[1:],
        nodes=tuple(reported[:wanted]),
    )


def _choice(placed: Placed, cycle: Cycle) -> Choice:
    best = list(_scores(placed, cycle, limit=2))
    return choose(placed.node_name, best, equals=max(len(placed.best) - 1, 0))


def _scores(outcome: Outcome, cycle: Cycle, *, limit: int) -> Iterable[NodeScore]:
    if not isinstance(outcome, Placed) or outcome.scores is None:
        return ()
    return scores_of(outcome.scores, cycle.nodes, limit=limit)


def _fitting(
    outcome: Outcome, feasible_nodes: FeasibleNodes, cycle: Cycle, limit: int
) -> Iterator[NodeVerdict]:
    """Yield *limit* nodes that fit, those that were scored first."""
    reported = set()
    for score in _scores(outcome, cycle, limit=limit):
        reported.add(score.node)
        yield NodeVerdict(node=score.node, fits=True, score=score)
    if len(reported) == limit:
        return
    others = set(cycle.nodes.names(feasible_nodes.feasible.nonzero()[0].tolist())) - reported
    for name in sorted(others)[: limit - len(reported)]:
        yield NodeVerdict(node=name, fits=True)


def _num_not_evaluated(feasible_nodes: FeasibleNodes, cycle: Cycle) -> int:
    nodes = cycle.nodes
    evaluated = nodes.no_rows()
    for code in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING):
        evaluated |= feasible_nodes.diagnosis.rows_with(code, nodes)
    return int((cycle.placement.rows_of(nodes) & ~evaluated).sum())


def _rejected(
    held: Obstacles, nodes: NodeTable, row: int, obstacles: tuple[Obstacle, ...]
) -> NodeVerdict:
    charged = held.charged(row)
    name = nodes.name(row)
    if charged is None:  # an error ended the attempt before this node was evaluated
        return NodeVerdict(node=name, fits=False)
    return NodeVerdict(
        node=name,
        fits=False,
        plugin=charged.plugin,
        code=charged.code.label,
        reasons=charged.reasons,
        obstacles=obstacles,
        beside=held.beside(row),
    )


def _in_vain(misses: Misses) -> Iterator[str]:
    """Say why nothing is advised though some objections could be met."""
    if misses.num_dropped and not misses.found:
        tried = counted(misses.num_dropped, "node")
        yield f"no change helps on the {tried} that came nearest: each puts others in the way"


def _refused_by(feasible_nodes: FeasibleNodes) -> tuple[str, ...]:
    """Return the PreFilter plugins that reject the pod as such."""
    status = feasible_nodes.pre_filter.status
    is_refused = status is not None and status.code is not Code.ERROR
    return tuple(feasible_nodes.pre_filter.authors) if is_refused else ()


def _notes(outcome: Outcome, gang: Gang | None) -> Iterator[str]:
    pre_filter = outcome.found.pre_filter
    refused_by = _refused_by(outcome.found)
    if refused_by:
        reject = "rejects" if len(refused_by) == 1 else "reject"
        yield f"{' and '.join(refused_by)} {reject} the pod whatever the nodes are like"
    elif pre_filter.status is None and pre_filter.node_names is not None:
        plugins = pre_filter.plugins_with_nodes
        leave = "leaves" if len(plugins) == 1 else "leave"
        nodes = counted(len(pre_filter.node_names), "node")
        yield f"{' and '.join(plugins)} {leave} {nodes} in question"
    if gang is not None:
        others = len(set(gang.pods) - {outcome.pod.key})
        which = f"{others} other pod{'' if others == 1 else 's'} of {gang.name}"
        yield f"evaluated alone; it gets a node only together with {which}"
    if isinstance(outcome, Placed) and outcome.found.is_nominated:
        yield f"{outcome.node_name} is nominated and fits: no other node is considered"


# Advice for a pod that PreFilter plugins reject whatever the nodes are like.


_ADVICE: Final = (
    (
        re.compile(r'^persistentvolumeclaim "([^"]+)" not found'),
        "create PersistentVolumeClaim {namespace}/{0}, or correct its name in spec.volumes",
    ),
    (
        re.compile(r'^persistentvolumeclaim "([^"]+)" is being deleted'),
        "wait until PersistentVolumeClaim {namespace}/{0} is gone, then create it again",
    ),
    (
        re.compile(r'bound to non-existent persistentvolume "([^"]+)"'),
        "create PersistentVolume {0} again, or delete the claim and create another",
    ),
    (
        re.compile("^pod has unbound immediate PersistentVolumeClaims"),
        "have the claim bound: create a PersistentVolume that matches it, look at its events if"
        " a provisioner should do so, or use a StorageClass with volumeBindingMode"
        " WaitForFirstConsumer",
    ),
    (
        re.compile(r'^could not find ResourceClaim "([^"]+)"'),
        "create ResourceClaim {0}, or correct its name in spec.resourceClaims",
    ),
    (
        re.compile(r'^resourceclaim "([^"]+)" is being deleted'),
        "wait until ResourceClaim {namespace}/{0} is gone, then create it again",
    ),
    (
        re.compile(r"device class (\S+) does not exist"),
        "create DeviceClass {0}, or name another one in the claim",
    ),
    (
        re.compile("^pod affinity terms conflict"),
        "change spec.affinity.nodeAffinity: no node has all the names that a term asks for",
    ),
)
"""By what plugins say, with the texts of kube-scheduler."""


def advice(reasons: tuple[str, ...], pod: PodInfo) -> Iterator[str]:
    """Yield what to do about *reasons* for which *pod* is rejected, as far as that is known."""
    for reason in reasons:
        for pattern, text in _ADVICE:
            if match := pattern.search(reason):
                yield text.format(*match.groups(), namespace=pod.namespace)
