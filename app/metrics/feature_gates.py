"""The feature gates that a scheduler of 1.36 consults, as they are by default (spec §1.3)."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Gate(NamedTuple):
    stage: str
    """ALPHA, BETA, or "" for general availability."""
    enabled: bool


_GA: Final = Gate("", enabled=True)
_ON: Final = Gate("BETA", enabled=True)
_OFF: Final = Gate("BETA", enabled=False)
_ALPHA: Final = Gate("ALPHA", enabled=False)

FEATURE_GATES: Final[Mapping[str, Gate]] = {
    "ClearingNominatedNodeNameAfterBinding": _ON,
    "ComponentFlagz": _ON,
    "ComponentStatusz": _ON,
    "CoordinatedLeaderElection": _OFF,
    "DRAAdminAccess": _GA,
    "DRAConsumableCapacity": _ON,
    "DRADeviceBindingConditions": _ON,
    "DRADeviceTaintRules": _OFF,
    "DRADeviceTaints": _ON,
    "DRAExtendedResource": _ON,
    "DRAListTypeAttributes": _ALPHA,
    "DRANodeAllocatableResources": _ALPHA,
    "DRAPartitionableDevices": _ON,
    "DRAPrioritizedList": _GA,
    "DRAResourceClaimDeviceStatus": _ON,
    "DRAResourceClaimGranularStatusAuthorization": _ON,
    "DRASchedulerFilterTimeout": _ON,
    "DRAWorkloadResourceClaims": _ALPHA,
    "DynamicResourceAllocation": _GA,
    "GangScheduling": _ALPHA,
    "GenericWorkload": _ALPHA,
    "InPlacePodLevelResourcesVerticalScaling": _ON,
    "InPlacePodVerticalScaling": _GA,
    "MatchLabelKeysInPodAffinity": _GA,
    "MatchLabelKeysInPodTopologySpread": _ON,
    "NativeHistograms": _ALPHA,
    "NodeDeclaredFeatures": _ON,
    "NodeInclusionPolicyInPodTopologySpread": _GA,
    "NominatedNodeNameForExpectation": _ON,
    "OpportunisticBatching": _ON,
    "PodLevelResources": _ON,
    "PodObservedGenerationTracking": _GA,
    "SchedulerAsyncAPICalls": _OFF,
    "SchedulerAsyncPreemption": _ON,
    "SchedulerPopFromBackoffQ": _ON,
    "SchedulerQueueingHints": _GA,
    "SidecarContainers": _GA,
    "StorageCapacityScoring": _ALPHA,
    "TaintTolerationComparisonOperators": _ALPHA,
    "TopologyAwareWorkloadScheduling": _ALPHA,
    "VolumeAttributesClass": _GA,
    "VolumeLimitScaling": _ALPHA,
    "WorkloadAwarePreemption": _ALPHA,
}
