"""The in-tree plugins, by name: the one list to edit when a plugin is added."""

from typing import Final

from app.framework.interface import Plugin
from plugins.default_binder import DefaultBinder
from plugins.default_preemption import DefaultPreemption
from plugins.dynamic_resources import DynamicResources
from plugins.image_locality import ImageLocality
from plugins.inter_pod_affinity import InterPodAffinity
from plugins.node_affinity import NodeAffinity
from plugins.node_declared_features import NodeDeclaredFeatures
from plugins.node_name import NodeName
from plugins.node_ports import NodePorts
from plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from plugins.node_resources_fit import NodeResourcesFit
from plugins.node_unschedulable import NodeUnschedulable
from plugins.node_volume_limits import NodeVolumeLimits
from plugins.pod_topology_spread import PodTopologySpread
from plugins.priority_sort import PrioritySort
from plugins.scheduling_gates import SchedulingGates
from plugins.taint_toleration import TaintToleration
from plugins.volume_binding import VolumeBinding
from plugins.volume_restrictions import VolumeRestrictions
from plugins.volume_zone import VolumeZone

_PLUGINS: Final[list[type[Plugin]]] = [
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    NodeDeclaredFeatures,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    InterPodAffinity,
    DynamicResources,
    DefaultPreemption,
    DefaultBinder,
]

IN_TREE: Final[dict[str, type[Plugin]]] = {plugin.NAME: plugin for plugin in _PLUGINS}
