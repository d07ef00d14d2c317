"""``KubeletConfiguration``: how hollow kubelets behave, by the names that real ones have for it.

Fields that a hollow kubelet has no use for are accepted and logged; unknown ones are refused, as a
kubelet does. Defaults and messages are those of ``pkg/kubelet/apis/config``.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from berth.cluster.kubelet.eviction.signals import Signal
from berth.cluster.kubelet.eviction.thresholds import (
    DEFAULT_HARD,
    Threshold,
    parse_thresholds,
)
from berth.cluster.kubelet.node_template import NodeTemplate
from berth.kube import manifests
from berth.kube.objects.amounts import Amount
from berth.kube.objects.quantity import check_quantity, parse, value
from berth.kube.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from berth.runtime.duration import Duration
from berth.runtime.errors import UserError

log = logging.getLogger(__name__)

API_VERSION: Final = "kubelet.config.k8s.io/v1beta1"
KIND: Final = "KubeletConfiguration"
TYPE: Final = (API_VERSION, KIND)

RESERVABLE: Final = frozenset({"cpu", "memory", "ephemeral-storage", "pid"})
"""What ``systemReserved`` and ``kubeReserved`` may name."""

_OTHER_FIELDS: Final = """
    address allowedUnsafeSysctls authentication authorization cgroupDriver cgroupRoot cgroupsPerQOS
    clusterDNS clusterDomain configMapAndSecretChangeDetectionStrategy containerLogMaxFiles
    containerLogMaxSize containerLogMaxWorkers containerLogMonitorInterval containerRuntimeEndpoint
    contentType cpuCFSQuota cpuCFSQuotaPeriod cpuManagerPolicy cpuManagerPolicyOptions
    cpuManagerReconcilePeriod crashLoopBackOff draManagerReconcilePeriod enableContentionProfiling
    enableControllerAttachDetach enableDebugFlagsHandler enableDebuggingHandlers
    enableProfilingHandler enableServer enableSystemLogHandler enableSystemLogQuery eventBurst
    eventRecordQPS failCgroupV1 failSwapOn featureGates fileCheckFrequency hairpinMode
    healthzBindAddress healthzPort httpCheckFrequency imageMaximumGCAge imageMinimumGCAge
    imagePullCredentialsVerificationPolicy imageServiceEndpoint iptablesDropBit
    iptablesMasqueradeBit kernelMemcgNotification kubeAPIBurst kubeAPIQPS kubeReservedCgroup
    kubeletCgroups logging makeIPTablesUtilChains maxOpenFiles maxParallelImagePulls
    memoryManagerPolicy memoryReservationPolicy memorySwap memoryThrottlingFactor
    nodeStatusMaxImages nodeStatusReportFrequency oomScoreAdj podCIDR podHousekeepingPeriod
    podLogsDir podPidsLimit podsPerCore port
    preloadedImagesVerificationAllowlist protectKernelDefaults providerID qosReserved readOnlyPort
    registerNode registerWithTaints registryBurst registryPullQPS reservedMemory reservedSystemCPUs
    resolvConf rotateCertificates runOnce runtimeRequestTimeout seccompDefault serializeImagePulls
    serverTLSBootstrap showHiddenMetricsForVersion shutdownGracePeriod
    shutdownGracePeriodByPodPriority shutdownGracePeriodCriticalPods singleProcessOOMKill
    staticPodPath staticPodURL staticPodURLHeader streamingConnectionIdleTimeout syncFrequency
    systemCgroups systemReservedCgroup tlsCertFile tlsCipherSuites tlsCurvePreferences
    tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy topologyManagerPolicyOptions
    topologyManagerScope tracing userNamespaces volumePluginDir volumeStatsAggPeriod
"""
WITHOUT_EFFECT: Final = frozenset(_OTHER_FIELDS.split())
"""The other fields: of machines and containers that there are not."""


_HARD_RESERVATIONS: Final = {
    Signal.MEMORY_AVAILABLE: MEMORY,
    Signal.NODEFS_AVAILABLE: EPHEMERAL_STORAGE,
}


class KubeletConfigurationError(UserError):
    """A KubeletConfiguration that cannot be used; names the file and the field."""


class KubeletConfiguration(BaseModel):
    """The fields that a hollow kubelet obeys."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )

    eviction_hard: dict[str, str] | None = None
    """None: :data:`~berth.cluster.kubelet.eviction.thresholds.DEFAULT_HARD`."""
    eviction_soft: dict[str, str] = {}
    eviction_soft_grace_period: dict[str, str] = {}
    eviction_minimum_reclaim: dict[str, str] = {}
    eviction_pressure_transition_period: Duration = Duration(0)
    """0: five minutes."""
    eviction_max_pod_grace_period: int = 0
    """Seconds."""
    merge_default_eviction_settings: bool = False
    enforce_node_allocatable: tuple[str, ...] = ("pods",)
    local_storage_capacity_isolation: bool = True
    max_pods: int = 110
    node_lease_duration_seconds: int = 40
    node_status_update_frequency: Duration = Duration(0)
    """0: ten seconds."""
    system_reserved: dict[str, str] = {}
    kube_reserved: dict[str, str] = {}
    image_gc_high_threshold_percent: int = Field(default=85, alias="imageGCHighThresholdPercent")
    image_gc_low_threshold_percent: int = Field(default=80, alias="imageGCLowThresholdPercent")

    @property
    def has_thresholds(self) -> bool:
        """Whether it says itself when its node is short of something."""
        return self.eviction_hard is not None or bool(self.eviction_soft)

    @property
    def pressure_transition_seconds(self) -> float:
        return self.eviction_pressure_transition_period.seconds or 300.0

    @property
    def node_status_update_seconds(self) -> float:
        """After which time what changes by itself, the images of a node, is reported."""
        return self.node_status_update_frequency.seconds or 10.0

    def reserved(self, resource: str) -> int:
        """Return how much of *resource* pods may not use, in whole units."""
        given = (self.system_reserved, self.kube_reserved)
        return value(sum(parse(each.get(resource, 0)) for each in given))

    def applied_to(self, template: NodeTemplate) -> NodeTemplate:
        """Return how nodes look whose kubelets have this configuration.

        What is reserved, and the hard eviction thresholds, are not for pods
        (``GetNodeAllocatableReservation``). Without a configuration, nothing is reserved.
        """
        if not self.model_fields_set:
            return template
        capacity, reserved = template.capacity(), dict[str, int]()
        for given in (self.system_reserved, self.kube_reserved):
            for name, text in given.items():
                reserved[name] = reserved.get(name, 0) + parse(text)
        for each in self.thresholds:
            resource = _HARD_RESERVATIONS.get(each.signal, "")
            if each.is_hard and resource in capacity:
                nanos = each.value.of(value(parse(capacity[resource]))).nanos
                reserved[resource] = reserved.get(resource, 0) + nanos
        amounts = {
            name: str(Amount(nanos, name != CPU)) for name, nanos in reserved.items() if nanos
        }
        found = replace(template, reserved=amounts)
        if "max_pods" in self.model_fields_set:
            others = {name: each for name, each in found.resources.items() if name != PODS}
            found = replace(found, pods=self.max_pods, resources=others)
        return found

    @cached_property
    def thresholds(self) -> Sequence[Threshold]:
        """Return the eviction thresholds; ValueError in the words of a kubelet."""
        hard = DEFAULT_HARD if self.eviction_hard is None else self.eviction_hard
        if self.merge_default_eviction_settings:
            hard = {**DEFAULT_HARD, **hard}
        return parse_thresholds(
            hard=hard,
            soft=self.eviction_soft,
            soft_grace_periods=self.eviction_soft_grace_period,
            minimum_reclaim=self.eviction_minimum_reclaim,
            enforces_allocatable="pods" in self.enforce_node_allocatable,
        )


def read(path: Path) -> KubeletConfiguration:
    """Return what a file says, in YAML or JSON; KubeletConfigurationError if it cannot be."""
    try:
        documents = list(manifests.read(path))
    except manifests.ManifestError as exc:
        raise KubeletConfigurationError(str(exc)) from exc
    if len(documents) != 1 or (documents[0]["apiVersion"], documents[0]["kind"]) != TYPE:
        found = ", ".join(f"{document['apiVersion']} {document['kind']}" for document in documents)
        raise KubeletConfigurationError(
            f"{path}: exactly one {API_VERSION} {KIND} is needed, got {found or 'nothing'}"
        )
    return from_object(documents[0], source=str(path))


def from_object(obj: Mapping[str, Any], *, source: str) -> KubeletConfiguration:
    """Return what an object says; *source* names it in errors and in the log."""
    fields = {name: each for name, each in obj.items() if name not in ("apiVersion", "kind")}
    idle = sorted(fields.keys() & WITHOUT_EFFECT)
    if idle:
        log.warning("fields without effect", extra={"source": source, "fields": idle})
    obeyed = {
        name: each
        for name, each in fields.items()
        if name not in WITHOUT_EFFECT and each is not None
    }
    try:
        found = KubeletConfiguration.model_validate_json(msgspec.json.encode(obeyed))
    except ValidationError as exc:
        problems = [_problem(error["loc"], error["type"], error["msg"]) for error in exc.errors()]
    else:
        problems = list(_problems(found))
    if problems:
        raise KubeletConfigurationError("\n".join(f"{source}: {problem}" for problem in problems))
    return found


def _problem(location: Sequence[str | int], type_: str, message: str) -> str:
    name = ".".join(map(str, location))
    if type_ == "extra_forbidden":
        return f'strict decoding error: unknown field "{name}"'
    text = message.removeprefix("Value error, ")
    return f"{name}: {text[0].lower()}{text[1:]}"


def _problems(given: KubeletConfiguration) -> Iterator[str]:
    """Yield what cannot be, in the words of ``ValidateKubeletConfiguration``."""
    high, low = given.image_gc_high_threshold_percent, given.image_gc_low_threshold_percent
    if given.node_lease_duration_seconds <= 0:
        yield "invalid configuration: nodeLeaseDurationSeconds must be greater than 0"
    for name, flag, percent in (
        ("imageGCHighThresholdPercent", "--image-gc-high-threshold", high),
        ("imageGCLowThresholdPercent", "--image-gc-low-threshold", low),
    ):
        if not 0 <= percent <= 100:
            yield (
                f"invalid configuration: {name} ({flag}) {percent} "
                "must be between 0 and 100, inclusive"
            )
    if low >= high:
        yield (
            f"invalid configuration: imageGCLowThresholdPercent (--image-gc-low-threshold) {low} "
            f"must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) {high}"
        )
    if given.max_pods < 0:
        yield (
            f"invalid configuration: maxPods (--max-pods) {given.max_pods} "
            "must not be a negative number"
        )
    for field, reserved in (
        ("systemReserved", given.system_reserved),
        ("kubeReserved", given.kube_reserved),
    ):
        yield from _reservation_problems(field, reserved)
    try:
        given.thresholds  # noqa: B018 # parsed when asked for
    except ValueError as exc:
        yield str(exc)


def _reservation_problems(field: str, reserved: Mapping[str, str]) -> Iterator[str]:
    for name, text in reserved.items():
        if name not in RESERVABLE:
            yield f'{field}: cannot reserve "{name}" resource'
            continue
        try:
            check_quantity(text)
        except ValueError as exc:
            yield f"{field}.{name}: {exc}"
