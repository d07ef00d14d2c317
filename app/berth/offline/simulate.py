"""A sequence of pods in, where each would go out, in the shape of the recordings."""

import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from berth.config.defaults import DEFAULT_SCHEDULER_NAME
from berth.framework.cycle_state import Gang
from berth.framework.handle import Handle
from berth.framework.interface import PreEnqueuePlugin
from berth.framework.pod_info import PodInfo, QueuedPodInfo
from berth.objects.pod import Pod
from berth.offline.explain import configuration
from berth.offline.scenario import Scenario, ScenarioError, read
from berth.profile.build import Registry, build_profiles
from berth.profile.profile import Profile
from berth.scheduler.cycle import Cycle
from berth.scheduler.gang import Member, schedule_gang
from berth.scheduler.outcome import Failed, Outcome, Placed, Unschedulable, refused_placement
from berth.scheduler.post_filter import run_post_filter_plugins
from berth.scheduler.reservation import Reservation, assume, reserve
from berth.scheduler.schedule_pod import Select, evaluate_pod, smallest_name


def simulate(
    scenario: Mapping[str, Any], registry: Registry, *, seed: int | None = None
) -> dict[str, Any]:
    """Schedule ``scenario["pods"]`` in their order, each with those before it in place.

    A pod gets its node and what Reserve plugins reserve for it; nothing is bound, nobody is
    preempted, and who does not fit is left out. A gang is placed when its first pod's turn comes.
    No pod is held back: PreEnqueue plugins see all pods, and may say what they like. A scenario
    with a single pod gets ``{"id", "unsupported"}``: it is for ``berth explain``. Raises
    ScenarioError or ConfigError when the scenario is malformed.

    Of several best nodes the smallest name is taken, as in the recordings; with a *seed* one is
    drawn, as a scheduler does, and the same seed draws the same ones.
    """
    identity = scenario.get("id")
    if "pods" not in scenario:
        return {"id": identity, "unsupported": "a single pod; simulate takes a sequence of pods"}
    config = configuration(scenario, registry)
    cluster = Scenario.of(scenario.get("objects", ()))
    pods = [PodInfo(read(raw, Pod)) for raw in scenario["pods"]]
    handle = Handle(
        cluster.cache.table,
        listers=cluster.listers,
        pod={**cluster.pods, **{pod.key: pod.pod for pod in pods}}.get,
    )
    nodes = cluster.cache.table
    select = smallest_name(nodes) if seed is None else random.Random(seed).choice
    profiles = build_profiles(config, registry, handle)
    simulation = Simulation(cluster, profiles, pods, select=select)

    for pod in pods:  # plugins may get to know by this who waits
        for gate in simulation.gates(pod):
            gate.pre_enqueue(pod)
    waiting = {pod.key: pod for pod in pods}
    assignments: dict[str, str | None] = {}
    unplaced: dict[str, dict[str, str]] = {"fitErrors": {}, "errors": {}}
    for pod in pods:
        if pod.key in assignments:  # with its gang
            continue
        for outcome in simulation.place(pod, others=waiting):
            key = outcome.pod.key
            del waiting[key]
            if isinstance(outcome, Placed):
                assignments[key] = outcome.node_name
                continue
            assignments[key] = None
            kind = "errors" if isinstance(outcome, Failed) else "fitErrors"
            unplaced[kind][key] = outcome.message
    found = {kind: texts for kind, texts in unplaced.items() if texts}
    return {"id": identity, "assignments": assignments} | found


class Simulation:
    """A cluster that fills up as pods are placed on it."""

    def __init__(
        self,
        cluster: Scenario,
        profiles: Mapping[str, Profile],
        pods: Iterable[PodInfo],
        *,
        select: Select,
    ) -> None:
        """*pods* are those that will be placed; others leave room to the nominated ones."""
        self._cluster = cluster
        self._profiles = profiles
        self._select = select
        self._reservations: list[Reservation] = []
        for pod in pods:
            cluster.nominate(pod)

    def place(
        self,
        pod: PodInfo,
        *,
        preempting: bool = False,
        others: Mapping[str, PodInfo] = MappingProxyType({}),
    ) -> list[Outcome]:
        """Decide for one pod and, if it fits somewhere, count it there from now on.

        A pod of a gang brings those of *others* along, which wait as it does, by namespace/name:
        all are counted, or none is, and nobody's eviction is considered. Returns the outcome for
        *pod*, and then theirs.

        With *preempting*, the outcome for a pod that fits nowhere says whose eviction would help;
        nobody is evicted. Raises ScenarioError for a pod that no profile is for.
        """
        name = _scheduler_name(pod)
        if name not in self._profiles:
            raise ScenarioError(f"pod {pod.key}: spec.schedulerName: no profile {name!r}")
        tried = self._tried(pod)
        if tried.cycle.state.gang is not None:
            return self._place_gang(tried, tried.cycle.state.gang, others)
        outcome = tried.outcome
        if isinstance(outcome, Unschedulable) and preempting:
            return [run_post_filter_plugins(tried.cycle, outcome)]
        return [self._reserve(tried).outcome]

    def gates(self, pod: PodInfo) -> Sequence[PreEnqueuePlugin]:
        """Return who may hold *pod* back."""
        profile = self._profiles.get(_scheduler_name(pod))
        return profile.pre_enqueue if profile else ()

    def take_back(self) -> None:
        """Undo all placements, the last one first, so that the cluster is as it was before."""
        while self._reservations:
            self._reservations.pop().undo.close()

    def keep(self) -> None:
        """Let all placements be; :meth:`take_back` undoes later ones only."""
        self._reservations.clear()

    def _place_gang(
        self, leader: Member, gang: Gang, others: Mapping[str, PodInfo]
    ) -> list[Outcome]:
        def try_member(key: str) -> Member | None:
            pod = others.get(key)
            is_ours = pod is not None and _scheduler_name(pod) in self._profiles
            return self._tried(pod) if pod is not None and is_ours else None

        before = len(self._reservations)
        attempt = schedule_gang(leader, gang, try_member=try_member, reserve=self._reserve)
        if attempt.is_complete:
            return [member.outcome for member in attempt.members]
        del self._reservations[before:]
        return [outcome for _, _, outcome in attempt.undo()]

    def _tried(self, pod: PodInfo) -> Member:
        """Find a node for *pod*, changing nothing."""
        profile = self._profiles[_scheduler_name(pod)]
        cycle = Cycle(profile, pod, self._cluster.cache.table, self._cluster.nominated)
        return Member(QueuedPodInfo(pod, 0.0), cycle, evaluate_pod(cycle, select=self._select))

    def _reserve(self, member: Member) -> Member:
        """Count a pod on the node that was found for it, if there is one and nobody objects."""
        placed, cycle = member.outcome, member.cycle
        if not isinstance(placed, Placed):
            return member
        pod = cycle.pod.on_node(placed.node_name)
        with ExitStack() as undo:
            error = assume(pod, self._cluster.cache, undo)
            if error is not None:
                raise ScenarioError(f"pod {pod.key}: metadata.uid: {error.message}")
            status = reserve(pod, cycle.profile, cycle.state, undo)
            if status is not None:
                return replace(member, outcome=refused_placement(placed, status))
            self._cluster.end_nomination(pod)
            kept = undo.pop_all()
        kept.callback(self._cluster.nominate, pod)
        held = Reservation(member.queued, cycle.profile, cycle.state, pod, 0.0, kept)
        self._reservations.append(held)
        return replace(member, reservation=held)


def _scheduler_name(pod: PodInfo) -> str:
    return pod.pod.spec.scheduler_name or DEFAULT_SCHEDULER_NAME
