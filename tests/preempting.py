"""One attempt of a pod to preempt, without a scheduler: what PostFilter finds, nothing evicted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.kube.objects.policy import PodDisruptionBudget
from berth.scheduler.cache.cache import Cache
from berth.scheduler.cycle import Cycle
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.listers import Lister, Listers
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.preemption.candidate import Preemption
from berth.scheduler.outcome import Outcome, Unschedulable
from berth.scheduler.post_filter import run_post_filter_plugins
from berth.scheduler.profile.build import Registry, args_models, build_profiles
from berth.scheduler.schedule_pod import schedule_pod, smallest_name
from berth_plugins.registry import IN_TREE
from tests.harness import configuration_of


@dataclass
class World:
    """A cluster and who is nominated in it."""

    nodes: Sequence[Node]
    pods: Sequence[Pod] = ()
    nominated: Mapping[str, Sequence[Pod]] = field(default_factory=dict)
    budgets: Sequence[PodDisruptionBudget] = ()
    registry: Registry = field(default_factory=lambda: IN_TREE)
    config: dict[str, Any] | None = None
    seed: int = 1

    def attempt(self, preemptor: Pod, *, is_known: bool = True) -> Unschedulable:
        """Look in vain for a node for *preemptor*, then for victims."""
        outcome = self.outcome(preemptor, is_known=is_known)
        assert isinstance(outcome, Unschedulable)
        return outcome

    def outcome(self, preemptor: Pod, *, is_known: bool = True) -> Outcome:
        """Look for a node for *preemptor*, and for victims if there is none."""
        cache = Cache()
        for node in self.nodes:
            cache.add_node(node)
        for pod in self.pods:
            cache.add_pod(PodInfo(pod))
        cache.refresh_order()
        known = {preemptor.key: preemptor} if is_known else {}
        handle = Handle(
            cache.table,
            rng=Random(self.seed),
            listers=Listers(pod_disruption_budgets=Lister(self.budgets)),
            pod=known.get,
        )
        models = args_models(self.registry)
        config = configuration_of(self.config, models)
        (profile,) = build_profiles(config, self.registry, handle).values()
        nominated = {name: list(map(PodInfo, pods)) for name, pods in self.nominated.items()}
        cycle = Cycle(profile, PodInfo(preemptor), cache.table, nominated)
        outcome = schedule_pod(cycle, select=smallest_name(cache.table))
        if isinstance(outcome, Unschedulable):
            return run_post_filter_plugins(cycle, outcome)
        return outcome


def candidates(found: Preemption | None) -> dict[str, tuple[list[str], int]]:
    """Return by node who would be evicted, most important first, and how many budgets break."""
    assert found is not None
    return {
        candidate.node: ([pod.name for pod in candidate.victims], candidate.pdb_violations)
        for candidate in found.candidates
    }
