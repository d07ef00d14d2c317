"""Args as plugins declare them, and which plugins implement what (spec §1.2, §1.4).

Only shapes and defaults: what the values must be like is tested with each plugin.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from berth.runtime.duration import Duration
from berth.scheduler.config.types import ExtensionPoint


class Part(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True
    )


class Args(Part):
    api_version: str = ""
    kind: str = ""


class DefaultPreemptionArgs(Args):
    min_candidate_nodes_percentage: int = Field(default=10, ge=0, le=100)
    min_candidate_nodes_absolute: int = 100


class DynamicResourcesArgs(Args):
    filter_timeout: Duration = Duration.of(10)
    binding_timeout: Duration = Duration.of(600)


class InterPodAffinityArgs(Args):
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(Args):
    added_affinity: dict[str, Any] | None = None


class ResourceSpec(Part):
    name: str
    weight: int = 1


CPU_AND_MEMORY = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))


class NodeResourcesBalancedAllocationArgs(Args):
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


class ScoringStrategy(Part):
    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: dict[str, Any] | None = None


class NodeResourcesFitArgs(Args):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


class PodTopologySpreadArgs(Args):
    default_constraints: tuple[dict[str, Any], ...] = ()
    defaulting_type: Literal["System", "List"] = "System"


class VolumeBindingArgs(Args):
    bind_timeout_seconds: int = 600
    shape: tuple[dict[str, int], ...] = ()


MODELS: dict[str, type[BaseModel]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}

IMPLEMENTS = {
    ExtensionPoint(point): plugins.split()
    for point, plugins in {
        "pre_enqueue": "SchedulingGates DynamicResources DefaultPreemption",
        "queue_sort": "PrioritySort",
        "pre_filter": "NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits"
        " VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DynamicResources"
        " NodeDeclaredFeatures",
        "filter": "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts"
        " NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone"
        " PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures",
        "post_filter": "DynamicResources DefaultPreemption",
        "pre_score": "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding"
        " PodTopologySpread InterPodAffinity NodeResourcesBalancedAllocation",
        "score": "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread"
        " InterPodAffinity DynamicResources NodeResourcesBalancedAllocation ImageLocality",
        "reserve": "VolumeBinding DynamicResources",
        "permit": "",
        "pre_bind": "VolumeBinding DynamicResources",
        "bind": "DefaultBinder",
        "post_bind": "",
        "placement_generate": "",
        "placement_score": "NodeResourcesFit",
        "pod_group_post_filter": "DefaultPreemption",
    }.items()
}
"""In execution order."""
