"""Disruption budgets: how many pods of a kind may be missing at a time. What admission goes by."""

import msgspec

from berth.kube.objects.meta import KubeStruct, LabelSelector, ObjectMeta
from berth.kube.objects.quantity import Quantities, check_quantities


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


class ScopedResourceSelectorRequirement(KubeStruct, frozen=True, gc=False):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(KubeStruct, frozen=True, gc=False):
    match_expressions: tuple[ScopedResourceSelectorRequirement, ...] = ()


class ResourceQuotaSpec(KubeStruct, frozen=True, gc=False):
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(KubeStruct, frozen=True, gc=False):
    """What the quota controller and admission last wrote, which is what counts."""

    hard: Quantities = msgspec.field(default_factory=dict)
    used: Quantities = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        check_quantities("hard", self.hard)
        check_quantities("used", self.used)


class ResourceQuota(KubeStruct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class LimitRangeItem(KubeStruct, frozen=True, gc=False):
    type: str = ""
    default: Quantities = msgspec.field(default_factory=dict)
    default_request: Quantities = msgspec.field(default_factory=dict)
    min: Quantities = msgspec.field(default_factory=dict)
    max: Quantities = msgspec.field(default_factory=dict)
    max_limit_request_ratio: Quantities = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        check_quantities("default", self.default)
        check_quantities("defaultRequest", self.default_request)
        check_quantities("min", self.min)
        check_quantities("max", self.max)
        check_quantities("maxLimitRequestRatio", self.max_limit_request_ratio)


class LimitRangeSpec(KubeStruct, frozen=True, gc=False):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(KubeStruct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: LimitRangeSpec = LimitRangeSpec()
