"""Judges one pod on a table as the scheduler would, and tells everything that it found."""

from collections.abc import Iterable, Iterator, Sequence

from berth.explain.choice import choose, scores_of
from berth.explain.explanation import Choice, Judgement, NodeVerdict, Obstacle
from berth.explain.obstacles import Obstacles
from berth.framework.cycle_state import CycleState, Gang
from berth.framework.node_table import NodeTable
from berth.framework.pod_info import PodInfo
from berth.framework.status import Code
from berth.profile.nominated_pods import NominatedPods
from berth.profile.profile import Profile
from berth.scheduler.decision import Decision
from berth.scheduler.find_node import NodeFinder
from berth.tasks import Steps, at_once


def judge(
    profile: Profile,
    pod: PodInfo,
    nodes: NodeTable,
    *,
    nominated: NominatedPods,
    limit: int | None,
    notes: Iterable[str] = (),
) -> Judgement:
    """Try *pod* on *nodes*, changing nothing, and tell about the *limit* best nodes; None: all.

    Of equally good nodes the one with the smallest name is taken for the chosen one. PostFilter is
    not asked.
    """
    return at_once(judging(profile, pod, nodes, nominated=nominated, limit=limit, notes=notes))


def judging(
    profile: Profile,
    pod: PodInfo,
    nodes: NodeTable,
    *,
    nominated: NominatedPods,
    limit: int | None,
    notes: Iterable[str] = (),
) -> Steps[Judgement]:
    """Do the same in steps, one for each node that there is something to tell of.

    *nodes* must not change meanwhile.
    """

    def smallest_name(rows: Sequence[int]) -> int:
        return min(rows, key=nodes.name)

    finder = NodeFinder(nodes, select=smallest_name)
    state = CycleState()
    decision = finder.find(profile, pod, state=state, nominated=nominated, look_at_all=True)
    is_refused = decision.status is not None
    error = decision.message if decision.status and decision.status.code is Code.ERROR else ""
    if error and not len(decision.candidates):
        decision.feasible = nodes.no_rows()  # whoever had not said no yet was not asked any more
    yield
    obstacles = Obstacles(decision, profile, state=state, nodes=nodes, nominated=nominated)
    yield
    wanted = len(nodes) if limit is None else limit
    num_feasible = int(decision.feasible.sum())
    told: list[NodeVerdict] = []
    for verdict in _fitting(decision, profile, nodes, wanted):
        told.append(verdict)
        yield
    rejected = yield from obstacles.nearest(max(wanted - num_feasible, 1))
    for row, held_against in rejected[: max(wanted - len(told), 0)]:
        told.append(_rejected(obstacles, nodes, row, held_against))
        yield
    findings = (yield from obstacles.sums()) if is_refused and not error else ()
    return Judgement(
        message=decision.message,
        reasons=dict(decision.diagnosis.reasons()) if is_refused else {},
        num_nodes=len(nodes),
        num_feasible=num_feasible,
        gang=state.gang.name if state.gang else "",
        error=error,
        num_unjudged=_num_unjudged(decision, nodes) if error and not num_feasible else 0,
        failed_plugin=decision.status.plugin if decision.status and error else "",
        findings=findings,
        notes=(*notes, *_notes(decision, state.gang)),
        choice=_choice(decision, profile, nodes) if not is_refused else None,
        nearest_miss=obstacles.miss(*rejected[0]) if is_refused and rejected else None,
        nodes=tuple(told[:wanted]),
    )


def _choice(decision: Decision, profile: Profile, nodes: NodeTable) -> Choice:
    scores = decision.scores
    best = list(scores_of(scores, nodes, weights=profile.weights, limit=2)) if scores else []
    return choose(decision.node_name, best, equals=len(decision.best) - 1)


def _fitting(
    decision: Decision, profile: Profile, nodes: NodeTable, limit: int
) -> Iterator[NodeVerdict]:
    """Yield *limit* nodes that fit, those that were scored first."""
    scores = decision.scores
    told = set()
    for score in scores_of(scores, nodes, weights=profile.weights, limit=limit) if scores else ():
        told.add(score.node)
        yield NodeVerdict(node=score.node, fits=True, score=score)
    others = set(nodes.names(decision.feasible.nonzero()[0].tolist())) - told
    for name in sorted(others)[: limit - len(told)]:
        yield NodeVerdict(node=name, fits=True)


def _num_unjudged(decision: Decision, nodes: NodeTable) -> int:
    judged = nodes.no_rows()
    for code in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING):
        judged |= decision.diagnosis.rows_with(code, nodes)
    return int((nodes.exists & ~judged).sum())


def _rejected(
    found: Obstacles, nodes: NodeTable, row: int, obstacles: tuple[Obstacle, ...]
) -> NodeVerdict:
    charged = found.charged(row)
    name = nodes.name(row)
    if charged is None:  # an error ended the attempt before anybody judged this node
        return NodeVerdict(node=name, fits=False)
    return NodeVerdict(
        node=name,
        fits=False,
        plugin=charged.plugin,
        code=charged.code.label,
        reasons=charged.reasons,
        obstacles=obstacles,
        beside=found.beside(row),
    )


def _notes(decision: Decision, gang: Gang | None) -> Iterator[str]:
    outcome = decision.pre_filter
    if outcome.status is not None and outcome.status.code is not Code.ERROR:
        author = outcome.status.plugin or " and ".join(outcome.plugins_with_nodes)
        yield f"{author} rejects the pod as such: no node was looked at"
    elif outcome.node_names is not None:
        names = " and ".join(outcome.plugins_with_nodes)
        yield f"{names} leaves {len(outcome.node_names)} nodes in question"
    if gang is not None:
        others = len(set(gang.pods) - {decision.pod.key})
        which = f"{others} other pod{'' if others == 1 else 's'} of {gang.name}"
        yield f"judged alone; it gets a node only together with {which}"
    if decision.nominated_used:
        yield f"{decision.node_name} is nominated and fits: no other node is considered"
