"""The feature gates that a scheduler of 1.36 consults (spec §1.3, G1), and ``--feature-gates``.

Decision (2026-11): a gate of the scheduler that would change what is decided and that berth cannot
turn is refused, because starting with other behaviour than asked for is worse than not starting;
gates that the scheduler does not consult are passed over with a warning, because one list is often
given to all components of a cluster, and kube-scheduler knows them all.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

from berth.config.errors import ConfigError

log = logging.getLogger(__name__)

FLAG: Final = "--feature-gates"


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate as it is by default."""

    stage: str
    """ALPHA, BETA, or "" for general availability."""
    enabled: bool
    locked: bool = False
    """Nobody can turn it, says Kubernetes."""


_GA: Final = Gate("", enabled=True)
_LOCKED: Final = Gate("", enabled=True, locked=True)
_ON: Final = Gate("BETA", enabled=True)
_OFF: Final = Gate("BETA", enabled=False)
_ALPHA: Final = Gate("ALPHA", enabled=False)

FEATURE_GATES: Final[Mapping[str, Gate]] = {
    "ClearingNominatedNodeNameAfterBinding": _ON,
    "ComponentFlagz": _ON,
    "ComponentStatusz": _ON,
    "CoordinatedLeaderElection": _OFF,
    "DRAAdminAccess": _LOCKED,
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
    "DynamicResourceAllocation": _LOCKED,
    "GangScheduling": _ALPHA,
    "GenericWorkload": _ALPHA,
    "InPlacePodLevelResourcesVerticalScaling": _ON,
    "InPlacePodVerticalScaling": _LOCKED,
    "MatchLabelKeysInPodAffinity": _LOCKED,
    "MatchLabelKeysInPodTopologySpread": _ON,
    "NativeHistograms": _ALPHA,
    "NodeDeclaredFeatures": _ON,
    "NodeInclusionPolicyInPodTopologySpread": _LOCKED,
    "NominatedNodeNameForExpectation": _ON,
    "OpportunisticBatching": _ON,
    "PodLevelResources": _ON,
    "PodObservedGenerationTracking": _LOCKED,
    "SchedulerAsyncAPICalls": _OFF,
    "SchedulerAsyncPreemption": _ON,
    "SchedulerPopFromBackoffQ": _ON,
    "SchedulerQueueingHints": _LOCKED,
    "SidecarContainers": _LOCKED,
    "StorageCapacityScoring": _ALPHA,
    "TaintTolerationComparisonOperators": _ALPHA,
    "TopologyAwareWorkloadScheduling": _ALPHA,
    "VolumeAttributesClass": _LOCKED,
    "VolumeLimitScaling": _ALPHA,
    "WorkloadAwarePreemption": _ALPHA,
}

COMPONENT_FLAGZ: Final = "ComponentFlagz"
COMPONENT_STATUSZ: Final = "ComponentStatusz"
GANG_SCHEDULING: Final = "GangScheduling"
GENERIC_WORKLOAD: Final = "GenericWorkload"
TOPOLOGY_AWARE: Final = "TopologyAwareWorkloadScheduling"
NODE_DECLARED_FEATURES: Final = "NodeDeclaredFeatures"
TAINT_TOLERATION_COMPARISON_OPERATORS: Final = "TaintTolerationComparisonOperators"
WORKLOAD_AWARE_PREEMPTION: Final = "WorkloadAwarePreemption"

TURNABLE: Final = frozenset(
    {
        COMPONENT_FLAGZ,
        COMPONENT_STATUSZ,
        GANG_SCHEDULING,
        GENERIC_WORKLOAD,
        NODE_DECLARED_FEATURES,
        TAINT_TOLERATION_COMPARISON_OPERATORS,
        TOPOLOGY_AWARE,
        WORKLOAD_AWARE_PREEMPTION,
    }
)
"""Gates that berth acts on."""

ELSEWHERE: Final = frozenset(
    {"ClearingNominatedNodeNameAfterBinding", "DRAResourceClaimGranularStatusAuthorization"}
)
"""Gates whose effect is in the API server, so that any value is true of the scheduler."""

DEPENDENCIES: Final[Mapping[str, tuple[str, ...]]] = {
    "DRADeviceTaintRules": ("DRADeviceTaints",),
    "DRAListTypeAttributes": ("DynamicResourceAllocation",),
    "DRANodeAllocatableResources": ("DynamicResourceAllocation",),
    "DRAWorkloadResourceClaims": ("DynamicResourceAllocation", "GenericWorkload"),
    "GangScheduling": ("GenericWorkload",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
    "WorkloadAwarePreemption": ("GangScheduling",),
}
"""What must be on for a gate to be on."""

_STAGES: Final = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}


def effective_gates(given: Mapping[str, bool]) -> dict[str, Gate]:
    """Return all gates with what was *given* for them, ``AllAlpha`` and ``AllBeta`` included.

    Raises ConfigError for values that Kubernetes or berth does not allow, for names that look like
    a gate's and are none, and for gates that depend on others that are off.
    """
    wanted = {
        name: given[group]
        for group, stage in _STAGES.items()
        if group in given
        for name, gate in FEATURE_GATES.items()
        if gate.stage == stage
    }
    wanted |= {name: value for name, value in given.items() if name not in _STAGES}
    gates, problems = dict(FEATURE_GATES), []
    for name, value in wanted.items():
        gate = gates.get(name)
        if gate is None:
            problems += _unknown(name)
        elif value is not gate.enabled and name not in TURNABLE | ELSEWHERE:
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


def unmet(gates: Mapping[str, Gate]) -> Iterator[str]:
    """Tell about gates that are on and depend on some that are off, in kube-scheduler's words."""
    for name, needed in DEPENDENCIES.items():
        off = [each for each in needed if not gates[each].enabled]
        if gates[name].enabled and off:
            yield (
                f"{name} is enabled, but depends on features that are disabled: [{' '.join(off)}]"
            )


def _unknown(name: str) -> list[str]:
    similar = get_close_matches(name, FEATURE_GATES, n=1, cutoff=0.85)
    if similar:
        return [f"unrecognized feature gate: {name}; is {similar[0]} meant?"]
    log.warning("a feature gate that is not the scheduler's", extra={"gate": name})
    return []


def _refusal(name: str, gate: Gate, value: object) -> str:
    wanted, fixed = str(value).lower(), str(gate.enabled).lower()
    if gate.locked:
        return f"cannot set feature gate {name} to {wanted}, feature is locked to {fixed}"
    return f"cannot set feature gate {name} to {wanted}: berth has it {fixed} only"
