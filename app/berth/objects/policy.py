"""Disruption budgets: how many pods of a kind may be missing at a time."""

import msgspec

from berth.objects.meta import KubeStruct, LabelSelector, ObjectMeta


class PodDisruptionBudgetSpec(KubeStruct, frozen=True, gc=False):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(KubeStruct, frozen=True, gc=False):
    """What the disruption controller found; what it did not write yet allows nothing."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] = msgspec.field(default_factory=dict)
    """Names of pods whose eviction was granted and not observed yet, with the time of it."""


class PodDisruptionBudget(KubeStruct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
