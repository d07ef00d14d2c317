"""Options of controllers: flags of kube-controller-manager, by their names."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """Durations are in seconds, rates in nodes a second. The defaults are those of 1.36."""

    node_monitor_period: float = 5.0
    """Between two looks at the heartbeats of all nodes."""
    node_monitor_grace_period: float = 50.0
    """How long a node may be silent before it counts as unreachable."""
    node_startup_grace_period: float = 60.0
    """The same for a node that has never said how it is."""
    node_eviction_rate: float = 0.1
    """How many unhealthy nodes of a zone get a taint that evicts, while most of them are well."""
    secondary_node_eviction_rate: float = 0.01
    """The same while many are unhealthy, in zones of more nodes than the next."""
    large_cluster_size_threshold: int = 50
    """In zones of up to so many nodes, none is tainted while many are unhealthy."""
    unhealthy_zone_threshold: float = 0.55
    """The share of a zone's nodes that must be unhealthy to count as many; at least three nodes."""
    terminated_pod_gc_threshold: int = 12_500
    """How many pods that have ended may stay; 0: any number."""
    controllers: tuple[str, ...] = ("*",)
    """Which of them run, see :func:`.run.is_enabled`."""


DEFAULTS: Final = ControllerOptions()
