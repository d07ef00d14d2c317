"""Places pods on a cluster that might be, in the order in which the queue would try them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Final

import msgspec

from berth.config.types import KubeSchedulerConfiguration
from berth.framework.handle import Handle
from berth.framework.pod_info import PodInfo, QueuedPodInfo
from berth.framework.pod_signature import PodSignature, signature_of
from berth.framework.preemption.candidate import Candidate
from berth.framework.status import Status
from berth.objects.pod import Pod
from berth.objects.policy import PodDisruptionBudget
from berth.objects.selectors import compile_selector
from berth.offline.scenario import Scenario
from berth.offline.simulate import Simulation
from berth.profile.build import Registry, build_profiles
from berth.profile.profile import Profile
from berth.scheduler import outcome as scheduler_outcome
from berth.scheduler.outcome import Unschedulable
from berth.scheduler.schedule_pod import smallest_name
from berth.scheduler.signatures import signature_profiles
from berth.whatif.answer import Victim

LAST: Final = float("inf")
"""When pods came that were never created."""


@dataclass(slots=True)
class Placed:
    """What became of the pods."""

    nodes: dict[str, str] = field(default_factory=dict)
    """Node by key of the pod."""
    refusals: dict[str, str] = field(default_factory=dict)
    """Why the others have none: the text of the FailedScheduling event, or what gates them."""
    victims: list[Victim] = field(default_factory=list)


@dataclass(slots=True)
class Placing:
    """Profiles on one cluster; places pods on it, and can take them back."""

    cluster: Scenario
    profiles: Mapping[str, Profile]
    simulation: Simulation
    seed: int
    dice: tuple[Random, ...]
    """What chance decides by; thrown anew whenever pods are placed."""
    signature_profiles: frozenset[str]
    """Those whose plugins decide by signature."""
    hopeless: dict[PodSignature, tuple[int, str]] = field(default_factory=dict)
    """Of signatures of pods that fit nowhere: when that was, and why."""

    @classmethod
    def on(
        cls,
        cluster: Scenario,
        config: KubeSchedulerConfiguration,
        registry: Registry,
        *,
        seed: int | None,
    ) -> "Placing":
        """Make the profiles of *config*; ConfigError when that cannot be.

        Of several best nodes one is drawn by *seed*; without, it is the one of the smallest name.
        """
        nodes, ties, others = cluster.cache.table, Random(), Random()
        handle = Handle(nodes, rng=others, listers=cluster.listers, pod=cluster.pods.get)
        profiles = build_profiles(config, registry, handle)
        select = smallest_name(nodes) if seed is None else ties.choice
        simulation = Simulation(cluster, profiles, (), select=select)
        return cls(
            cluster, profiles, simulation, seed or 0, (ties, others), signature_profiles(profiles)
        )

    def place(self, pods: Iterable[PodInfo], *, preempting: bool = False) -> Placed:
        """Place *pods*, the first in the queue first.

        Who fits nowhere is tried again after all others, as often as that brings anybody a node:
        what came after may have been what it waits for. (A queue would try it again as soon as its
        backoff is over, which may be before some of the others.) With *preempting*, pods that it
        may evict leave at once, for good.
        """
        for dice in self.dice:
            dice.seed(self.seed)
        placed = Placed()
        waiting = {pod.key: pod for pod in self._ungated(pods, placed)}
        left = -1
        while left != len(waiting):
            left, tried = len(waiting), set[str]()
            for pod in list(waiting.values()):
                if pod.key in waiting and pod.key not in tried:
                    tried.update(self._try(pod, placed, waiting, preempting=preempting))
        return placed

    def take_back(self) -> None:
        """Undo all that was placed; not what was evicted."""
        self.simulation.take_back()

    def keep(self) -> None:
        """Let all be that was placed; what is placed from now on can be taken back."""
        self.simulation.keep()

    def _ungated(self, pods: Iterable[PodInfo], placed: Placed) -> list[PodInfo]:
        """Return who may be tried, in order; those who may not are refused."""
        sort_key = next(iter(self.profiles.values())).queue_sort.sort_key
        free, gated = self._asked_at_gates(pods)
        came = bool(gated)
        while came:  # who was asked about later may have been what others wait for
            ungated, gated = self._asked_at_gates(pod for pod, _ in gated)
            free += ungated
            came = bool(ungated and gated)
        for pod, status in gated:
            placed.refusals[pod.key] = f"not tried: {status.message}"
        return sorted(free, key=lambda pod: sort_key(QueuedPodInfo(pod, _created(pod.pod))))

    def _asked_at_gates(
        self, pods: Iterable[PodInfo]
    ) -> tuple[list[PodInfo], list[tuple[PodInfo, Status]]]:
        """Return who may be tried, and who may not with the reason."""
        free, gated = [], []
        for pod in pods:
            gates = self.simulation.gates(pod)
            status = next(filter(None, (gate.pre_enqueue(pod) for gate in gates)), None)
            if status is None:
                free.append(pod)
            else:
                gated.append((pod, status))
        return free, gated

    def _try(
        self, pod: PodInfo, placed: Placed, waiting: dict[str, PodInfo], *, preempting: bool
    ) -> list[str]:
        """Find nodes for *pod* and for its gang; return who was tried, by key.

        Who has one leaves *waiting*.
        """
        table = self.cluster.cache.table
        profile = pod.pod.spec.scheduler_name
        signature = signature_of(pod) if profile in self.signature_profiles else None
        known = self.hopeless.get(signature) if signature else None
        if known is not None and known[0] == table.last_generation:
            placed.refusals[pod.key] = known[1]
            return [pod.key]
        outcomes = self.simulation.place(pod, preempting=preempting, others=waiting)
        outcome, chosen = outcomes[0], None
        result = outcome.post_filter if isinstance(outcome, Unschedulable) else None
        if result is not None and result.preemption is not None:
            chosen = result.preemption.chosen
        if chosen is not None:
            self._evict(chosen, placed, preemptor=pod)
            outcomes = self.simulation.place(self._nominated(pod, chosen.node))
        for outcome in outcomes:
            key = outcome.pod.key
            if isinstance(outcome, scheduler_outcome.Placed):
                placed.nodes[key] = outcome.node_name
                placed.refusals.pop(key, None)
                del waiting[key]
            else:
                placed.refusals[key] = outcome.message
                if signature and not outcome.gang:  # a gang's hope is in the others, too
                    self.hopeless[signature] = (table.last_generation, outcome.message)
        return [outcome.pod.key for outcome in outcomes]

    # Preemption.

    def _evict(self, chosen: Candidate, placed: Placed, *, preemptor: PodInfo) -> None:
        """Let the victims leave; budgets allow so many evictions less from now on."""
        for victim in chosen.victims:
            self._charge(victim)
            self.cluster.cache.remove_pod(victim.pod)
            self.cluster.pods.pop(victim.key, None)
            if placed.nodes.pop(victim.key, None) is not None:
                placed.refusals[victim.key] = f"evicted for {preemptor.key}"
            placed.victims.append(
                Victim(
                    pod=victim.key,
                    node=chosen.node,
                    priority=victim.priority,
                    preemptor=preemptor.key,
                )
            )
        for other in list(self.cluster.nominated.get(chosen.node, ())):
            if other.priority < preemptor.priority:  # the room is not left to it any more
                self.cluster.end_nomination(other)

    def _charge(self, victim: PodInfo) -> None:
        lister, replace = self.cluster.listers.pod_disruption_budgets, msgspec.structs.replace
        for budget in list(lister.in_namespace(victim.namespace).values()):
            if victim.name in budget.status.disrupted_pods or not _is_about(budget, victim):
                continue
            allowed = max(budget.status.disruptions_allowed - 1, 0)
            status = replace(budget.status, disruptions_allowed=allowed)
            lister.on_add(replace(budget, status=status))

    def _nominated(self, pod: PodInfo, node: str) -> PodInfo:
        status = msgspec.structs.replace(pod.pod.status, nominated_node_name=node)
        nominated = msgspec.structs.replace(pod.pod, status=status)
        self.cluster.end_nomination(pod)
        self.cluster.pods[pod.key] = nominated
        return PodInfo(nominated)


def _is_about(budget: PodDisruptionBudget, pod: PodInfo) -> bool:
    """Whether *budget* counts *pod*; one that cannot be read, or selects nothing, counts none."""
    try:
        selector = compile_selector(budget.spec.selector)
    except ValueError:
        return False
    return not selector.is_empty and selector.matches(pod.labels)


def _created(pod: Pod) -> float:
    """Return when *pod* was created, in seconds; LAST if that is not known."""
    written = pod.metadata.creation_timestamp
    if not written:
        return LAST
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return LAST
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
