"""The feature gates that the components of Kubernetes 1.36 know: stage, default, dependencies.

A component takes the gates of all of them, because one ``--feature-gates`` is often given to each.
The gates before general availability are those that ``kube-scheduler --help`` lists. It does not
list the others; they are those of 1.35 and the ones that have left the list since, of which a few
may be gone from 1.36.
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


FEATURE_GATES: Final[Mapping[str, Gate]] = dict(sorted(_gates()))

STAGES: Final[Mapping[str, str]] = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
"""The gates that stand for all gates of a stage."""

DEPENDENCIES: Final[Mapping[str, tuple[str, ...]]] = {
    "AuthorizeNodeWithSelectors": ("AuthorizeWithSelectors",),
    "ClusterTrustBundleProjection": ("ClusterTrustBundle",),
    "DRAAdminAccess": ("DynamicResourceAllocation",),
    "DRAConsumableCapacity": ("DynamicResourceAllocation",),
    "DRADeviceBindingConditions": ("DynamicResourceAllocation", "DRAResourceClaimDeviceStatus"),
    "DRADeviceTaintRules": ("DRADeviceTaints",),
    "DRADeviceTaints": ("DynamicResourceAllocation",),
    "DRAExtendedResource": ("DynamicResourceAllocation",),
    "DRAListTypeAttributes": ("DynamicResourceAllocation",),
    "DRANodeAllocatableResources": ("DynamicResourceAllocation",),
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
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": ("MatchLabelKeysInPodTopologySpread",),
    "PodCertificateRequest": ("AuthorizeNodeWithSelectors",),
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
"""What must be on for a gate to be on."""
