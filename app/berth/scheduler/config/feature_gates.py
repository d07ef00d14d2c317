"""Feature gates that berth acts on, and ``--feature-gates`` (spec §1.3, G1; 1.37 spec N1, N2).

Decision (2026-11): a gate of the scheduler that would change what is decided and that berth cannot
turn is refused, because starting with other behaviour than asked for is worse than not starting;
gates that the scheduler does not consult are passed over with a warning, because one list is often
given to all components of a cluster, and kube-scheduler knows them all. A gate that the release
has no more, because it became a part of another or cannot be turned off, is passed over with a
warning, as kube-scheduler does with every name that it does not know.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Self

from msgspec.structs import replace

from berth.runtime.release import LATEST, Behaviour, EffectiveVersion
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.kube_features import (
    DEPENDENCIES,
    FEATURE_GATES,
    MERGED,
    MIN_COMPATIBILITY,
    STAGES,
    Gate,
)

if TYPE_CHECKING:
    from berth.scheduler.config.types import KubeSchedulerConfiguration

FLAG: Final = "--feature-gates"

CLEARING_NOMINATED_NODE_NAME_AFTER_BINDING: Final = "ClearingNominatedNodeNameAfterBinding"
COMPONENT_FLAGZ: Final = "ComponentFlagz"
COMPONENT_STATUSZ: Final = "ComponentStatusz"
COMPOSITE_POD_GROUP: Final = "CompositePodGroup"
COSCHEDULING_POD_GROUPS: Final = "CoschedulingPodGroups"
DRA_DEVICE_TAINT_RULES: Final = "DRADeviceTaintRules"
DRA_LIST_TYPE_ATTRIBUTES: Final = "DRAListTypeAttributes"
DRA_NODE_ALLOCATABLE_RESOURCES: Final = "DRANodeAllocatableResources"
DRA_WORKLOAD_RESOURCE_CLAIMS: Final = "DRAWorkloadResourceClaims"
GANG_REPLACEMENT_PODS: Final = "GangReplacementPods"
GANG_SCHEDULING: Final = "GangScheduling"
GENERIC_WORKLOAD: Final = "GenericWorkload"
IN_PLACE_POD_LEVEL_RESOURCES_VERTICAL_SCALING: Final = "InPlacePodLevelResourcesVerticalScaling"
IN_PLACE_RESIZE_PREEMPTION: Final = "InPlacePodVerticalScalingSchedulerPreemption"
MATCH_LABEL_KEYS_IN_POD_TOPOLOGY_SPREAD: Final = "MatchLabelKeysInPodTopologySpread"
NOMINATED_NODE_NAME_FOR_EXPECTATION: Final = "NominatedNodeNameForExpectation"
OPPORTUNISTIC_BATCHING: Final = "OpportunisticBatching"
POD_GROUP_LOOK_BACK: Final = "PodGroupLookBack"
POD_GROUP_PREEMPTION_POLICY: Final = "PodGroupPreemptionPolicy"
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
    POD_GROUP_LOOK_BACK: Gate("BERTH", enabled=False),
    VOLCANO_POD_GROUPS: Gate("BERTH", enabled=False),
}
"""Gates that kube-scheduler does not have. AllAlpha and AllBeta do not turn them."""
_OWN_DEPENDENCIES: Final = dict.fromkeys(OWN, (GANG_SCHEDULING,))

TURNABLE: Final = frozenset(
    {
        CLEARING_NOMINATED_NODE_NAME_AFTER_BINDING,
        COMPONENT_FLAGZ,
        COMPONENT_STATUSZ,
        COMPOSITE_POD_GROUP,
        COSCHEDULING_POD_GROUPS,
        "DRAConsumableCapacity",
        "DRADerivedAttributes",
        "DRADeviceBindingConditions",
        "DRADeviceCompatibilityGroups",
        DRA_DEVICE_TAINT_RULES,
        "DRADeviceTaints",
        "DRAExtendedResource",
        "DRAFractionalCapacityRange",
        DRA_LIST_TYPE_ATTRIBUTES,
        DRA_NODE_ALLOCATABLE_RESOURCES,
        "DRAOptionalNodeOperations",
        "DRAPartitionableDevices",
        "DRAPrioritizedList",
        "DRAResourceClaimDeviceStatus",
        "DRASchedulerFilterTimeout",
        DRA_WORKLOAD_RESOURCE_CLAIMS,
        GANG_REPLACEMENT_PODS,
        GANG_SCHEDULING,
        GENERIC_WORKLOAD,
        IN_PLACE_POD_LEVEL_RESOURCES_VERTICAL_SCALING,
        IN_PLACE_RESIZE_PREEMPTION,
        "InterPodAffinityHostnameFastPath",
        MATCH_LABEL_KEYS_IN_POD_TOPOLOGY_SPREAD,
        NODE_DECLARED_FEATURES,
        NOMINATED_NODE_NAME_FOR_EXPECTATION,
        OPPORTUNISTIC_BATCHING,
        POD_GROUP_LOOK_BACK,
        POD_GROUP_PREEMPTION_POLICY,
        POD_LEVEL_RESOURCES,
        SCHEDULER_ASYNC_API_CALLS,
        SCHEDULER_ASYNC_PREEMPTION,
        SCHEDULER_POP_FROM_BACKOFF_Q,
        "SchedulerPreQueueingHints",
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

OF_API: Final = frozenset(
    {
        "AtomicWriteVolumeUserFields",
        "CSIVolumeHealth",
        "DRAPartitionableDevicesType",
        "EmptyDirVolumeMode",
        "EvictionRequestAPI",
        "GRPCContainerProbeTLS",
        "H2CContainerProbe",
        "VolumeBindMountOptions",
    }
)
"""Gates without effect on a scheduler: the embedded cluster keeps the fields behind them."""

CONSULTED: Final = frozenset(
    {
        "ComponentFlagz",
        "ComponentStatusz",
        "CompositePodGroup",
        "CoordinatedLeaderElection",
        "DRAAdminAccess",
        "DRAConsumableCapacity",
        "DRADerivedAttributes",
        "DRADeviceBindingConditions",
        "DRADeviceCompatibilityGroups",
        "DRADeviceTaintRules",
        "DRADeviceTaints",
        "DRAExtendedResource",
        "DRAFractionalCapacityRange",
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "DRAOptionalNodeOperations",
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
        "InPlacePodVerticalScalingSchedulerPreemption",
        "InterPodAffinityHostnameFastPath",
        "MatchLabelKeysInPodAffinity",
        "MatchLabelKeysInPodTopologySpread",
        "NativeHistograms",
        "NodeDeclaredFeatures",
        "NodeInclusionPolicyInPodTopologySpread",
        "NominatedNodeNameForExpectation",
        "OpportunisticBatching",
        "PodGroupPreemptionPolicy",
        "PodLevelResources",
        "PodObservedGenerationTracking",
        "SchedulerAsyncAPICalls",
        "SchedulerAsyncPreemption",
        "SchedulerPopFromBackoffQ",
        "SchedulerPreQueueingHints",
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
"""Gates that change what a scheduler does (spec §1.3, G17; 1.37 spec N2)."""


@dataclass(frozen=True, slots=True)
class Features:
    """What is on: feature gates by name, and what else the release does.

    ``GATE in features`` and ``BEHAVIOUR in features`` ask. In a release that merged a gate into
    another, the name of the former stands for the latter.
    """

    gates: frozenset[str]
    version: EffectiveVersion = LATEST

    @classmethod
    def of(cls, *gates: str, release: str = LATEST.emulation) -> Self:
        """Return just *gates*, whatever else is on by default in *release*."""
        return cls(frozenset(gates), EffectiveVersion.of(release))

    def __contains__(self, item: object) -> bool:
        if isinstance(item, Behaviour):
            return self.version.has(item)
        return item in self.gates


def version_of(config: "KubeSchedulerConfiguration") -> EffectiveVersion:
    """Return which release *config* is to be like. Raises ConfigError."""
    try:
        return EffectiveVersion.of(config.emulated_version, config.min_compatibility_version)
    except ValueError as exc:
        raise ConfigError("version", [str(exc)]) from exc


def features_of(config: "KubeSchedulerConfiguration") -> Features:
    """Return what is on by *config*. Raises ConfigError."""
    return enabled_features(config.feature_gates, version_of(config))


def enabled_features(given: Mapping[str, bool], version: EffectiveVersion = LATEST) -> Features:
    """Return what is on in *version* with gates as *given*. Raises ConfigError."""
    return _enabled(tuple(given.items()), version)


@lru_cache(maxsize=64)
def _enabled(given: tuple[tuple[str, bool], ...], version: EffectiveVersion) -> Features:
    gates = effective_gates(dict(given), version)
    on = {name for name, gate in gates.items() if gate.enabled}
    on |= {old for old, new in MERGED.items() if old not in gates and new in on}
    return Features(frozenset(on), version)


def server_features(config: "KubeSchedulerConfiguration", release: str = "") -> Features:
    """Return what is on in an API server of *release* that is started with the gates of *config*.

    "" is the release that the scheduler emulates. Gates that another release does not know, or
    lets nobody turn, concern the scheduler alone. Raises ConfigError.
    """
    if release in ("", version_of(config).emulation):
        return features_of(config)
    version = EffectiveVersion.of(release)
    gates = default_gates(version)
    given = {
        name: value
        for name, value in config.feature_gates.items()
        if name in STAGES or (name in gates and not gates[name].locked)
    }
    return enabled_features(given, version)


def default_gates(version: EffectiveVersion = LATEST) -> dict[str, Gate]:
    """Return all gates that *version* has, as they are by default."""
    gates = {**FEATURE_GATES[version.emulation], **OWN}
    for name, release in MIN_COMPATIBILITY.items():
        if name in gates and version.is_compatible_since(release):
            gates[name] = replace(gates[name], enabled=True)
    return gates


def effective_gates(
    given: Mapping[str, bool], version: EffectiveVersion = LATEST
) -> dict[str, Gate]:
    """Return all gates of *version* with what was *given* for them; a name wins over ``AllAlpha``.

    Raises ConfigError for names that are no gates, for values that Kubernetes or berth does not
    allow, and for gates that depend on others that are off.
    """
    gates, problems = default_gates(version), []
    wanted = {
        name: given[group]
        for group, stage in STAGES.items()
        if group in given
        for name, gate in gates.items()
        if gate.stage == stage and name not in STAGES
    }
    wanted |= given
    for name, value in wanted.items():
        gate = gates.get(name)
        if gate is None:
            if name not in _removed(version):
                problems.append(_unknown(name, value, version))
        elif value is not gate.enabled and (gate.locked or name in CONSULTED - TURNABLE):
            problems.append(_refusal(name, gate, value))
        else:
            gates[name] = replace(gate, enabled=value)
    problems = problems or list(unmet(gates))
    if problems:
        raise ConfigError(FLAG, problems)
    return gates


def warnings(given: Mapping[str, bool], version: EffectiveVersion = LATEST) -> Iterator[str]:
    """Tell about gates of *given* that are passed over.

    They are gates of other components, which berth does not act on, and gates that the release has
    no more.
    """
    gates, removed = FEATURE_GATES[version.emulation], _removed(version)
    without_effect = gates.keys() - CONSULTED - TURNABLE - OF_API - STAGES.keys()
    for name, value in given.items():
        if name in removed:
            yield f"unrecognized feature gate: {name}"
        elif name in without_effect and value is not gates[name].enabled:
            yield f"feature gate without effect in berth: {name}"


def options() -> str:
    """Return the gates that can be turned with stage and default, for the help of the flag.

    A gate that the default release has no more is described as the last release has it.
    """
    gates = {name: gate for known in FEATURE_GATES.values() for name, gate in known.items()}
    gates |= OWN
    names = sorted(TURNABLE | STAGES.keys())
    return ", ".join(f"{name}=true|false ({gates[name]})" for name in names)


def unmet(gates: Mapping[str, Gate]) -> Iterator[str]:
    """Tell about gates that are on and depend on some that are off, in kube-scheduler's words."""
    for name, needed in (*DEPENDENCIES.items(), *_OWN_DEPENDENCIES.items()):
        if name not in gates or not gates[name].enabled:
            continue
        off = [gate for gate in _present(needed, gates) if not gates[gate].enabled]
        if off:
            yield (
                f"{name} is enabled, but depends on features that are disabled: [{' '.join(off)}]"
            )


def _present(names: Iterable[str], gates: Mapping[str, Gate]) -> Iterator[str]:
    """Yield *names*, in place of a gate that the release has no more the one it is a part of."""
    for name in names:
        if name in gates:
            yield name
        elif name in MERGED:
            yield MERGED[name]


def _removed(version: EffectiveVersion) -> frozenset[str]:
    """Return the gates that earlier releases have and *version* does not."""
    earlier = (gates for release, gates in FEATURE_GATES.items() if version.is_since(release))
    return frozenset().union(*earlier) - FEATURE_GATES[version.emulation].keys()


def _unknown(name: str, value: object, version: EffectiveVersion) -> str:
    if any(name in gates for gates in FEATURE_GATES.values()):
        return (
            f"cannot set feature gate {name} to {str(value).lower()}, feature is PreAlpha at"
            f" emulated version {version.emulation}, min compatibility version"
            f" {version.min_compatibility}"
        )
    similar = get_close_matches(name, default_gates(version), n=1, cutoff=0.85)
    meant = f"; is {similar[0]} meant?" if similar else ""
    return f"unrecognized feature gate: {name}{meant}"


def _refusal(name: str, gate: Gate, value: object) -> str:
    wanted, fixed = str(value).lower(), str(gate.enabled).lower()
    if gate.locked:
        return f"cannot set feature gate {name} to {wanted}, feature is locked to {fixed}"
    return f"cannot set feature gate {name} to {wanted}: berth has it {fixed} only"
