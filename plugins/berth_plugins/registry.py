"""The in-tree plugins, by name: the one list to edit when a plugin is added."""

from typing import Final

from berth.scheduler.framework.interface import Plugin
from berth_plugins.default_binder import DefaultBinder
from berth_plugins.default_preemption.plugin import DefaultPreemption
from berth_plugins.deferred_pod_scheduling import DeferredPodScheduling
from berth_plugins.dynamic_resources.plugin import DynamicResources
from berth_plugins.dynamic_resources.pod_group_devices import PodGroupDevices
from berth_plugins.gang_scheduling import GangScheduling
from berth_plugins.image_locality import ImageLocality
from berth_plugins.inter_pod_affinity.plugin import InterPodAffinity
from berth_plugins.node_affinity import NodeAffinity
from berth_plugins.node_declared_features import NodeDeclaredFeatures
from berth_plugins.node_name import NodeName
from berth_plugins.node_ports import NodePorts
from berth_plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from berth_plugins.node_resources_fit import NodeResourcesFit
from berth_plugins.node_unschedulable import NodeUnschedulable
from berth_plugins.node_volume_limits.plugin import NodeVolumeLimits
from berth_plugins.pod_group_pods_count import PodGroupPodsCount
from berth_plugins.pod_topology_spread.plugin import PodTopologySpread
from berth_plugins.priority_sort import PrioritySort
from berth_plugins.scheduling_gates import SchedulingGates
from berth_plugins.taint_toleration import TaintToleration
from berth_plugins.topology_placement_generator import TopologyPlacementGenerator
from berth_plugins.volume_binding.plugin import VolumeBinding
from berth_plugins.volume_restrictions import VolumeRestrictions
from berth_plugins.volume_zone import VolumeZone

_PLUGINS: Final[list[type[Plugin]]] = [
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    DeferredPodScheduling,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    NodeDeclaredFeatures,
    GangScheduling,
    TopologyPlacementGenerator,
    PodGroupPodsCount,
    PodGroupDevices,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    InterPodAffinity,
    DynamicResources,
    DefaultPreemption,
    DefaultBinder,
]

IN_TREE: Final[dict[str, type[Plugin]]] = {plugin.NAME: plugin for plugin in _PLUGINS}
