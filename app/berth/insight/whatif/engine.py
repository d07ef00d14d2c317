"""Answers a question about a snapshot."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, NamedTuple

from berth.insight.explain.groups.explanation import PodGroupExplanation
from berth.insight.explain.groups.summary import reasons_in_words
from berth.insight.whatif.answer import (
    Answer,
    Group,
    Move,
    NodesNeeded,
    Outcome,
    Partial,
    PodGroupOutcome,
    Removable,
    Repacked,
    Unplaced,
    Victim,
)
from berth.insight.whatif.course import Course, CutShortError, Stage
from berth.insight.whatif.deciding import Decider, as_compared, decider
from berth.insight.whatif.find_nodes import nodes_needed
from berth.insight.whatif.find_removable import removable
from berth.insight.whatif.movable import Movable
from berth.insight.whatif.placing import Placed, Placing
from berth.insight.whatif.question import Question
from berth.insight.whatif.snapshot import Snapshot
from berth.insight.whatif.typical_pods import TypicalPods
from berth.insight.whatif.usage import NodesThen, changed_nodes, nothing
from berth.insight.whatif.world import World, unplaced
from berth.kube.objects.pod_group import GroupKey, group_of
from berth.scheduler.core.simulated_cluster import run_simulation
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.pod_signature import PodSignature, signature_of
from berth.scheduler.profile.build import Registry

# The partial answer of a simulation whose time was over before its end.


UNLIMITED: Final = "`berth simulate --snapshot` has no limit"


def partial(
    course: Course, question: Question, world: World, undecided: tuple[str, ...]
) -> Partial:
    """Say how far *course* came, and what would need less time."""
    has_counted = course.stage not in ("placing", "comparing")
    return Partial(
        stage=course.stage,
        done=course.done if has_counted else course.of - len(undecided),
        of=course.of,
        undecided=undecided,
        advice=f"{_advice(course.stage, question, world)}; {UNLIMITED}",
    )


def note_on(partial: Partial) -> str:
    """Say the same in a sentence."""
    what = "nodes were tried" if partial.stage == "findRemovable" else "pods were decided about"
    return (
        f"the CPU time was over when {partial.done} of {partial.of} {what} ({partial.stage}):"
        f" {partial.advice}"
    )


def _advice(stage: Stage, question: Question, world: World) -> str:
    match stage:
        case "comparing":
            return "ask about one configuration at a time"
        case "findNodes":
            return "lower findNodes.most, or add a number of nodes with addNodes instead"
        case "findRemovable":
            return "name fewer nodes in findRemovable"
    pending, moved = len(world.pending), len(world.moving) + len(world.homeless)
    if question.repack:
        return f"repack places {moved} pods anew: leave it out"
    own = len(world.asked) - moved
    most, total = max(pending, moved, own), pending + moved + own
    if most == own:
        return "ask for fewer pods"
    if most == moved:
        return f"remove fewer nodes: {moved} of the {total} pods are theirs"
    return (
        f"set includePending to false (--no-pending): {pending} of the {total} pods"
        " wait in the cluster"
    )


def answer(
    question: Question,
    snapshot: Snapshot,
    registry: Registry,
    *,
    course: Course | None = None,
) -> Answer:
    """Simulate what *question* asks on a copy of *snapshot*; the same always has the same answer.

    The scheduler of the snapshot decides, with its queue, on a clock that does not wait. Raises
    QuestionError, SnapshotError or ConfigError; each names the field. The answer is partial if the
    budget of *course* does not suffice.
    """
    return run_simulation(_answer(question, snapshot, registry, course or Course()))


async def _answer(
    question: Question, snapshot: Snapshot, registry: Registry, course: Course
) -> Answer:
    other, others = as_compared(question), None
    decides = decider(question, snapshot, registry)
    if question.compares:  # before anything else is done: what is wrong should be told soon
        others = decider(other, snapshot, registry, prefix="compare")
    outcome, simulated = await _simulate(question, snapshot, registry, decides, course)
    compared, left = None, simulated.partial
    if others is not None and left is None:
        compared, of_other = await _simulate(
            other, snapshot, registry, others, course, stage="comparing"
        )
        left = of_other.partial
        compared = None if left else compared
    return Answer(
        **dict(outcome),
        snapshot_time=snapshot.time,
        notes=simulated.notes if left is None else (*simulated.notes, note_on(left)),
        admission=simulated.admission,
        nodes_needed=simulated.nodes_needed,
        removable=simulated.removable,
        partial=left,
        compared=compared,
        moved=None if compared is None else _moved(outcome.placements, compared.placements),
    )


class _Found(NamedTuple):
    """What is found out beside the outcome."""

    notes: tuple[str, ...]
    admission: str
    nodes_needed: NodesNeeded | None
    removable: Removable | None
    partial: Partial | None


async def _simulate(
    question: Question,
    snapshot: Snapshot,
    registry: Registry,
    decides: Decider,
    course: Course,
    *,
    stage: Stage = "placing",
) -> tuple[Outcome, _Found]:
    def begin(*, preempts: bool = False, shares_answers: bool = True) -> tuple[World, Placing]:
        placing = Placing.on_empty_cluster(
            decides.config,
            registry,
            seed=question.seed,
            preempts=preempts,
            now=snapshot.now,
            listers=snapshot.listers,
            course=course,
            shares_answers=shares_answers,
        )
        world = World.of(question, snapshot, placing.cluster, decides.state)
        if question.repack:
            world.repack(Movable(world.cluster.listers, placing.profiles))
        world.leave_to_others(placing.profiles)
        world.notes += notes_on_groups(world)
        return world, placing

    world, placing = begin(preempts=question.preemption)
    typical = TypicalPods(chain(world.cluster.cache.pods(), world.waiting))
    goal = {pod.key for pod in world.asked}
    if not goal and not world.refused:
        goal = {pod.key for pod in world.pending}
    course.begin(stage, sum(1 for _ in world.waiting))
    placed = await placing.place(world.waiting, explains=True)
    if question.repack:
        spare_moves(world, placed)
    outcome = _outcome(world, placed, typical, goal=goal, question=question)
    needed = can_go = None
    admission = world.admission.in_words if world.creates else ""
    try:
        if course.is_cut and (placed.undecided or placed.refusals):  # who might be tried again
            raise CutShortError
        if placed.victims:
            outcome = outcome.model_copy(update={"victims": await victims_then(placed, placing)})
        if question.find_nodes is not None:
            course.begin("findNodes", sum(1 for _ in world.waiting))
            if question.preemption:  # who was evicted must be there again
                world, placing = begin()
                placed = await placing.place(world.waiting)
            placing.take_back()
            needed = await nodes_needed(
                world, placing, question.find_nodes, without=placed, goal=goal
            )
        if question.find_removable is not None:
            world.chosen_nodes(question.find_removable, at="findRemovable")  # for its notes
            can_go = await removable(begin, question.find_removable)
            if course.is_halved:
                raise CutShortError
    except CutShortError:
        left = partial(course, question, world, tuple(placed.undecided))
        return outcome, _Found(tuple(world.notes), admission, needed, can_go, left)
    return outcome, _Found(tuple(world.notes), admission, needed, can_go, None)


def _outcome(
    world: World, placed: Placed, typical: TypicalPods, *, goal: set[str], question: Question
) -> Outcome:
    after = NodesThen.of(world.cluster.cache.table)
    return Outcome(
        fits=not (
            goal & placed.refusals.keys() or goal.intersection(placed.undecided) or world.refused
        ),
        placements=placed.nodes,
        unplaced=_unplaced(world, placed),
        pending=tuple(pod.key for pod in world.pending),
        sources={
            key: node
            for key, node in (*world.homeless.items(), *world.moving.items())
            if key in world.template_of
        },
        pod_groups=group_outcomes(world, placed),
        victims=tuple(placed.victims),
        before=world.before.usage(typical),
        after=after.usage(typical),
        nodes=tuple(changed_nodes(world.before, after)),
        groups={
            label: tuple(_groups(label, placed, world.before, after)) for label in question.group_by
        },
        repacked=repacked(world, placed) if question.repack else None,
    )


def _groups(label: str, placed: Placed, before: NodesThen, after: NodesThen) -> Iterator[Group]:
    values = after.values(label)
    here = Counter(values[node] for node in placed.nodes.values())
    then, now = before.usage_by(label), after.usage_by(label)
    for value in sorted(then.keys() | now.keys()):
        yield Group(
            value=value,
            placed=here[value],
            before=then.get(value, nothing()),
            after=now.get(value, nothing()),
        )


def _unplaced(world: World, placed: Placed) -> tuple[Unplaced, ...]:
    """Group who has no node by what it was made from and why, in the order of the question."""

    def grouped(refusals: Iterable[tuple[str, str]], *, asked: bool) -> Iterator[Unplaced]:
        alike: dict[tuple[str, str], list[str]] = {}
        for key, message in refusals:
            alike.setdefault((world.template_of[key], message), []).append(key)
        for (template, message), keys in alike.items():
            yield Unplaced(template=template, message=message, pods=tuple(keys), asked=asked)

    def of(pods: Iterable[PodInfo]) -> Iterator[tuple[str, str]]:
        refusals = placed.refusals
        return ((pod.key, refusals[pod.key]) for pod in pods if pod.key in refusals)

    return (
        *grouped(chain(of(world.asked), world.refused.items()), asked=True),
        *grouped(of(world.pending), asked=False),
    )


def _moved(one: Mapping[str, str], other: Mapping[str, str]) -> int:
    return sum(one.get(key) != other.get(key) for key in one.keys() | other.keys())


# Pod groups in answers, which are placed as one unit.


GATE_OFF = (
    "pods that name a pod group are placed one by one: the feature gate GenericWorkload is off"
)


def notes_on_groups(world: World) -> Iterator[str]:
    """Yield what there is to say about groups that are not scheduled as such."""
    if world.cluster.core.scheduler.groups is not None:
        return
    if any(pod.pod.spec.scheduling_group is not None for pod in world.waiting):
        yield GATE_OFF


def group_outcomes(world: World, placed: Placed) -> tuple[PodGroupOutcome, ...]:
    """Return what became of each group that *placed* explains, by name."""
    pods = world.cluster.pods
    counts = Counter(group_of(pods[key]) for key in placed.nodes if key in pods)
    outcomes = (
        _groups_outcome(world, key, explanation, placed=counts[key])
        for key, explanation in placed.groups.items()
    )
    return tuple(sorted(outcomes, key=lambda outcome: outcome.pod_group))


def _groups_outcome(
    world: World, key: GroupKey, explanation: PodGroupExplanation, *, placed: int
) -> PodGroupOutcome:
    groups = world.cluster.core.scheduler.groups
    state = groups.pod_groups.get(key) if groups is not None else None
    scheduled = list(state.scheduled.values()) if state is not None else []
    is_complete = len(scheduled) == explanation.num_pods
    return PodGroupOutcome(
        pod_group=explanation.pod_group,
        min_count=explanation.min_count,
        placed=placed,
        starts=explanation.exists and len(scheduled) >= (explanation.min_count or 1),
        topology=_domain(world, explanation.topology_key, scheduled),
        obstacle="" if is_complete else explanation.obstacle,
        why="" if is_complete else reasons_in_words(explanation, now=None),
    )


def _domain(world: World, key: str, scheduled: list[PodInfo]) -> str:
    if not key or not scheduled:
        return ""
    return f"{key}={world.node(scheduled[0].node_name).labels.get(key, '')}"


# What comes of placing pods anew.


def spare_moves(world: World, placed: Placed) -> None:
    """Let replicas change places so that as many as can be are where they were.

    Who is placed anew and is like others in all that decides may as well be one of them.
    """
    replicas: dict[PodSignature, list[PodInfo]] = {}
    for pod in world.asked:
        signature = signature_of(pod) if pod.key in world.moving else None
        if signature is not None and pod.key in placed.nodes:
            replicas.setdefault(signature, []).append(pod)
    for pods in replicas.values():
        free = Counter(placed.nodes[pod.key] for pod in pods)
        leaving = []
        for pod in pods:
            source = world.moving[pod.key]
            if free[source]:
                free[source] -= 1
                placed.nodes[pod.key] = source
            else:
                leaving.append(pod)
        for pod, target in zip(leaving, free.elements(), strict=True):
            placed.nodes[pod.key] = target


def repacked(world: World, placed: Placed) -> Repacked:
    """Compare where the pods of *world* that were placed anew were, and are.

    Who has no node any more is among the unplaced of the outcome.
    """
    before, after = world.busy_before, world.busy_nodes()
    moves = (
        Move(pod=key, source=source, target=placed.nodes[key])
        for key, source in world.moving.items()
        if placed.nodes.get(key, source) != source
    )
    return Repacked(
        nodes_before=len(before),
        nodes_after=len(after),
        emptied=tuple(sorted(before - after)),
        pods=len(world.moving),
        moves=tuple(moves),
    )


# What becomes of pods that are evicted: whether those that replace them find a node.


NO_CONTROLLER: Final = "lost, because no controller replaces it"
NOT_TRIED: Final = "not tried: the time was over"


async def victims_then(placed: Placed, placing: Placing) -> tuple[Victim, ...]:
    """Return the victims of *placed* with where the pods would go that replace them.

    They are placed after everybody else, on the cluster as it is then, and stay there.
    """
    replaced = [
        PodInfo(unplaced(placed.evicted[victim.pod]))
        for victim in placed.victims
        if placed.evicted[victim.pod].metadata.controller is not None
    ]
    then = await placing.place_anew(replaced) if replaced else Placed()
    return tuple(
        victim.model_copy(
            update={
                "target": then.nodes.get(victim.pod, ""),
                "why": _why(victim.pod, then),
            }
        )
        for victim in placed.victims
    )


def _why(pod: str, then: Placed) -> str:
    if pod in then.nodes:
        return ""
    return NOT_TRIED if pod in then.undecided else then.refusals.get(pod, NO_CONTROLLER)
