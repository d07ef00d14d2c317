"""The one list of the kinds that the embedded API server serves."""

from collections.abc import Iterable

from berth.cluster import selectable_fields
from berth.cluster.columns import configuration as configuration_columns
from berth.cluster.columns import devices as device_columns
from berth.cluster.columns import event as event_columns
from berth.cluster.columns import lease as lease_columns
from berth.cluster.columns import namespace as namespace_columns
from berth.cluster.columns import node as node_columns
from berth.cluster.columns import pod as pod_columns
from berth.cluster.columns import pod_disruption_budget as pod_disruption_budget_columns
from berth.cluster.columns import priority_class as priority_class_columns
from berth.cluster.columns import rbac as rbac_columns
from berth.cluster.columns import service as service_columns
from berth.cluster.columns import storage as storage_columns
from berth.cluster.columns import workloads as workload_columns
from berth.cluster.events_view import core_column, core_strategy, from_core, to_core
from berth.cluster.resources import VERBS, ResourceType
from berth.cluster.strategies import configuration, devices, rbac, storage
from berth.cluster.strategies.deployment import DEPLOYMENT
from berth.cluster.strategies.event import EVENT
from berth.cluster.strategies.lease import LEASE
from berth.cluster.strategies.namespace import NAMESPACE
from berth.cluster.strategies.network_policy import NETWORK_POLICY
from berth.cluster.strategies.node import NODE
from berth.cluster.strategies.pod import POD
from berth.cluster.strategies.pod_disruption_budget import POD_DISRUPTION_BUDGET
from berth.cluster.strategies.priority_class import PRIORITY_CLASS
from berth.cluster.strategies.replica_set import REPLICA_SET
from berth.cluster.strategies.replication_controller import REPLICATION_CONTROLLER
from berth.cluster.strategies.service import SERVICE
from berth.cluster.strategies.stateful_set import STATEFUL_SET

RESOURCES: tuple[ResourceType, ...] = (
    ResourceType(
        group="",
        version="v1",
        kind="ConfigMap",
        plural="configmaps",
        singular="configmap",
        namespaced=True,
        short_names=("cm",),
        strategy=configuration.CONFIG_MAP,
        columns=configuration_columns.CONFIG_MAP_COLUMNS,
    ),
    ResourceType(
        group="",
        version="v1",
        kind="Event",
        plural="events",
        singular="event",
        namespaced=True,
        short_names=("ev",),
        garbage_collected=False,
        strategy=EVENT,
        columns=event_columns.COLUMNS,
        selectable_fields=selectable_fields.EVENT,
    ),
    ResourceType(
        group="",
        version="v1",
        kind="Namespace",
        plural="namespaces",
        singular="namespace",
        namespaced=False,
        short_names=("ns",),
        verbs=tuple(verb for verb in VERBS if verb != "deletecollection"),
        subresources=("finalize", "status"),
        strategy=NAMESPACE,
        columns=namespace_columns.COLUMNS,
        selectable_fields=selectable_fields.NAMESPACE,
    ),
    ResourceType(
        group="",
        version="v1",
        kind="Node",
        plural="nodes",
        singular="node",
        namespaced=False,
        short_names=("no",),
        subresources=("status",),
        strategy=NODE,
        columns=node_columns.COLUMNS,
        selectable_fields=selectable_fields.NODE,
    ),
    ResourceType(
        group="",
        version="v1",
        kind="PersistentVolume",
        plural="persistentvolumes",
        singular="persistentvolume",
        namespaced=False,
        short_names=("pv",),
        subresources=("status",),
        strategy=storage.PERSISTENT_VOLUME,
        columns=storage_columns.PERSISTENT_VOLUME_COLUMNS,
    ),
    ResourceType(
        group="",
        version="v1",
        kind="PersistentVolumeClaim",
        plural="persistentvolumeclaims",
        singular="persistentvolumeclaim",
        namespaced=True,
        short_names=("pvc",),
        subresources=("status",),
        strategy=storage.PERSISTENT_VOLUME_CLAIM,
        columns=storage_columns.PERSISTENT_VOLUME_CLAIM_COLUMNS,
    ),
    ResourceType(
        group="",
        version="v1",
        kind="Pod",
        plural="pods",
        singular="pod",
        namespaced=True,
        short_names=("po",),
        categories=("all",),
        subresources=("binding", "status"),
        refused_subresources={
            "eviction": "eviction is not served by the embedded cluster: delete the pod instead"
        },
        returned_when_gone=True,
        strategy=POD,
        columns=pod_columns.COLUMNS,
        selectable_fields=selectable_fields.POD,
    ),
    ResourceType(
        group="",
        version="v1",
        kind="ReplicationController",
        plural="replicationcontrollers",
        singular="replicationcontroller",
        namespaced=True,
        short_names=("rc",),
        categories=("all",),
        subresources=("scale", "status"),
        selects_by_map=True,
        default_propagation="Orphan",
        strategy=REPLICATION_CONTROLLER,
        columns=workload_columns.REPLICATION_CONTROLLER_COLUMNS,
    ),
    ResourceType(
        group="",
        version="v1",
        kind="Secret",
        plural="secrets",
        singular="secret",
        namespaced=True,
        strategy=configuration.SECRET,
        columns=configuration_columns.SECRET_COLUMNS,
        selectable_fields=selectable_fields.SECRET,
    ),
    ResourceType(
        group="",
        version="v1",
        kind="ServiceAccount",
        plural="serviceaccounts",
        singular="serviceaccount",
        namespaced=True,
        short_names=("sa",),
        subresources=("token",),
        returned_when_gone=True,
        strategy=configuration.SERVICE_ACCOUNT,
        columns=configuration_columns.SERVICE_ACCOUNT_COLUMNS,
    ),
    ResourceType(
        group="",
        version="v1",
        kind="Service",
        plural="services",
        singular="service",
        namespaced=True,
        short_names=("svc",),
        categories=("all",),
        subresources=("status",),
        returned_when_gone=True,
        strategy=SERVICE,
        columns=service_columns.COLUMNS,
        selectable_fields=selectable_fields.SERVICE,
    ),
    ResourceType(
        group="apps",
        version="v1",
        kind="Deployment",
        plural="deployments",
        singular="deployment",
        namespaced=True,
        short_names=("deploy",),
        categories=("all",),
        subresources=("scale", "status"),
        strategy=DEPLOYMENT,
        columns=workload_columns.DEPLOYMENT_COLUMNS,
    ),
    ResourceType(
        group="apps",
        version="v1",
        kind="ReplicaSet",
        plural="replicasets",
        singular="replicaset",
        namespaced=True,
        short_names=("rs",),
        categories=("all",),
        subresources=("scale", "status"),
        strategy=REPLICA_SET,
        columns=workload_columns.REPLICA_SET_COLUMNS,
    ),
    ResourceType(
        group="apps",
        version="v1",
        kind="StatefulSet",
        plural="statefulsets",
        singular="statefulset",
        namespaced=True,
        short_names=("sts",),
        categories=("all",),
        subresources=("scale", "status"),
        strategy=STATEFUL_SET,
        columns=workload_columns.STATEFUL_SET_COLUMNS,
    ),
    ResourceType(
        group="events.k8s.io",
        version="v1",
        kind="Event",
        plural="events",
        singular="event",
        namespaced=True,
        short_names=("ev",),
        garbage_collected=False,
        strategy=core_strategy(EVENT),
        columns=tuple(map(core_column, event_columns.COLUMNS)),
        selectable_fields=selectable_fields.EVENTS_K8S_IO_EVENT,
        storage="events",
        to_storage=to_core,
        from_storage=from_core,
    ),
    ResourceType(
        group="networking.k8s.io",
        version="v1",
        kind="NetworkPolicy",
        plural="networkpolicies",
        singular="networkpolicy",
        namespaced=True,
        short_names=("netpol",),
        strategy=NETWORK_POLICY,
        columns=configuration_columns.NETWORK_POLICY_COLUMNS,
    ),
    ResourceType(
        group="policy",
        version="v1",
        kind="PodDisruptionBudget",
        plural="poddisruptionbudgets",
        singular="poddisruptionbudget",
        namespaced=True,
        short_names=("pdb",),
        subresources=("status",),
        strategy=POD_DISRUPTION_BUDGET,
        columns=pod_disruption_budget_columns.COLUMNS,
    ),
    ResourceType(
        group=rbac.GROUP,
        version="v1",
        kind="ClusterRole",
        plural="clusterroles",
        singular="clusterrole",
        namespaced=False,
        strategy=rbac.CLUSTER_ROLE,
        columns=rbac_columns.ROLE_COLUMNS,
    ),
    ResourceType(
        group=rbac.GROUP,
        version="v1",
        kind="ClusterRoleBinding",
        plural="clusterrolebindings",
        singular="clusterrolebinding",
        namespaced=False,
        strategy=rbac.CLUSTER_ROLE_BINDING,
        columns=rbac_columns.BINDING_COLUMNS,
    ),
    ResourceType(
        group=rbac.GROUP,
        version="v1",
        kind="Role",
        plural="roles",
        singular="role",
        namespaced=True,
        strategy=rbac.ROLE,
        columns=rbac_columns.ROLE_COLUMNS,
    ),
    ResourceType(
        group=rbac.GROUP,
        version="v1",
        kind="RoleBinding",
        plural="rolebindings",
        singular="rolebinding",
        namespaced=True,
        strategy=rbac.ROLE_BINDING,
        columns=rbac_columns.BINDING_COLUMNS,
    ),
    ResourceType(
        group="storage.k8s.io",
        version="v1",
        kind="CSIDriver",
        plural="csidrivers",
        singular="csidriver",
        namespaced=False,
        strategy=storage.CSI_DRIVER,
        columns=storage_columns.CSI_DRIVER_COLUMNS,
    ),
    ResourceType(
        group="storage.k8s.io",
        version="v1",
        kind="CSINode",
        plural="csinodes",
        singular="csinode",
        namespaced=False,
        strategy=storage.CSI_NODE,
        columns=storage_columns.CSI_NODE_COLUMNS,
    ),
    ResourceType(
        group="storage.k8s.io",
        version="v1",
        kind="CSIStorageCapacity",
        plural="csistoragecapacities",
        singular="csistoragecapacity",
        namespaced=True,
        strategy=storage.CSI_STORAGE_CAPACITY,
        columns=storage_columns.CSI_STORAGE_CAPACITY_COLUMNS,
    ),
    ResourceType(
        group="storage.k8s.io",
        version="v1",
        kind="StorageClass",
        plural="storageclasses",
        singular="storageclass",
        namespaced=False,
        short_names=("sc",),
        strategy=storage.STORAGE_CLASS,
        columns=storage_columns.STORAGE_CLASS_COLUMNS,
    ),
    ResourceType(
        group="storage.k8s.io",
        version="v1",
        kind="VolumeAttachment",
        plural="volumeattachments",
        singular="volumeattachment",
        namespaced=False,
        subresources=("status",),
        strategy=storage.VOLUME_ATTACHMENT,
        columns=storage_columns.VOLUME_ATTACHMENT_COLUMNS,
    ),
    ResourceType(
        group="scheduling.k8s.io",
        version="v1",
        kind="PriorityClass",
        plural="priorityclasses",
        singular="priorityclass",
        namespaced=False,
        short_names=("pc",),
        strategy=PRIORITY_CLASS,
        columns=priority_class_columns.COLUMNS,
    ),
    ResourceType(
        group="coordination.k8s.io",
        version="v1",
        kind="Lease",
        plural="leases",
        singular="lease",
        namespaced=True,
        strategy=LEASE,
        columns=lease_columns.COLUMNS,
    ),
    ResourceType(
        group="resource.k8s.io",
        version="v1",
        kind="DeviceClass",
        plural="deviceclasses",
        singular="deviceclass",
        namespaced=False,
        strategy=devices.DEVICE_CLASS,
        columns=device_columns.NAME_AND_AGE,
    ),
    ResourceType(
        group="resource.k8s.io",
        version="v1",
        kind="ResourceClaim",
        plural="resourceclaims",
        singular="resourceclaim",
        namespaced=True,
        subresources=("status",),
        strategy=devices.RESOURCE_CLAIM,
        columns=device_columns.RESOURCE_CLAIM_COLUMNS,
    ),
    ResourceType(
        group="resource.k8s.io",
        version="v1",
        kind="ResourceClaimTemplate",
        plural="resourceclaimtemplates",
        singular="resourceclaimtemplate",
        namespaced=True,
        strategy=devices.RESOURCE_CLAIM_TEMPLATE,
        columns=device_columns.NAME_AND_AGE,
    ),
    ResourceType(
        group="resource.k8s.io",
        version="v1",
        kind="ResourceSlice",
        plural="resourceslices",
        singular="resourceslice",
        namespaced=False,
        strategy=devices.RESOURCE_SLICE,
        columns=device_columns.RESOURCE_SLICE_COLUMNS,
        selectable_fields=selectable_fields.RESOURCE_SLICE,
    ),
)
"""In the order of discovery, which is what an ambiguous short name goes by."""


def find(group: str, version: str, plural: str) -> ResourceType | None:
    """Return the kind with that URL; None if it is not served."""
    return _BY_PATH.get((group, version, plural))


def collected(resources: Iterable[ResourceType] = RESOURCES) -> list[ResourceType]:
    """Return the kinds that the garbage collector must know: each stored object is of one."""
    return [
        each
        for each in resources
        if each.is_stored
        and each.garbage_collected
        and not each.is_view
        and {"delete", "list", "watch"} <= set(each.verbs)
    ]


def swept(resources: Iterable[ResourceType] = RESOURCES) -> list[ResourceType]:
    """Return the kinds that a namespace is emptied of: each stored object in it is of one."""
    return [
        each
        for each in resources
        if each.is_stored
        and each.namespaced
        and not each.is_view
        and {"deletecollection", "list"} <= set(each.verbs)
    ]


_BY_PATH = {(each.group, each.version, each.plural): each for each in RESOURCES}
