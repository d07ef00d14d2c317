"""The feature gates that the components of each release know: stage, default, dependencies.

A component takes the gates of all of them, because one ``--feature-gates`` is often given to
each. The gates of 1.36 before general availability are those that ``kube-scheduler --help`` lists.
It does not list the others; they are those of 1.35 and the ones that have left the list since, of
which a few may be gone from 1.36. A later release is what it changes.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec


class Gate(msgspec.Struct, frozen=True):
    """A gate as it is by default."""

    stage: str
    """ALPHA, BETA, DEPRECATED, or "" for general availability."""
    enabled: bool
    locked: bool = False
    """Nobody can turn it, says Kubernetes."""

    def __str__(self) -> str:
        return f"{self.stage or 'GA'} - default={str(self.enabled).lower()}"


_ALPHA: Final = """
    APIServingWithRoutine AllAlpha AllowUnsafeMalformedObjectDeletion CBORServingAndStorage
    CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth ClientsAllowCBOR
    ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation
    CloudControllerManagerWebhook ContainerStopSignals
    ControllerManagerReleaseLeaderElectionLockOnExit CrossNamespaceVolumeDataSource
    DRAListTypeAttributes DRANodeAllocatableResources DRAResourcePoolStatus
    DRAWorkloadResourceClaims EventedPLEG GangScheduling GenericWorkload HPAScaleToZero
    ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs
    InPlacePodVerticalScalingExclusiveMemory KubeletInUserNamespace LoggingAlphaOptions
    ManifestBasedAdmissionControlConfig MemoryQoS MutablePVNodeAffinity NativeHistograms
    PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodLevelResourceManagers
    PodLogsQuerySplitStreams PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay
    RuntimeClassInImageCriApi ShardedListAndWatch StorageCapacityScoring StorageVersionAPI
    TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling
    TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport VolumeLimitScaling
    WindowsCPUAndMemoryAffinity WorkloadAwarePreemption WorkloadWithJob
"""
_BETA_ON: Final = """
    APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
    AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions
    CRDObservedGenerationTracking ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation
    ClientsAllowTLSCacheGC ComponentFlagz ComponentStatusz ConstrainedImpersonation
    ContainerCheckpoint ContainerRestartRules ContextualLogging DRAConsumableCapacity
    DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource DRAPartitionableDevices
    DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization
    DRASchedulerFilterTimeout DeclarativeValidationBeta DeploymentReplicaSetTerminatingReplicas
    DetectCacheInconsistency EnvFiles ExtendWebSocketsToKubelet GracefulNodeShutdown
    GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HostnameOverride
    InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling
    InPlacePodVerticalScalingInitContainers KubeletCrashLoopBackOffMax
    KubeletEnsureSecretPulledImages KubeletSeparateDiskGC
    KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions
    MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs
    NodeDeclaredFeatures NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching
    PLEGOnDemandRelist PodDeletionCost PodLevelResources PodReadyToStartContainersCondition
    PodTopologyLabelsAdmission PortForwardWebsockets PreventStaticPodAPIReferences
    RelaxedServiceNameValidation ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile
    RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage
    RestartAllContainersOnContainerExits RotateKubeletServerCertificate SchedulerAsyncPreemption
    SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
    StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
    StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
    StatefulSetSemanticRevisionComparison StorageVersionHash StrictIPCIDRValidation
    StructuredAuthenticationConfigurationEgressSelector
    StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
    TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests
    UnauthenticatedHTTP2DOSMitigation UnknownVersionInteroperabilityProxy
    UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook WatchList WatchListClient
    WindowsGracefulNodeShutdown
"""
_BETA_OFF: Final = """
    AllBeta ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode
    CoordinatedLeaderElection DRADeviceTaintRules LocalStorageCapacityIsolationFSQuotaMonitoring
    MaxUnavailableStatefulSet PodCertificateRequest SELinuxMount SchedulerAsyncAPICalls
    StorageVersionMigrator
"""
_GA: Final = """
    CSIServiceAccountTokenSecrets DRAPrioritizedList DeclarativeValidation
    DisableCPUQuotaWithExclusiveCPUs ExternalServiceAccountTokenSigner ImageVolume
    KubeletFineGrainedAuthz KubeletPSI KubeletPodResourcesDynamicResources
    KubeletPodResourcesGet MemoryManager MutatingAdmissionPolicy NodeLogQuery ProcMountType
    SELinuxChangePolicy SELinuxMountReadWriteOncePod TopologyManagerPolicyOptions
    UserNamespacesSupport
"""
_LOCKED: Final = """
    APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource
    AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache CPUManagerPolicyOptions
    CRDValidationRatcheting ConsistentListFromCache DRAAdminAccess DisableAllocatorDualWrite
    DynamicResourceAllocation ExecProbeTimeout ImageMaximumGCAge InPlacePodVerticalScaling
    JobManagedBy JobPodReplacementPolicy KubeletCgroupDriverFromCRI KubeletTracing
    MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator MutableCSINodeAllocatableCount
    NodeInclusionPolicyInPodTopologySpread NodeSwap OrderedNamespaceDeletion
    PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PodObservedGenerationTracking
    PreferSameTrafficDistribution RecoverVolumeExpansionFailure RelaxedDNSSearchValidation
    RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization
    SchedulerQueueingHints SeparateTaintEvictionController SidecarContainers
    StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
    StructuredAuthenticationConfiguration SupplementalGroupsPolicy SystemdWatchdog
    VolumeAttributesClass WinDSR WinOverlay
"""
_DEPRECATED_ON: Final = """
    AllowServiceExternalIPs DisableNodeKubeProxyVersion KubeletPodResourcesListUseActivePods
    StorageNamespaceIndex
"""
_DEPRECATED_OFF: Final = """
    AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
    ChangeContainerStatusOnKubeletRestart GitRepoVolumeDriver KMSv1
    KubeletRegistrationGetOnExistsOnly SeparateCacheWatchRPC WindowsHostNetwork
"""
_DEPRECATED_LOCKED_ON: Final = "AggregatedDiscoveryRemoveBetaType"
_DEPRECATED_LOCKED_OFF: Final = """
    AllowOverwriteTerminationGracePeriodSeconds WatchFromStorageWithoutResourceVersion
"""


def _gates() -> Iterator[tuple[str, Gate]]:
    for names, gate in (
        (_ALPHA, Gate("ALPHA", enabled=False)),
        (_BETA_ON, Gate("BETA", enabled=True)),
        (_BETA_OFF, Gate("BETA", enabled=False)),
        (_GA, Gate("", enabled=True)),
        (_LOCKED, Gate("", enabled=True, locked=True)),
        (_DEPRECATED_ON, Gate("DEPRECATED", enabled=True)),
        (_DEPRECATED_OFF, Gate("DEPRECATED", enabled=False)),
        (_DEPRECATED_LOCKED_ON, Gate("DEPRECATED", enabled=True, locked=True)),
        (_DEPRECATED_LOCKED_OFF, Gate("DEPRECATED", enabled=False, locked=True)),
    ):
        for name in names.split():
            yield name, gate


_ALPHA_OFF: Final = Gate("ALPHA", enabled=False)
_BETA_IS_ON: Final = Gate("BETA", enabled=True)
_BETA_IS_OFF: Final = Gate("BETA", enabled=False)
_GA_IS_ON: Final = Gate("", enabled=True)
_GA_IS_LOCKED: Final = Gate("", enabled=True, locked=True)

_IN_1_37: Final[Mapping[str, Gate | None]] = {
    # Gates that the scheduler consults (1.37 spec N2).
    "GangScheduling": None,
    "WorkloadAwarePreemption": None,
    "SidecarContainers": None,
    "GenericWorkload": _BETA_IS_OFF,
    "CompositePodGroup": _ALPHA_OFF,
    "PodGroupPreemptionPolicy": _ALPHA_OFF,
    "DRAWorkloadResourceClaims": _BETA_IS_OFF,
    "DRADeviceTaints": _GA_IS_ON,
    "DRADeviceTaintRules": _GA_IS_ON,
    "DRAExtendedResource": _GA_IS_LOCKED,
    "DRAPrioritizedList": _GA_IS_LOCKED,
    "DRAResourceClaimDeviceStatus": _GA_IS_LOCKED,
    "DRAFractionalCapacityRange": _BETA_IS_OFF,  # on by the oldest compatible version
    "DRADeviceCompatibilityGroups": _ALPHA_OFF,
    "DRADerivedAttributes": _ALPHA_OFF,
    "DRAOptionalNodeOperations": _ALPHA_OFF,
    "StorageCapacityScoring": _BETA_IS_ON,
    "VolumeLimitScaling": _BETA_IS_ON,
    "NodeDeclaredFeatures": _GA_IS_LOCKED,
    "InPlacePodVerticalScalingSchedulerPreemption": _ALPHA_OFF,
    "InterPodAffinityHostnameFastPath": _ALPHA_OFF,
    "SchedulerPreQueueingHints": _ALPHA_OFF,
    "NativeHistograms": _BETA_IS_OFF,  # its default is not known (N17); berth has none
    # Gates of other components: from the API's marks and the release notes.
    "APIServerWebhookAuthenticationToken": _ALPHA_OFF,
    "AllowUnsafeMalformedObjectDeletion": _BETA_IS_ON,
    "AtomicWriteVolumeUserFields": _ALPHA_OFF,
    "ClusterTrustBundle": _GA_IS_ON,
    "ConsistentListFromCacheSkipTimeoutFallback": _ALPHA_OFF,
    "DRAPartitionableDevicesType": _ALPHA_OFF,
    "EmptyDirVolumeMode": _ALPHA_OFF,
    "EtcdRangeStream": _BETA_IS_ON,
    "EvictionRequestAPI": _ALPHA_OFF,
    "ExcludeAdmissionWebhookVirtualResources": _BETA_IS_ON,
    "GRPCContainerProbeTLS": _ALPHA_OFF,
    "H2CContainerProbe": _ALPHA_OFF,
    "HPAConfigurableTolerance": _GA_IS_ON,
    "KubeletInUserNamespace": _BETA_IS_ON,
    "MaxUnavailableStatefulSet": _BETA_IS_ON,
    "PersistentVolumeClaimUnusedSinceTime": _BETA_IS_ON,
    "PodCertificateRequest": _GA_IS_ON,
    "RelaxedServiceNameValidation": _GA_IS_ON,
    "StatefulSetRecreateStrategy": _ALPHA_OFF,
    "StorageVersionMigrator": _GA_IS_ON,
    "VolumeBindMountOptions": _ALPHA_OFF,
    "WatchListCompression": _BETA_IS_ON,
}
"""What 1.37 has other than 1.36; None for a gate that it has no more."""


def _changed(before: Mapping[str, Gate], changes: Mapping[str, Gate | None]) -> Mapping[str, Gate]:
    after = {**before, **changes}
    return {name: gate for name, gate in sorted(after.items()) if gate is not None}


_1_36: Final = dict(sorted(_gates()))
FEATURE_GATES: Final[Mapping[str, Mapping[str, Gate]]] = {
    "1.36": _1_36,
    "1.37": _changed(_1_36, _IN_1_37),
}
"""The gates of a release by its name, sorted."""

MERGED: Final[Mapping[str, str]] = {
    "GangScheduling": "GenericWorkload",
    "WorkloadAwarePreemption": "GenericWorkload",
}
"""Gates that a release has no more, with the gate that now turns what they did."""

MIN_COMPATIBILITY: Final[Mapping[str, str]] = {"DRAFractionalCapacityRange": "1.37"}
"""Gates that are on once nothing older than a release has to be compatible."""

STAGES: Final[Mapping[str, str]] = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
"""The gates that stand for all gates of a stage."""

DEPENDENCIES: Final[Mapping[str, tuple[str, ...]]] = {
    "AuthorizeNodeWithSelectors": ("AuthorizeWithSelectors",),
    "ClusterTrustBundleProjection": ("ClusterTrustBundle",),
    "CompositePodGroup": ("TopologyAwareWorkloadScheduling",),
    "DRAAdminAccess": ("DynamicResourceAllocation",),
    "DRAConsumableCapacity": ("DynamicResourceAllocation",),
    "DRADeviceBindingConditions": ("DynamicResourceAllocation", "DRAResourceClaimDeviceStatus"),
    "DRADerivedAttributes": ("DynamicResourceAllocation",),
    "DRADeviceCompatibilityGroups": ("DRAPartitionableDevices",),
    "DRADeviceTaintRules": ("DRADeviceTaints",),
    "DRADeviceTaints": ("DynamicResourceAllocation",),
    "DRAExtendedResource": ("DynamicResourceAllocation",),
    "DRAFractionalCapacityRange": ("DRAConsumableCapacity",),
    "DRAListTypeAttributes": ("DynamicResourceAllocation",),
    "DRANodeAllocatableResources": ("DynamicResourceAllocation",),
    "DRAOptionalNodeOperations": ("DynamicResourceAllocation",),
    "DRAPartitionableDevices": ("DynamicResourceAllocation",),
    "DRAPrioritizedList": ("DynamicResourceAllocation",),
    "DRAResourcePoolStatus": ("DynamicResourceAllocation",),
    "DRASchedulerFilterTimeout": ("DynamicResourceAllocation",),
    "DRAWorkloadResourceClaims": ("DynamicResourceAllocation", "GenericWorkload"),
    "GangScheduling": ("GenericWorkload",),
    "GracefulNodeShutdownBasedOnPodPriority": ("GracefulNodeShutdown",),
    "ImageVolumeWithDigest": ("ImageVolume",),
    "InPlacePodLevelResourcesVerticalScaling": (
        "InPlacePodVerticalScaling",
        "PodLevelResources",
        "NodeDeclaredFeatures",
    ),
    "InPlacePodVerticalScalingExclusiveCPUs": ("InPlacePodVerticalScaling",),
    "InPlacePodVerticalScalingExclusiveMemory": ("InPlacePodVerticalScaling", "MemoryManager"),
    "InPlacePodVerticalScalingSchedulerPreemption": ("InPlacePodVerticalScaling",),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": ("MatchLabelKeysInPodTopologySpread",),
    "PodCertificateRequest": ("AuthorizeNodeWithSelectors",),
    "PodGroupPreemptionPolicy": ("GenericWorkload",),
    "PodLifecycleSleepActionAllowZero": ("PodLifecycleSleepAction",),
    "ProcMountType": ("UserNamespacesSupport",),
    "ResourceHealthStatus": ("DynamicResourceAllocation",),
    "RestartAllContainersOnContainerExits": ("ContainerRestartRules", "NodeDeclaredFeatures"),
    "StorageVersionAPI": ("APIServerIdentity",),
    "StructuredAuthenticationConfigurationEgressSelector": (
        "StructuredAuthenticationConfiguration",
    ),
    "StructuredAuthenticationConfigurationJWKSMetrics": ("StructuredAuthenticationConfiguration",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
    "UnknownVersionInteroperabilityProxy": ("APIServerIdentity",),
    "UserNamespacesHostNetworkSupport": ("UserNamespacesSupport",),
    "WindowsCPUAndMemoryAffinity": ("MemoryManager",),
    "WindowsGracefulNodeShutdown": ("GracefulNodeShutdown",),
    "WorkloadAwarePreemption": ("GangScheduling",),
    "WorkloadWithJob": ("GenericWorkload",),
}
"""What must be on for a gate to be on, in any release that has both.

Those of gates that are new in 1.37 are concluded from comments in the API (1.37 spec N17 no. 7).
"""
