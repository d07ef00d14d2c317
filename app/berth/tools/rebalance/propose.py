"""Finds evictions for a goal: the fewest that do, and of those the pods of the lowest priority.

All that is proposed was carried out on a private copy of the cluster before, where the scheduler
decided about every pod that is made again. The same snapshot always has the same proposal.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Final

from berth.insight.certificate.certificate import Certificate
from berth.insight.certificate.problem import Goal, Limits
from berth.insight.whatif.snapshot import Snapshot
from berth.kube.objects.node_pods import goes_with_node
from berth.runtime.errors import UserError
from berth.scheduler.core.simulated_cluster import run_simulation
from berth.scheduler.framework.node_table import CPU, MEMORY
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.words import counted
from berth.scheduler.profile.build import Registry
from berth.tools.rebalance.proposal import Proposal, Step, Unmet
from berth.tools.rebalance.proving import Plan, Prover
from berth.tools.rebalance.skew import Constraint, constraints
from berth.tools.rebalance.trial import Outcome, Trial

MOST_TRIALS: Final = 2_000
"""Sets of evictions that are tried for one pod before it is given up."""


class RebalanceError(UserError):
    """A goal that makes no sense for this cluster; names the flag and the value."""


@dataclass(frozen=True, slots=True)
class Goals:
    """What is to be reached, in this order."""

    for_pods: Sequence[str] = ()
    """Pods, ``namespace/name``, that are to fit; those that have a node do."""
    empty_nodes: Sequence[str] = ()
    """Nodes that are to become empty, but for what goes with them."""
    num_empty_nodes: int = 0
    """How many nodes are to become empty, whichever they are."""
    pending: bool = False
    """Whether as many pending pods as can be are to fit, those of higher priority first."""
    most_evictions: int | None = None
    """For pending pods: how many pods may be evicted in all."""
    mends_skew: bool = False
    """Whether topology spread constraints are to be kept by running pods."""


def propose(
    snapshot: Snapshot,
    goals: Goals,
    registry: Registry,
    *,
    uncordoned: Collection[str] = (),
    before_trial: Callable[[], None] = lambda: None,
    proof: Limits | None = None,
) -> Proposal:
    """Return what to evict on the cluster of *snapshot*, were the nodes *uncordoned* not cordoned.

    *before_trial* is called again and again, and may raise to end the search. With limits for a
    *proof*, a solver plans for pods that are to fit, and says how far the proposal is from the
    best. Raises RebalanceError, SnapshotError or ConfigError.
    """
    stays: dict[str, str] = {}
    while True:
        trial = Trial(snapshot, registry, before_trial=before_trial)
        for name in uncordoned:
            trial.uncordon(name)
        prover = None
        if proof is not None:
            prover = Prover(snapshot, registry, proof, uncordoned=uncordoned, look=before_trial)
        search = _Search(trial, stays, prover)
        proposal = run_simulation(search.run(goals))
        if not search.failed:
            return proposal
        # They were cordoned when pods of other nodes moved, and will not be: all begins anew.
        stays |= search.failed


class _Search:
    def __init__(self, trial: Trial, stays: Mapping[str, str], prover: Prover | None) -> None:
        """*stays* are nodes that cannot become empty, and why."""
        self._trial = trial
        self._prover = prover
        self._stays = dict(stays)
        self.failed: dict[str, str] = {}
        """Further such nodes."""
        self._steps: list[Step] = []
        self._unmet: list[Unmet] = []
        self._certificates: list[Certificate] = []
        self._evictions_left: int | None = None

    async def run(self, goals: Goals) -> Proposal:
        wanted = [self._pod(key) for key in goals.for_pods]
        wanted = sorted((pod for pod in wanted if not pod.node_name), key=lambda p: -p.priority)
        if self._prover is not None and wanted:
            await self._make_fit_by_plan(self._prover, wanted)
        else:
            for pod in wanted:
                await self._make_fit(pod)
        if goals.pending:
            self._evictions_left = goals.most_evictions
            await self._make_most_fit(goals.most_evictions)
            self._evictions_left = None
        for name in goals.empty_nodes:
            if name not in self._trial.nodes:
                raise RebalanceError(f"--empty-nodes: {name!r}: there is no such node")
        await self._empty_all(self._candidates(goals.empty_nodes))
        for name in goals.empty_nodes:
            if name in self._stays:
                self._unmet.append(Unmet(f"{name} is empty", self._stays[name]))
        if number := goals.num_empty_nodes:
            await self._empty_some(number)
        if goals.mends_skew:
            for constraint in constraints(self._trial):
                await self._mend(constraint)
        return Proposal(tuple(self._steps), tuple(self._unmet), tuple(self._certificates))

    def _pod(self, key: str) -> PodInfo:
        pod = self._trial.pod(key)
        if pod is None:
            raise RebalanceError(f"--for-pod: {key!r}: there is no such pod, or it has finished")
        return pod

    def _why_not(self, pod: PodInfo) -> str:
        if pod.uid in self._trial.made:
            return "it is in the place of a pod that is evicted already"
        return self._trial.evictable.why_not(pod)

    def _evictable(self, node: str) -> list[PodInfo]:
        """Return whom a node can lose, the least important first."""
        pods = [pod for pod in self._trial.pods_on(node) if not self._why_not(pod)]
        return sorted(pods, key=lambda pod: (pod.priority, pod.key))

    async def _try(
        self,
        goal: str,
        pods: Sequence[PodInfo],
        wanted: Sequence[PodInfo] = (),
        *,
        cordon: str = "",
        uncordon: bool = False,
        also_cordoned: tuple[str, ...] = (),
    ) -> str:
        """Evict *pods*; keep that as a step if it goes well, else return why it does not."""
        if self._evictions_left is not None and len(pods) > self._evictions_left:
            return f"{self._evictions_left} evictions are left, and it takes {len(pods)}"
        cordoned = (cordon, *also_cordoned) if uncordon else ()
        outcome = await self._trial.evict(pods, wanted, cordoned=cordoned)
        if outcome.failure:
            self._trial.take_back()
            return outcome.failure
        self._trial.keep()
        self._steps.append(Step(goal, cordon, uncordon, tuple(outcome.rounds), also_cordoned))
        if self._evictions_left is not None:
            self._evictions_left -= len(pods)
        return ""

    # Pods that are to fit.

    async def _make_fit(self, wanted: PodInfo) -> None:
        goal = f"{wanted.key} fits"
        failure = await self._try(goal, (), [wanted])
        if not failure:
            return
        for pods in islice(self._sets(wanted), MOST_TRIALS):
            if await self._make_fit_without(pods, wanted):
                return
        larger = await self._more_than_two(wanted)
        if larger is None or not await self._make_fit_without(larger, wanted):
            self._unmet.append(Unmet(goal, failure))

    async def _make_fit_without(self, pods: Sequence[PodInfo], wanted: PodInfo) -> bool:
        """Evict *pods* of one node for *wanted*; if they would come back, cordon it meanwhile."""
        goal, node = f"{wanted.key} fits", pods[0].node_name
        return not await self._try(goal, pods, [wanted]) or (
            not self._trial.is_cordoned(node)
            and not await self._try(goal, pods, [wanted], cordon=node, uncordon=True)
        )

    def _sets(self, wanted: PodInfo) -> Iterator[Sequence[PodInfo]]:
        """Yield one pod, then two of a node, whose room would do, the least important first."""
        nodes = self._trial.nodes
        singles = [(pod,) for node in nodes for pod in self._evictable(node)]
        pairs = [pair for node in nodes for pair in combinations(self._evictable(node), 2)]
        for sets in (singles, pairs):
            sets.sort(key=_importance)
            yield from (pods for pods in sets if self._has_room(wanted, pods))

    def _has_room(self, wanted: PodInfo, pods: Iterable[PodInfo]) -> bool:
        """Whether the node of *pods* has room for *wanted* without them; needed, not sufficient."""
        gone, table = list(pods), self._trial.table
        row = table.row_of[gone[0].node_name]
        needs = wanted.template.incoming_requested
        for index, need, freed in (
            (CPU, needs.milli_cpu, sum(pod.template.requested.milli_cpu for pod in gone)),
            (MEMORY, needs.memory, sum(pod.template.requested.memory for pod in gone)),
        ):
            if need > int(table.allocatable[index, row] - table.requested[index, row]) + freed:
                return False
        return True

    async def _more_than_two(self, wanted: PodInfo) -> Sequence[PodInfo] | None:
        """Return three pods or more of one node that would do; None: none were found.

        The least important go until there is room, and then one after the other is spared, the most
        important first, if it works without it.
        """
        best: Sequence[PodInfo] | None = None
        for node in self._trial.nodes:
            if self._trial.is_cordoned(node):
                continue
            pods = await self._enough(self._evictable(node), wanted)
            for pod in reversed(pods):
                fewer = [other for other in pods if other is not pod]
                if fewer and self._has_room(wanted, fewer) and not await self._fails(fewer, wanted):
                    pods = fewer
            if pods and (
                best is None or (len(pods), _importance(pods)) < (len(best), _importance(best))
            ):
                best = pods
        return best

    async def _enough(self, pods: Sequence[PodInfo], wanted: PodInfo) -> Sequence[PodInfo]:
        """Return the first of *pods*, as many as are needed; none if that does not help."""
        for number in range(3, len(pods) + 1):
            first = pods[:number]
            if self._has_room(wanted, first) and not await self._fails(first, wanted):
                return first
        return ()

    async def _fails(self, pods: Sequence[PodInfo], wanted: PodInfo) -> bool:
        node = pods[0].node_name
        outcome = await self._trial.evict(pods, [wanted], cordoned=(node,))
        self._trial.take_back()
        return bool(outcome.failure)

    # Pods that are to fit, by plan.

    async def _make_fit_by_plan(self, prover: Prover, wanted: Sequence[PodInfo]) -> None:
        """Make all of *wanted* fit with the fewest evictions; without a plan, one after another."""
        names, first = ", ".join(pod.key for pod in wanted), len(self._steps)
        goal = f"{names} fit{'s' if len(wanted) == 1 else ''}"
        for plan in prover.plans(wanted, Goal.FEWEST_EVICTIONS):
            if not (why := await self._carry_out(plan, goal, wanted)):
                break
            prover.drop(plan, why)
        else:
            if prover.is_impossible:
                why = "proven: no evictions of pods that may be evicted make room"
                self._unmet.append(Unmet(goal, why))
                return
            for pod in wanted:
                await self._make_fit(pod)
        missing = {pod.key for pod in wanted} - self._placed_since(first)
        value = None if missing else self._evicted_since(first)
        proven = prover.certificate(f"fewest evictions so that {goal}", [value])
        self._certificates.append(proven)

    async def _make_most_fit(self, most: int | None) -> None:
        """Make as many pending pods fit as can be, with at most so many evictions."""
        first, wanted = len(self._steps), self._trial.pending
        if not wanted:
            return
        priorities = sorted({pod.priority for pod in wanted}, reverse=True)
        if self._prover is not None:
            plans = self._prover.plans(wanted, Goal.MOST_PENDING, most_evictions=most)
            for plan in plans:
                fitting = [pod for pod in wanted if pod.key in plan.targets]
                fits = "fits" if len(fitting) == 1 else "fit"
                goal = f"{counted(len(fitting), 'pending pod')} {fits}"
                if not fitting or not (why := await self._carry_out(plan, goal, fitting)):
                    break
                self._prover.drop(plan, why)
        placed = self._placed_since(first)
        for pod in wanted:
            if pod.key not in placed:
                await self._make_fit(pod)
        if self._prover is not None:
            placed = self._placed_since(first)
            values = [
                sum(pod.priority == priority and pod.key in placed for pod in wanted)
                for priority in priorities
            ]
            goal = "most pending pods" + (
                f" with at most {most} evictions" if most is not None else ""
            )
            evicted = self._evicted_since(first)
            self._certificates.append(self._prover.certificate(goal, [*values, evicted]))

    async def _carry_out(self, plan: Plan, goal: str, wanted: Sequence[PodInfo]) -> str:
        """Evict as planned; if pods would take the room, cordon the nodes meanwhile."""
        pods = [pod for key in plan.evicted if (pod := self._trial.pod(key)) is not None]
        failure = await self._try(goal, pods, wanted)
        targets = sorted(set(plan.targets.values()))
        if not failure or not pods or any(map(self._trial.is_cordoned, targets)):
            return failure
        first, *others = targets
        return await self._try(
            goal, pods, wanted, cordon=first, uncordon=True, also_cordoned=tuple(others)
        )

    def _evicted_since(self, first: int) -> int:
        steps = self._steps[first:]
        return sum(len(round_.evictions) for step in steps for round_ in step.rounds)

    def _placed_since(self, first: int) -> set[str]:
        return {
            placement.pod
            for step in self._steps[first:]
            for round_ in step.rounds
            for placement in round_.placements
        }

    # Nodes that are to become empty.

    def _cost_of_emptying(self, name: str) -> tuple[int, list[int], str]:
        """Nodes come first from which few pods have to move, and less important ones."""
        pods = self._leaving(name)
        return len(pods), sorted((pod.priority for pod in pods), reverse=True), name

    def _candidates(self, names: Sequence[str]) -> list[str]:
        """Return those of *names* that may become empty; of the others it is noted why not."""
        for name in names:
            for pod in self._leaving(name) if name not in self._stays else ():
                if why := self._why_not(pod):
                    self._stays[name] = f"{pod.key} cannot be evicted: {why}"
                    break
        return [name for name in names if name not in self._stays]

    def _leaving(self, name: str) -> list[PodInfo]:
        """Return the pods that have to leave a node, the least important first."""
        pods = [pod for pod in self._trial.pods_on(name) if not goes_with_node(pod.pod)]
        return sorted(pods, key=lambda pod: (pod.priority, pod.key))

    async def _empty_some(self, number: int) -> None:
        """Empty so many nodes: by plan, or else the cheapest."""
        goal, first = (
            f"{counted(number, 'node')} {'is' if number == 1 else 'are'} empty",
            len(self._steps),
        )
        is_done = self._prover is not None and await self._empty_by_plan(self._prover, number, goal)
        if not is_done and self._prover is not None and self._prover.is_impossible:
            why = "proven: no evictions of pods that may be evicted empty so many nodes"
            self._unmet.append(Unmet(goal, why))
            return
        names: list[str] = []
        if not is_done:
            cheapest = sorted(self._trial.nodes, key=self._cost_of_emptying)
            names = self._candidates(cheapest)[:number]
            await self._empty_all(names)
            if len(names) < number:
                why = "; ".join(f"{name}: {reason}" for name, reason in self._stays.items())
                self._unmet.append(Unmet(goal, why))
        if self._prover is not None:
            is_reached = is_done or (len(names) == number and not self.failed)
            value = self._evicted_since(first) if is_reached else None
            proven = self._prover.certificate(f"fewest evictions so that {goal}", [value])
            self._certificates.append(proven)

    async def _empty_by_plan(self, prover: Prover, number: int, goal: str) -> bool:
        for plan in prover.plans((), Goal.FEWEST_EVICTIONS, empty_nodes=number):
            cordoned = [name for name in plan.emptied if not self._trial.is_cordoned(name)]
            for name in cordoned:
                self._trial.set_cordoned(name, cordoned=True)
            pods = [pod for key in plan.evicted if (pod := self._trial.pod(key)) is not None]
            first, *others = plan.emptied
            if not (why := await self._try(goal, pods, cordon=first)):
                for name in others:
                    await self._try(f"{name} is empty", (), cordon=name)
                return True
            prover.drop(plan, why)
            for name in cordoned:
                self._trial.set_cordoned(name, cordoned=False)
        return False

    async def _empty_all(self, names: Sequence[str]) -> None:
        """Empty nodes. All are cordoned at first, so that no pod moves from one to the next."""
        for name in names:
            self._trial.set_cordoned(name, cordoned=True)
        for name in names:
            if why := await self._try(f"{name} is empty", self._leaving(name), cordon=name):
                self.failed[name] = why

    # Constraints that are to be kept.

    async def _mend(self, constraint: Constraint) -> None:
        """Evict pods one after the other, from where there are most, until the skew is small."""
        goal = f"{constraint} is kept"
        while (before := constraint.skew(self._trial)) > constraint.max_skew:
            failures = []
            for pod in self._in_largest_domain(constraint):
                outcome = await self._trial.evict([pod], ())
                if not outcome.failure and constraint.skew(self._trial) < before:
                    self._trial.keep()
                    self._steps.append(Step(goal, rounds=tuple(outcome.rounds)))
                    break
                self._trial.take_back()
                failures.append(outcome.failure or _not_less(outcome))
            else:
                why = "; ".join(failures) or "no pod in the largest domain may be evicted"
                self._unmet.append(Unmet(goal, f"the skew is {before}: {why}"))
                return

    def _in_largest_domain(self, constraint: Constraint) -> list[PodInfo]:
        pods = [pod for pod in constraint.most(self._trial) if not self._why_not(pod)]
        return sorted(pods, key=lambda pod: (pod.priority, pod.key))


def _not_less(outcome: Outcome) -> str:
    [eviction] = outcome.rounds[0].evictions
    return f"{eviction.pod} would go to {eviction.goes_to}, and the skew would not be less"


def _importance(pods: Sequence[PodInfo]) -> tuple[list[int], list[str]]:
    """Sort sets of as many pods: by the highest priority, then the next; then by name."""
    return sorted((pod.priority for pod in pods), reverse=True), sorted(pod.key for pod in pods)
