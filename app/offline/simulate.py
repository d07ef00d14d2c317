"""A sequence of pods in, where each would go out, in the shape of the recordings."""

import random
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from app.cache.cache import CacheError
from app.config.defaults import DEFAULT_SCHEDULER_NAME
from app.framework.cycle_state import CycleState
from app.framework.diagnosis import Diagnosis
from app.framework.pod_info import PodInfo
from app.framework.status import Code, Status
from app.objects.pod import Pod
from app.offline.explain import configuration
from app.offline.scenario import OfflineHandle, Scenario, ScenarioError, read, smallest_name
from app.profile.build import Registry, build_profiles
from app.profile.profile import Profile
from app.scheduler.decision import Decision
from app.scheduler.find_node import NodeFinder, Select


def simulate(
    scenario: Mapping[str, Any], registry: Registry, *, seed: int | None = None
) -> dict[str, Any]:
    """Schedule ``scenario["pods"]`` in their order, each with those before it in place.

    A pod gets its node and what Reserve plugins claim for it; nothing is bound, nobody is
    preempted, and who does not fit is left out. A scenario with a single pod gets
    ``{"id", "unsupported"}``: it is for ``berth explain``. Raises ScenarioError or ConfigError when
    the scenario is malformed.

    Of several best nodes the smallest name is taken, as in the recordings; with a *seed* one is
    drawn, as a scheduler does, and the same seed draws the same ones.
    """
    identity = scenario.get("id")
    if "pods" not in scenario:
        return {"id": identity, "unsupported": "a single pod; simulate takes a sequence of pods"}
    config = configuration(scenario, registry)
    cluster = Scenario.of(scenario.get("objects", ()))
    pods = [PodInfo(read(raw, Pod)) for raw in scenario["pods"]]
    handle = OfflineHandle(cluster.cache.table, listers=cluster.listers)
    nodes = cluster.cache.table
    select = smallest_name(nodes) if seed is None else random.Random(seed).choice
    profiles = build_profiles(config, registry, handle)
    simulation = Simulation(cluster, profiles, pods, select=select)

    assignments: dict[str, str | None] = {}
    refused: dict[str, dict[str, str]] = {"fitErrors": {}, "errors": {}}
    for pod in pods:
        decision = simulation.place(pod)
        assignments[pod.key] = decision.node_name or None
        if decision.status is not None:
            kind = "errors" if decision.status.code is Code.ERROR else "fitErrors"
            refused[kind][pod.key] = decision.message
    found = {kind: texts for kind, texts in refused.items() if texts}
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
        self._finder = NodeFinder(cluster.cache.table, select=select)
        self._claims: list[_Claim] = []
        for pod in pods:
            cluster.nominate(pod)

    def place(self, pod: PodInfo, *, preempting: bool = False) -> Decision:
        """Decide for one pod and, if it fits somewhere, count it there from now on.

        With *preempting*, the decision on a pod that fits nowhere says whose eviction would help;
        nobody is evicted. Raises ScenarioError for a pod that no profile is for.
        """
        name = pod.pod.spec.scheduler_name or DEFAULT_SCHEDULER_NAME
        if name not in self._profiles:
            raise ScenarioError(f"pod {pod.key}: spec.schedulerName: no profile {name!r}")
        profile, state = self._profiles[name], CycleState()
        nominated = self._cluster.nominated
        decision = self._finder.find(
            profile, pod, state=state, nominated=nominated, look_at_all=True
        )
        if decision.node_name:
            refusal = self._claim(profile, state, pod.on_node(decision.node_name))
            if refusal is not None:
                decision.node_name, decision.status = "", refusal
                if refusal.is_rejected:  # told as if the cluster were this one node (spec §2.7)
                    decision.diagnosis = Diagnosis(1, statuses={0: refusal})
        elif preempting:
            self._finder.make_room(profile, decision, state=state, nominated=nominated)
        return decision

    def take_back(self) -> None:
        """Undo all placements, the last one first, so that the cluster is as it was before."""
        for claim in reversed(self._claims):
            claim.profile.run_unreserve(claim.state, claim.pod, claim.pod.node_name)
            self._cluster.cache.forget_pod(claim.pod)
            self._cluster.nominate(claim.pod)
        self._claims.clear()

    def _claim(self, profile: Profile, state: CycleState, pod: PodInfo) -> Status | None:
        cache = self._cluster.cache
        try:
            cache.assume_pod(pod)
        except CacheError as exc:
            raise ScenarioError(f"pod {pod.key}: metadata.uid: {exc}") from exc
        refusal = profile.run_reserve(state, pod, pod.node_name)
        if refusal is not None:
            profile.run_unreserve(state, pod, pod.node_name)
            cache.forget_pod(pod)
            return refusal
        self._cluster.end_nomination(pod)
        self._claims.append(_Claim(profile, state, pod))
        return None


class _Claim(NamedTuple):
    profile: Profile
    state: CycleState
    pod: PodInfo
