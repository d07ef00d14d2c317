"""Answers a question about a snapshot."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from berth.config.load import default_configuration, from_object
from berth.config.types import KubeSchedulerConfiguration
from berth.core.simulated_cluster import run_simulation
from berth.framework.pod_info import PodInfo
from berth.profile.build import Registry, args_models
from berth.whatif.answer import Answer, Group, NodesNeeded, Outcome, Removable, Unplaced
from berth.whatif.find_nodes import nodes_needed
from berth.whatif.find_removable import removable
from berth.whatif.groups import group_outcomes, notes_on_groups
from berth.whatif.movable import Movable
from berth.whatif.placing import Placed, Placing
from berth.whatif.question import Question
from berth.whatif.repacking import repacked, spare_moves
from berth.whatif.snapshot import Snapshot
from berth.whatif.usage import EVERYTHING, measure, nothing, value_of
from berth.whatif.world import World


def answer(question: Question, snapshot: Snapshot, registry: Registry) -> Answer:
    """Simulate what *question* asks on a copy of *snapshot*; the same always has the same answer.

    The scheduler of the snapshot decides, with its queue, on a clock that does not wait. Raises
    QuestionError, SnapshotError or ConfigError; each names the field.
    """
    return run_simulation(_answer(question, snapshot, registry))


async def _answer(question: Question, snapshot: Snapshot, registry: Registry) -> Answer:
    written = snapshot.config if question.config is None else question.config
    outcome, found = await _simulate(question, snapshot, registry, written)
    compared = None
    if question.compare_config is not None:
        alone = question.model_copy(update={"find_nodes": None, "find_removable": None})
        compared, _ = await _simulate(alone, snapshot, registry, question.compare_config)
    return Answer(
        **dict(outcome),
        snapshot_time=snapshot.time,
        notes=found.notes,
        nodes_needed=found.nodes_needed,
        removable=found.removable,
        compared=compared,
        moved=None if compared is None else _moved(outcome.placements, compared.placements),
    )


class _Found(NamedTuple):
    """What is found out beside the outcome."""

    notes: tuple[str, ...]
    nodes_needed: NodesNeeded | None
    removable: Removable | None


async def _simulate(
    question: Question,
    snapshot: Snapshot,
    registry: Registry,
    written: Mapping[str, Any] | None,
) -> tuple[Outcome, _Found]:
    config = _configuration(written, registry)
    # What one configuration has come to says little to another.
    state = snapshot.scheduler if written is snapshot.config else None

    def begin(*, preempts: bool = False) -> tuple[World, Placing]:
        placing = Placing.on_empty_cluster(
            config,
            registry,
            seed=question.seed,
            preempts=preempts,
            now=snapshot.now,
            listers=snapshot.listers,
        )
        world = World.of(question, snapshot, placing.cluster, state)
        if question.repack:
            world.repack(Movable(world.cluster.listers, placing.profiles))
        world.leave_to_others(placing.profiles)
        world.notes += notes_on_groups(world)
        return world, placing

    world, placing = begin(preempts=question.preemption)
    goal = {pod.key for pod in world.asked or world.pending}
    placed = await placing.place(world.waiting, explains=True)
    if question.repack:
        spare_moves(world, placed)
    outcome = _outcome(world, placed, goal=goal, question=question)
    needed = can_go = None
    if question.find_nodes is not None:
        if question.preemption:  # who was evicted must be there again
            world, placing = begin()
            placed = await placing.place(world.waiting)
        placing.take_back()
        needed = await nodes_needed(world, placing, question.find_nodes, without=placed, goal=goal)
    if question.find_removable is not None:
        world.chosen_nodes(question.find_removable, at="findRemovable")  # for its notes
        can_go = await removable(begin, question.find_removable)
    return outcome, _Found(tuple(world.notes), needed, can_go)


def _configuration(
    written: Mapping[str, Any] | None, registry: Registry
) -> KubeSchedulerConfiguration:
    models = args_models(registry)
    if written is None:
        return default_configuration(models)
    return from_object(written, source="config", args_models=models)


def _outcome(world: World, placed: Placed, *, goal: set[str], question: Question) -> Outcome:
    table, labels = world.cluster.cache.table, question.group_by
    after = measure(table, labels)
    groups = {}
    for label in labels:
        here: dict[str, int] = {}
        for node in placed.nodes.values():
            value = value_of(table, table.row_of[node], label)
            here[value] = here.get(value, 0) + 1
        before = world.before[label]
        groups[label] = tuple(
            Group(
                value=value,
                placed=here.get(value, 0),
                before=before.get(value, nothing()),
                after=after[label].get(value, nothing()),
            )
            for value in sorted(before.keys() | after[label].keys())
        )
    return Outcome(
        fits=not goal & placed.refusals.keys(),
        placements=placed.nodes,
        unplaced=_unplaced(world, placed),
        pod_groups=group_outcomes(world, placed),
        victims=tuple(placed.victims),
        before=world.before[EVERYTHING][EVERYTHING],
        after=after[EVERYTHING][EVERYTHING],
        groups=groups,
        repacked=repacked(world, placed) if question.repack else None,
    )


def _unplaced(world: World, placed: Placed) -> tuple[Unplaced, ...]:
    """Group who has no node by what it was made from and why, in the order of the question."""

    def grouped(pods: Iterable[PodInfo], *, asked: bool) -> list[Unplaced]:
        alike: dict[tuple[str, str], list[str]] = {}
        for pod in pods:
            if pod.key in placed.refusals:
                kind = (world.template_of[pod.key], placed.refusals[pod.key])
                alike.setdefault(kind, []).append(pod.key)
        return [
            Unplaced(template=template, message=message, pods=tuple(keys), asked=asked)
            for (template, message), keys in alike.items()
        ]

    return (*grouped(world.asked, asked=True), *grouped(world.pending, asked=False))


def _moved(one: Mapping[str, str], other: Mapping[str, str]) -> int:
    return sum(one.get(key) != other.get(key) for key in one.keys() | other.keys())
