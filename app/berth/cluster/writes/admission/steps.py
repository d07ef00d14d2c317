"""The steps that the embedded cluster has, in the order of a real server.

That is ``AllOrderedPlugins`` of ``k8s.io/kubernetes/pkg/kubeapiserver/options``.
"""

from collections.abc import Collection, Sequence
from typing import Final, Protocol

from berth.cluster.access.rbac import Authorizer
from berth.cluster.features import DEFAULT_FEATURES
from berth.cluster.storage.store import Store
from berth.cluster.writes.admission.certificates import (
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
)
from berth.cluster.writes.admission.chain import Admission
from berth.cluster.writes.admission.claim_statuses import (
    DisabledNodeAllocatableResources,
    KeptClaimStatuses,
)
from berth.cluster.writes.admission.default_ingress_class import DefaultIngressClass
from berth.cluster.writes.admission.default_storage_class import DefaultStorageClass
from berth.cluster.writes.admission.default_toleration_seconds import DefaultTolerationSeconds
from berth.cluster.writes.admission.device_taint_rules import DeviceTaintTime
from berth.cluster.writes.admission.disabled_fields import (
    DisabledComparisons,
    DisabledFields,
    DisabledPodFields,
)
from berth.cluster.writes.admission.disabled_types import DisabledTypes
from berth.cluster.writes.admission.escalation import Escalation
from berth.cluster.writes.admission.limit_ranger import LimitRanger
from berth.cluster.writes.admission.namespace_lifecycle import NamespaceLifecycle
from berth.cluster.writes.admission.nominated_node_names import NominatedNodeNames
from berth.cluster.writes.admission.persistent_volume_claim_resize import (
    PersistentVolumeClaimResize,
)
from berth.cluster.writes.admission.pod_groups import (
    GangSizeIsFixed,
    PodGroupProtection,
    PodGroupWorkloadExists,
)
from berth.cluster.writes.admission.pod_security import PodSecurity
from berth.cluster.writes.admission.priority import Priority
from berth.cluster.writes.admission.resource_quota import ResourceQuota
from berth.cluster.writes.admission.runtime_class import RuntimeClass
from berth.cluster.writes.admission.service_account import AwaitServiceAccount, ServiceAccount
from berth.cluster.writes.admission.service_allocation import ServiceAllocation
from berth.cluster.writes.admission.step import AsyncStep, Step
from berth.cluster.writes.admission.storage_object_in_use_protection import (
    StorageObjectInUseProtection,
)
from berth.cluster.writes.admission.taint_nodes_by_condition import TaintNodesByCondition
from berth.cluster.writes.admission.volume_phases import VolumePhaseTime
from berth.cluster.writes.identities import Identities
from berth.runtime.clock import Clock
from berth.runtime.release import RELEASE

PLUGINS: Final = (
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "LimitRanger",
    "NamespaceLifecycle",
    "PersistentVolumeClaimResize",
    "PodSecurity",
    "Priority",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
)
"""Admission plugins of kube-apiserver that can be disabled here."""


def read_plugins(text: str) -> frozenset[str]:
    """Read names of plugins with commas between; ValueError for an unknown one."""
    names = frozenset(filter(None, map(str.strip, text.split(","))))
    if unknown := sorted(names.difference(PLUGINS)):
        raise ValueError(f'admission-control plugin "{unknown[0]}" is unknown, or always enabled')
    return names


class MakeAdmission(Protocol):
    """Returns the admission of a server that is being made."""

    def __call__(
        self,
        store: Store,
        /,
        *,
        authorizer: Authorizer,
        clock: Clock,
        identities: Identities,
        async_steps: Sequence[AsyncStep],
        features: Collection[str] = (),
        release: str = RELEASE,
    ) -> Admission: ...


def standard_admission(
    store: Store,
    *,
    authorizer: Authorizer,
    clock: Clock,
    identities: Identities,
    async_steps: Sequence[AsyncStep],
    features: Collection[str] = DEFAULT_FEATURES,
    release: str = RELEASE,
    disabled: Collection[str] = (),
) -> Admission:
    """Return admission as a real server has it by default, with what waits for others.

    *disabled* are of :data:`PLUGINS`, as in kube-apiserver's ``--disable-admission-plugins``.
    """
    service_account = ServiceAccount(store, identities=identities)
    awaited = AwaitServiceAccount(service_account, clock=clock)
    steps: tuple[Step, ...] = (
        DisabledPodFields(features),
        DisabledFields(features),
        DisabledTypes(features),
        DisabledComparisons(features),
        DisabledNodeAllocatableResources(features),
        KeptClaimStatuses(release),
        NamespaceLifecycle(store),
        GangSizeIsFixed(features),
        PodGroupWorkloadExists(store),
        LimitRanger(store),
        service_account,
        TaintNodesByCondition(),
        PodSecurity(store),
        Priority(store, features),
        DefaultTolerationSeconds(),
        DefaultStorageClass(store),
        StorageObjectInUseProtection(),
        PodGroupProtection(),
        PersistentVolumeClaimResize(store),
        NominatedNodeNames(features),
        RuntimeClass(store),
        CertificateApproval(authorizer),
        CertificateSigning(authorizer),
        CertificateSubjectRestriction(),
        DefaultIngressClass(store),
        # Not plugins of a real server, but what its storage does.
        Escalation(authorizer),
        ServiceAllocation(store),
        DeviceTaintTime(clock),
        VolumePhaseTime(clock),
    )
    return Admission(
        [step for step in steps if type(step).__name__ not in disabled],
        async_steps=async_steps if "ServiceAccount" in disabled else (awaited, *async_steps),
        last=() if "ResourceQuota" in disabled else (ResourceQuota(store, clock=clock),),
    )
