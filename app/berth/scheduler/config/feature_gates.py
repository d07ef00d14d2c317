"""Feature gates that berth acts on, and ``--feature-gates`` (spec §1.3, G1).

Decision (2026-11): a gate of the scheduler that would change what is decided and that berth cannot
turn is refused, because starting with other behaviour than asked for is worse than not starting;
gates that the scheduler does not consult are passed over with a warning, because one list is often
given to all components of a cluster, and kube-scheduler knows them all.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from msgspec.structs import replace

from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.kube_features import DEPENDENCIES, FEATURE_GATES, STAGES, Gate

FLAG: Final = "--feature-gates"

CLEARING_NOMINATED_NODE_NAME_AFTER_BINDING: Final = "ClearingNominatedNodeNameAfterBinding"
COMPONENT_FLAGZ: Final = "ComponentFlagz"
COMPONENT_STATUSZ: Final = "ComponentStatusz"
COSCHEDULING_POD_GROUPS: Final = "CoschedulingPodGroups"
DRA_DEVICE_TAINT_RULES: Final = "DRADeviceTaintRules"
DRA_LIST_TYPE_ATTRIBUTES: Final = "DRAListTypeAttributes"
DRA_NODE_ALLOCATABLE_RESOURCES: Final = "DRANodeAllocatableResources"
DRA_WORKLOAD_RESOURCE_CLAIMS: Final = "DRAWorkloadResourceClaims"
GANG_REPLACEMENT_PODS: Final = "GangReplacementPods"
GANG_SCHEDULING: Final = "GangScheduling"
GENERIC_WORKLOAD: Final = "GenericWorkload"
IN_PLACE_POD_LEVEL_RESOURCES_VERTICAL_SCALING: Final = "InPlacePodLevelResourcesVerticalScaling"
MATCH_LABEL_KEYS_IN_POD_TOPOLOGY_SPREAD: Final = "MatchLabelKeysInPodTopologySpread"
NOMINATED_NODE_NAME_FOR_EXPECTATION: Final = "NominatedNodeNameForExpectation"
OPPORTUNISTIC_BATCHING: Final = "OpportunisticBatching"
POD_LEVEL_RESOURCES: Final = "PodLevelResources"
SCHEDULER_ASYNC_API_CALLS: Final = "SchedulerAsyncAPICalls"
SCHEDULER_ASYNC_PREEMPTION: Final = "SchedulerAsyncPreemption"
SCHEDULER_POP_FROM_BACKOFF_Q: Final = "SchedulerPopFromBackoffQ"
STORAGE_CAPACITY_SCORING: Final = "StorageCapacityScoring"
TOPOLOGY_AWARE: Final = "TopologyAwareWorkloadScheduling"
NODE_DECLARED_FEATURES: Final = "NodeDeclaredFeatures"
TAINT_TOLERATION_COMPARISON_OPERATORS: Final = "TaintTolerationComparisonOperators"
VOLUME_LIMIT_SCALING: Final = "VolumeLimitScaling"
VOLCANO_POD_GROUPS: Final = "VolcanoPodGroups"
WORKLOAD_AWARE_PREEMPTION: Final = "WorkloadAwarePreemption"
WORKLOAD_WITH_JOB: Final = "WorkloadWithJob"

OWN: Final[Mapping[str, Gate]] = {
    COSCHEDULING_POD_GROUPS: Gate("BERTH", enabled=False),
    GANG_REPLACEMENT_PODS: Gate("BERTH", enabled=False),
    VOLCANO_POD_GROUPS: Gate("BERTH", enabled=False),
}
"""Gates that kube-scheduler does not have. AllAlpha and AllBeta do not turn them."""
KNOWN: Final[Mapping[str, Gate]] = {**FEATURE_GATES, **OWN}
"""All gates as they are by default."""
_OWN_DEPENDENCIES: Final = dict.fromkeys(OWN, (GANG_SCHEDULING,))

TURNABLE: Final = frozenset(
    {
        CLEARING_NOMINATED_NODE_NAME_AFTER_BINDING,
        COMPONENT_FLAGZ,
        COMPONENT_STATUSZ,
        COSCHEDULING_POD_GROUPS,
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        DRA_DEVICE_TAINT_RULES,
        "DRADeviceTaints",
        "DRAExtendedResource",
        DRA_LIST_TYPE_ATTRIBUTES,
        DRA_NODE_ALLOCATABLE_RESOURCES,
        "DRAPartitionableDevices",
        "DRAPrioritizedList",
        "DRAResourceClaimDeviceStatus",
        "DRASchedulerFilterTimeout",
        DRA_WORKLOAD_RESOURCE_CLAIMS,
        GANG_REPLACEMENT_PODS,
        GANG_SCHEDULING,
        GENERIC_WORKLOAD,
        IN_PLACE_POD_LEVEL_RESOURCES_VERTICAL_SCALING,
        MATCH_LABEL_KEYS_IN_POD_TOPOLOGY_SPREAD,
        NODE_DECLARED_FEATURES,
        NOMINATED_NODE_NAME_FOR_EXPECTATION,
        OPPORTUNISTIC_BATCHING,
        POD_LEVEL_RESOURCES,
        SCHEDULER_ASYNC_API_CALLS,
        SCHEDULER_ASYNC_PREEMPTION,
        SCHEDULER_POP_FROM_BACKOFF_Q,
        STORAGE_CAPACITY_SCORING,
        TAINT_TOLERATION_COMPARISON_OPERATORS,
        TOPOLOGY_AWARE,
        VOLCANO_POD_GROUPS,
        VOLUME_LIMIT_SCALING,
        WORKLOAD_AWARE_PREEMPTION,
        WORKLOAD_WITH_JOB,
    }
)
"""Gates that berth acts on."""

CONSULTED: Final = frozenset(
    {
        "ComponentFlagz",
        "ComponentStatusz",
        "CoordinatedLeaderElection",
        "DRAAdminAccess",
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRADeviceTaintRules",
        "DRADeviceTaints",
        "DRAExtendedResource",
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "DRAPartitionableDevices",
        "DRAPrioritizedList",
        "DRAResourceClaimDeviceStatus",
        "DRASchedulerFilterTimeout",
        "DRAWorkloadResourceClaims",
        "DynamicResourceAllocation",
        "GangScheduling",
        "GenericWorkload",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScaling",
        "MatchLabelKeysInPodAffinity",
        "MatchLabelKeysInPodTopologySpread",
        "NativeHistograms",
        "NodeDeclaredFeatures",
        "NodeInclusionPolicyInPodTopologySpread",
        "NominatedNodeNameForExpectation",
        "OpportunisticBatching",
        "PodLevelResources",
        "PodObservedGenerationTracking",
        "SchedulerAsyncAPICalls",
        "SchedulerAsyncPreemption",
        "SchedulerPopFromBackoffQ",
        "SchedulerQueueingHints",
        "SidecarContainers",
        "StorageCapacityScoring",
        "TaintTolerationComparisonOperators",
        "TopologyAwareWorkloadScheduling",
        "VolumeAttributesClass",
        "VolumeLimitScaling",
        "WorkloadAwarePreemption",
    }
)
"""Gates that change what a scheduler of 1.36 does (spec §1.3, G17)."""


def effective_gates(given: Mapping[str, bool]) -> dict[str, Gate]:
    """Return all gates with what was *given* for them; one named wins over ``AllAlpha``.

    Raises ConfigError for names that are no gates, for values that Kubernetes or berth does not
    allow, and for gates that depend on others that are off.
    """
    wanted = {
        name: given[group]
        for group, stage in STAGES.items()
        if group in given
        for name, gate in FEATURE_GATES.items()
        if gate.stage == stage and name not in STAGES
    }
    wanted |= given
    gates, problems = dict(KNOWN), []
    for name, value in wanted.items():
        gate = gates.get(name)
        if gate is None:
            problems.append(_unknown(name))
        elif value is not gate.enabled and (gate.locked or name in CONSULTED - TURNABLE):
            problems.append(_refusal(name, gate, value))
        else:
            gates[name] = replace(gate, enabled=value)
    problems = problems or list(unmet(gates))
    if problems:
        raise ConfigError(FLAG, problems)
    return gates


def enabled_features(given: Mapping[str, bool]) -> frozenset[str]:
    """Return the names of the gates that are on. Raises ConfigError."""
    return frozenset(name for name, gate in effective_gates(given).items() if gate.enabled)


def without_effect(given: Mapping[str, bool]) -> list[str]:
    """Return the gates of other components that *given* turns: berth does not act on them."""
    return [
        name
        for name, value in given.items()
        if name in FEATURE_GATES.keys() - CONSULTED - TURNABLE - STAGES.keys()
        and value is not FEATURE_GATES[name].enabled
    ]


def options() -> str:
    """Return the gates that can be turned with stage and default, for the help of the flag."""
    names = sorted(TURNABLE | STAGES.keys())
    return ", ".join(f"{name}=true|false ({KNOWN[name]})" for name in names)


def unmet(gates: Mapping[str, Gate]) -> Iterator[str]:
    """Tell about gates that are on and depend on some that are off, in kube-scheduler's words."""
    for name, needed in (*DEPENDENCIES.items(), *_OWN_DEPENDENCIES.items()):
        off = [each for each in needed if not gates[each].enabled]
        if gates[name].enabled and off:
            yield (
                f"{name} is enabled, but depends on features that are disabled: [{' '.join(off)}]"
            )


def _unknown(name: str) -> str:
    similar = get_close_matches(name, KNOWN, n=1, cutoff=0.85)
    meant = f"; is {similar[0]} meant?" if similar else ""
    return f"unrecognized feature gate: {name}{meant}"


def _refusal(name: str, gate: Gate, value: object) -> str:
    wanted, fixed = str(value).lower(), str(gate.enabled).lower()
    if gate.locked:
        return f"cannot set feature gate {name} to {wanted}, feature is locked to {fixed}"
    return f"cannot set feature gate {name} to {wanted}: berth has it {fixed} only"
