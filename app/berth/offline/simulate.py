"""A sequence of pods in, where each would go out, in the shape of the recordings."""

import random
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from berth.cache.cache import CacheError
from berth.config.defaults import DEFAULT_SCHEDULER_NAME
from berth.framework.cycle_state import CycleState, Gang
from berth.framework.handle import Handle
from berth.framework.interface import PreEnqueuePlugin
from berth.framework.pod_info import PodInfo
from berth.framework.status import Code
from berth.objects.pod import Pod
from berth.offline.explain import configuration
from berth.offline.scenario import Scenario, ScenarioError, read, smallest_name
from berth.profile.build import Registry, build_profiles
from berth.profile.profile import Profile
from berth.scheduler.decision import Decision
from berth.scheduler.failure import refused_late
from berth.scheduler.find_node import NodeFinder, Select
from berth.scheduler.gang import Member, try_together


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
    refused: dict[str, dict[str, str]] = {"fitErrors": {}, "errors": {}}
    for pod in pods:
        if pod.key in assignments:  # with its gang
            continue
        for decision in simulation.place(pod, others=waiting):
            key = decision.pod.key
            del waiting[key]
            assignments[key] = decision.node_name or None
            if decision.status is not None:
                kind = "errors" if decision.status.code is Code.ERROR else "fitErrors"
                refused[kind][key] = decision.message
    found = {kind: texts for kind, texts in refused.items() if texts}
    return {"id": identity, "assignments": assignments} | found


class _Reservation(NamedTuple):
    profile: Profile
    state: CycleState
    pod: PodInfo


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
        self._finder = NodeFinder(cluster.cache.table, select=select)
        self._reservations: list[_Reservation] = []
        for pod in pods:
            cluster.nominate(pod)

    def place(
        self,
        pod: PodInfo,
        *,
        preempting: bool = False,
        others: Mapping[str, PodInfo] = MappingProxyType({}),
    ) -> list[Decision]:
        """Decide for one pod and, if it fits somewhere, count it there from now on.

        A pod of a gang brings those of *others* along, which wait as it does, by namespace/name:
        all are counted, or none is, and nobody's eviction is considered. Returns the decision on
        *pod*, and then theirs.

        With *preempting*, the decision on a pod that fits nowhere says whose eviction would help;
        nobody is evicted. Raises ScenarioError for a pod that no profile is for.
        """
        name = _scheduler_name(pod)
        if name not in self._profiles:
            raise ScenarioError(f"pod {pod.key}: spec.schedulerName: no profile {name!r}")
        tried = self._tried(pod)
        if tried.state.gang is not None:
            return self._place_gang(tried, tried.state.gang, others)
        is_refused = not tried.decision.node_name
        self._assume_and_reserve(tried)
        if is_refused and preempting:
            nominated = self._cluster.nominated
            self._finder.run_post_filter_plugins(
                tried.profile, tried.decision, state=tried.state, nominated=nominated
            )
        return [tried.decision]

    def gates(self, pod: PodInfo) -> Sequence[PreEnqueuePlugin]:
        """Return who may hold *pod* back."""
        profile = self._profiles.get(_scheduler_name(pod))
        return profile.pre_enqueue if profile else ()

    def take_back(self) -> None:
        """Undo all placements, the last one first, so that the cluster is as it was before."""
        while self._reservations:
            self._give_back(self._reservations[-1])

    def keep(self) -> None:
        """Let all placements be; :meth:`take_back` undoes later ones only."""
        self._reservations.clear()

    def _place_gang(
        self, leader: Member[_Reservation], gang: Gang, others: Mapping[str, PodInfo]
    ) -> list[Decision]:
        def take(key: str) -> Member[_Reservation] | None:
            pod = others.get(key)
            is_ours = pod is not None and _scheduler_name(pod) in self._profiles
            return self._tried(pod) if pod is not None and is_ours else None

        def give_back(member: Member[_Reservation]) -> None:
            if member.room is not None:
                self._give_back(member.room)

        attempt = try_together(leader, gang, take=take, reserve=self._assume_and_reserve)
        if not attempt.is_complete:
            attempt.fail(give_back)
        return [member.decision for member in attempt.members]

    def _tried(self, pod: PodInfo) -> Member[_Reservation]:
        """Find a node for *pod*, changing nothing."""
        profile, state = self._profiles[_scheduler_name(pod)], CycleState()
        decision = self._finder.find(
            profile, pod, state=state, nominated=self._cluster.nominated, look_at_all=True
        )
        return Member(pod, profile, state, decision)

    def _assume_and_reserve(self, member: Member[_Reservation]) -> None:
        """Count a pod on the node that was found for it, if there is one and nobody objects."""
        decision, profile, state = member.decision, member.profile, member.state
        if not decision.node_name:
            return
        cache, pod = self._cluster.cache, member.pod.on_node(decision.node_name)
        try:
            cache.assume_pod(pod)
        except CacheError as exc:
            raise ScenarioError(f"pod {pod.key}: metadata.uid: {exc}") from exc
        refusal = profile.run_reserve(state, pod, pod.node_name)
        if refusal is not None:
            profile.run_unreserve(state, pod, pod.node_name)
            cache.forget_pod(pod)
            decision.node_name, decision.status = "", refusal
            if refusal.is_rejected:
                decision.diagnosis = refused_late(refusal)
            return
        self._cluster.end_nomination(pod)
        member.room = _Reservation(profile, state, pod)
        self._reservations.append(member.room)

    def _give_back(self, reservation: _Reservation) -> None:
        """Undo the last reservation."""
        assert reservation is self._reservations[-1], reservation.pod.key
        self._reservations.pop()
        reservation.profile.run_unreserve(
            reservation.state, reservation.pod, reservation.pod.node_name
        )
        self._cluster.cache.forget_pod(reservation.pod)
        self._cluster.nominate(reservation.pod)


def _scheduler_name(pod: PodInfo) -> str:
    return pod.pod.spec.scheduler_name or DEFAULT_SCHEDULER_NAME
