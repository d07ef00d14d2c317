"""Answers a question about a snapshot."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from berth.insight.whatif.answer import (
    Answer,
    Group,
    NodesNeeded,
    Outcome,
    Partial,
    Removable,
    Unplaced,
)
from berth.insight.whatif.course import Course, CutShortError, Stage
from berth.insight.whatif.deciding import Decider, as_compared, decider
from berth.insight.whatif.find_nodes import nodes_needed
from berth.insight.whatif.find_removable import removable
from berth.insight.whatif.groups import group_outcomes, notes_on_groups
from berth.insight.whatif.movable import Movable
from berth.insight.whatif.partial_answer import note_on, partial
from berth.insight.whatif.placing import Placed, Placing
from berth.insight.whatif.question import Question
from berth.insight.whatif.repacking import repacked, spare_moves
from berth.insight.whatif.snapshot import Snapshot
from berth.insight.whatif.typical_pods import TypicalPods
from berth.insight.whatif.usage import NodesThen, changed_nodes, nothing
from berth.insight.whatif.victims import victims_then
from berth.insight.whatif.world import World
from berth.scheduler.core.simulated_cluster import run_simulation
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.profile.build import Registry


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
    outcome, found = await _simulate(question, snapshot, registry, decides, course)
    compared, left = None, found.partial
    if others is not None and left is None:
        compared, of_other = await _simulate(
            other, snapshot, registry, others, course, stage="comparing"
        )
        left = of_other.partial
        compared = None if left else compared
    return Answer(
        **dict(outcome),
        snapshot_time=snapshot.time,
        notes=found.notes if left is None else (*found.notes, note_on(left)),
        admission=found.admission,
        nodes_needed=found.nodes_needed,
        removable=found.removable,
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
