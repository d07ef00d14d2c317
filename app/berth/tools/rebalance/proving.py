"""Plans by a solver, with proof: which evictions let pods in, and that fewer do not."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from berth.insight.certificate import counting
from berth.insight.certificate.certificate import COUNTING, SOLVER, Certificate, Number
from berth.insight.certificate.model import Model, model_of
from berth.insight.certificate.problem import Goal, Limits, Solution, Stage, Status
from berth.insight.certificate.solver_process import find
from berth.insight.whatif.snapshot import Snapshot
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.words import counted
from berth.scheduler.profile.build import Registry
from berth.tools.rebalance.trial import Trial

MOST_PLANS: Final = 20
"""Plans that are tried: the scheduler may put pods elsewhere than a plan needs them."""
EVICTIONS: Final = "evictions"
PENDING: Final = "pending pods that fit"


@dataclass(frozen=True, slots=True)
class Plan:
    """Evictions that a solver proposes, and the nodes of the pods that are to fit."""

    evicted: Sequence[str]
    """Keys of pods; those of the lowest priority last, as the scheduler gets to them."""
    targets: dict[str, str]
    """By key."""
    stages: tuple[Stage, ...]
    emptied: Sequence[str] = ()
    """Nodes that are to become empty."""


class Prover:
    """Makes plans for one cluster, as it is at the beginning."""

    def __init__(
        self,
        snapshot: Snapshot,
        registry: Registry,
        limits: Limits,
        *,
        uncordoned: Collection[str] = (),
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._snapshot, self._registry, self._limits = snapshot, registry, limits
        self._uncordoned, self._look = uncordoned, look
        self.first: Solution | None = None
        """The one that has the bound: those after it have fewer plans to choose from."""
        self._model: Model | None = None
        self._seconds = 0.0
        self._dropped: list[str] = []

    def plans(
        self,
        wanted: Sequence[PodInfo],
        goal: Goal,
        *,
        most_evictions: int | None = None,
        empty_nodes: int = 0,
    ) -> Iterator[Plan]:
        """Yield plans, the best first, as long as there is time.

        They let *wanted* in, and leave so many nodes empty.
        """
        trial = Trial(self._snapshot, self._registry)
        for name in self._uncordoned:
            trial.uncordon(name)
        cluster, running = trial.emptied()
        self._model = model = model_of(
            cluster,
            goal,
            running=running,
            waiting=wanted,
            most_evictions=most_evictions,
            empty_nodes=empty_nodes,
        )
        problem = model.problem
        for _ in range(MOST_PLANS):
            left = self._limits.seconds - self._seconds
            if left <= 0:
                return
            solution = find(problem, replace(self._limits, seconds=left), self._look)
            self._seconds += solution.seconds
            self.first = self.first or solution
            if solution.status is not Status.SOLVED:
                return
            evicted = sorted(model.evicted(solution.placement), key=lambda pod: -pod.priority)
            targets = model.assigned(solution.placement)
            yield Plan(
                [pod.key for pod in evicted],
                {pod.key: targets[pod.key] for pod in wanted if pod.key in targets},
                solution.stages,
                model.emptied(solution.placement),
            )
            evictions = model.evictions(solution.placement)
            if not evictions:
                return  # nothing is left to do otherwise
            problem = replace(problem, forbidden=(*problem.forbidden, evictions))

    def drop(self, plan: Plan, why: str) -> None:
        """Note that *plan* was not carried out, and why."""
        self._dropped.append(f"a plan with {counted(len(plan.evicted), 'eviction')}: {why}")

    @property
    def is_impossible(self) -> bool:
        """Whether it is proven that there is no plan."""
        return self.first is not None and self.first.status is Status.IMPOSSIBLE

    def certificate(self, goal: str, values: Sequence[int | None]) -> Certificate:
        """Return how good *values* are: what came of it, for each number that was sought."""
        assert self._model is not None, "a plan was asked for"
        solution, problem, notes = self.first, self._model.problem, []
        is_solved = solution is not None and solution.status is Status.SOLVED
        if solution is not None and is_solved:
            stages = solution.stages
        else:
            what = PENDING if problem.goal is Goal.MOST_PENDING else EVICTIONS
            stages = (Stage(what, 0, counting.bound(problem)),)
            if solution is not None and solution.why:
                notes.append(f"no plan by the solver: {solution.why}")
            if len(values) > 1:  # of all priorities together
                pending = [value for value in values[:-1] if value is not None]
                values = [sum(pending)]
        numbers = []
        for stage, value in zip(stages, values, strict=False):
            is_more_better = problem.goal is Goal.MOST_PENDING and stage.what != EVICTIONS
            bound = stage.bound
            if value is not None and (value > bound if is_more_better else value < bound):
                # The rules bind pods when they come, and the model also afterwards.
                notes.append(f"the bound {bound} of {stage.what} does not hold for what was found")
                bound = value
            numbers.append(Number(stage.what, value, bound))
            if value != stage.value:
                break  # the numbers after it were sought for another one
        if self._dropped:
            count = len(self._dropped)
            notes.append(f"{counted(count, 'plan')} dropped; the first: {self._dropped[0]}")
        return Certificate(
            goal=goal,
            numbers=tuple(numbers),
            method=SOLVER if is_solved else COUNTING,
            seconds=self._seconds,
            left_out=tuple(self._model.left_out),
            notes=tuple(notes),
        )
