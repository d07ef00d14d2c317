"""The options of the cluster autoscaler, by the names of its flags."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator

from berth.runtime.duration import Duration

LEAST_WASTE: Final = "least-waste"
MOST_PODS: Final = "most-pods"
LEAST_NODES: Final = "least-nodes"
PRICE: Final = "price"
PRIORITY: Final = "priority"
RANDOM: Final = "random"
EXPANDERS: Final = (LEAST_NODES, LEAST_WASTE, MOST_PODS, PRICE, PRIORITY, RANDOM)


def _minutes(minutes: float) -> Duration:
    return Duration.of(60.0 * minutes)


def _flag(field: str) -> str:
    return field.replace("_", "-")


class AutoscalingOptions(BaseModel):
    """What cluster-autoscaler's flags of the same names say; its defaults."""

    model_config = ConfigDict(
        alias_generator=_flag, populate_by_name=True, extra="forbid", frozen=True, strict=True
    )

    scan_interval: Duration = Field(
        default=Duration.of(10.0), description="How often the cluster is looked at"
    )
    expander: str = Field(
        default=LEAST_WASTE,
        description="Which group grows if several would help: least-nodes, least-waste, most-pods,"
        " price, priority or random. Several, separated by commas, are asked in turn. Ties are"
        " broken randomly",
    )
    max_nodes_total: int = Field(default=0, ge=0, description="Nodes of the cluster; 0: any number")
    max_nodes_per_scaleup: int = Field(default=1000, ge=1, description="Nodes of one scale-up")
    max_node_provision_time: Duration = Field(
        default=_minutes(15), description="How long a machine may take to become a node"
    )
    new_pod_scale_up_delay: Duration = Field(
        default=Duration(0), description="Pods that are younger do not count"
    )
    expendable_pods_priority_cutoff: int = Field(
        default=-10, description="Pods of a lower priority neither add nodes nor keep them"
    )
    initial_node_group_backoff_duration: Duration = Field(
        default=_minutes(5), description="How long a group rests after its first failure"
    )
    max_node_group_backoff_duration: Duration = Field(
        default=_minutes(30), description="How long it rests at most; failures double it"
    )
    node_group_backoff_reset_timeout: Duration = Field(
        default=_minutes(180), description="Time without failures after which they are forgotten"
    )
    scale_down_enabled: bool = Field(default=True, description="Whether nodes are removed")
    scale_down_unneeded_time: Duration = Field(
        default=_minutes(10), description="How long a node must be unneeded to be removed"
    )
    scale_down_unready_time: Duration = Field(
        default=_minutes(20), description="The same for a node that is not ready"
    )
    scale_down_utilization_threshold: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Share of cpu and of memory that pods of an unneeded node request less than",
    )
    scale_down_delay_after_add: Duration = Field(
        default=_minutes(10), description="Time after a scale-up in which no node is removed"
    )
    scale_down_delay_after_delete: Duration = Field(
        default=Duration(0), description="The same after a node was removed"
    )
    scale_down_delay_after_failure: Duration = Field(
        default=_minutes(3), description="The same after a node could not be removed"
    )
    max_scale_down_parallelism: int = Field(
        default=10, ge=1, description="Nodes that are removed at a time"
    )
    max_drain_parallelism: int = Field(
        default=1, ge=1, description="Of these, nodes that pods must leave"
    )
    max_graceful_termination_sec: int = Field(
        default=600, ge=0, description="The longest grace period of a pod that is evicted"
    )
    max_pod_eviction_time: Duration = Field(
        default=_minutes(2), description="How long an eviction that is refused is tried again"
    )
    unremovable_node_recheck_timeout: Duration = Field(
        default=_minutes(5), description="When a node whose pods fit nowhere else is tried again"
    )
    skip_nodes_with_system_pods: bool = Field(
        default=True, description="Whether pods of kube-system without a budget keep a node"
    )
    skip_nodes_with_local_storage: bool = Field(
        default=True, description="Whether pods with hostPath or emptyDir volumes keep a node"
    )
    ignore_daemonsets_utilization: bool = Field(
        default=False, description="Whether pods of DaemonSets do not count as utilization"
    )
    daemonset_eviction_for_empty_nodes: bool = Field(
        default=False, description="Whether pods of DaemonSets are evicted from empty nodes"
    )
    daemonset_eviction_for_occupied_nodes: bool = Field(
        default=True, description="Whether pods of DaemonSets are evicted from other nodes"
    )
    max_bulk_soft_taint_count: int = Field(
        default=10, ge=0, description="Unneeded nodes that get their soft taint in one scan"
    )

    @field_validator("scan_interval")
    @classmethod
    def _positive(cls, interval: Duration) -> Duration:
        if interval.nanoseconds <= 0:
            raise ValueError("must be greater than 0s")
        return interval

    @field_validator("expander")
    @classmethod
    def _known(cls, expander: str) -> str:
        names = expander.split(",")
        for name in names:
            if name not in EXPANDERS:
                raise ValueError(f"{name!r}: must be one of {', '.join(EXPANDERS)}")
        if len(set(names)) < len(names):
            raise ValueError("each expander may be named once")
        return expander

    @property
    def expanders(self) -> tuple[str, ...]:
        return tuple(self.expander.split(","))


def flags() -> Mapping[str, Any]:
    """Return the schema of each option, by the name of its flag."""
    properties: Mapping[str, Any] = AutoscalingOptions.model_json_schema(by_alias=True)[
        "properties"
    ]
    return properties
