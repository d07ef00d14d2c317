"""The kinds that a server has from the start: data, and how those that behave do it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Final

import msgspec

from berth.cluster import selectable_fields
from berth.cluster.columns import inert as inert_cells
from berth.cluster.columns import pod as pod_cells
from berth.cluster.columns import storage as storage_cells
from berth.cluster.columns import workloads as workload_cells
from berth.cluster.columns.cells import COMMON, Cell, Cells
from berth.cluster.columns.kinds import (
    BINDING_CELLS,
    CONFIG_MAP_CELLS,
    EVENT_CELLS,
    LEASE_CELLS,
    NAMESPACE_CELLS,
    NETWORK_POLICY_CELLS,
    NODE_CELLS,
    POD_DISRUPTION_BUDGET_CELLS,
    PRIORITY_CLASS_CELLS,
    RESOURCE_CLAIM_CELLS,
    RESOURCE_SLICE_CELLS,
    SECRET_CELLS,
    SERVICE_CELLS,
)
from berth.cluster.custom.definition import CUSTOM_RESOURCE_DEFINITION
from berth.cluster.data import read
from berth.cluster.events_view import core_cell, core_strategy, from_core, to_core
from berth.cluster.kinds import preparing
from berth.cluster.kinds.resource_metrics import MEASURED
from berth.cluster.kinds.write_warnings import WARNINGS
from berth.cluster.pods.columns import PodDigest
from berth.cluster.resources import Column, Object, ResourceType, Strategy, Subresource
from berth.cluster.schemas import builtin
from berth.cluster.schemas.builtin import KindData
from berth.cluster.strategies import (
    autoscaling,
    certificates,
    core,
    devices,
    job,
    metadata,
    policies,
    quotas,
    rbac,
    resource_slices,
    service,
    syntax,
    webhooks,
    workloads,
)
from berth.cluster.strategies.by_schema import of_schema
from berth.cluster.strategies.pod import pod
from berth.runtime import release as releases
from berth.runtime.release import RELEASE, EffectiveVersion

SERVED_SUBRESOURCES: Final = frozenset(
    {
        "approval", "attach", "binding", "ephemeralcontainers", "eviction", "exec", "finalize",
        "log", "portforward", "proxy", "resize", "scale", "status", "token",
    }
)  # fmt: skip
"""Of those that a real server has; the others are not built yet."""

GROUPS: Final = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "storagemigration.k8s.io",
    "metrics.k8s.io",
)
"""In the order of a real server's discovery, which is what an ambiguous short name goes by."""


SLICES_BY_POOL: Final = releases.Behaviour(
    "1.37", "N3.17", "ResourceSlices can be listed and watched by the name of their pool."
)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What is particular about a kind, beyond its data."""

    strategy: Callable[[str], Strategy] | None = None
    """Of a release; None: the schema says all, but for :attr:`rules`."""
    cells: Cells = field(default_factory=dict)
    selectable_fields: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the :class:`ResourceType`."""
    rules: Mapping[str, Any] = field(default_factory=dict)
    """What :func:`of_schema` is told beyond the schema."""
    more_selectable_fields: Mapping[releases.Behaviour, Mapping[str, Callable[[Object], str]]] = (
        field(default_factory=dict)
    )
    """Those that only some releases have."""


def ruled(cells: Cells | None = None, /, **rules: Any) -> Behaviour:
    """Return the behaviour of a kind with few rules; its cells may be in :mod:`.columns.inert`."""
    return Behaviour(cells=cells or {}, rules=rules)


def _v1_autoscaler_cells() -> Cells:
    return {name: _seen_as_v2(cell) for name, cell in workload_cells.AUTOSCALER_CELLS.items()}


def _seen_as_v2(cell: Cell) -> Cell:
    return lambda obj: cell(autoscaling.to_v2(obj))


def _event(release: str) -> Strategy:
    schema = builtin.schema("io.k8s.api.core.v1.Event", release)
    return of_schema(schema, namespaced=True, name=syntax.path_segment, plain=True)


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "v1/componentstatuses": Behaviour(
        more={"deprecation": "v1 ComponentStatus is deprecated in v1.19+"}
    ),
    "v1/configmaps": ruled(CONFIG_MAP_CELLS, check_update=core.check_config_update),
    "v1/events": Behaviour(
        _event, EVENT_CELLS, selectable_fields.EVENT, {"garbage_collected": False}
    ),
    "v1/namespaces": Behaviour(
        cells=NAMESPACE_CELLS,
        selectable_fields=selectable_fields.NAMESPACE,
        rules={
            "name": syntax.dns1123_label,
            "prepare": core.prepare_namespace,
            "status": {"phase": "Active"},
            "deleting": core.deleting_namespace,
        },
    ),
    "v1/nodes": Behaviour(
        cells=NODE_CELLS,
        selectable_fields=selectable_fields.NODE,
        rules={
            "prepare": preparing.node,
            "check_update": core.check_node_update,
            "blamed": {"spec.taints": "metadata.taints"},
            "keeps_status_on_create": True,
            "status": False,
        },
    ),
    "v1/persistentvolumes": ruled(
        storage_cells.PERSISTENT_VOLUME_CELLS,
        check_update=core.check_volume_update,
        status=core.pending_volume,
    ),
    "v1/persistentvolumeclaims": ruled(
        storage_cells.PERSISTENT_VOLUME_CLAIM_CELLS,
        prepare=preparing.persistent_volume_claim,
        check_update=core.check_claim_update,
        status={"phase": "Pending"},
    ),
    "v1/pods": Behaviour(
        pod,
        pod_cells.CELLS,
        selectable_fields.POD,
        {"digest": PodDigest},
    ),
    "v1/serviceaccounts": ruled(prepare=preparing.service_account),
    "v1/replicationcontrollers": Behaviour(
        cells=workload_cells.REPLICATION_CONTROLLER_CELLS,
        selectable_fields=selectable_fields.REPLICATION_CONTROLLER,
        more={"selects_by_map": True, "default_propagation": "Orphan"},
        rules={
            "default": workloads.default_replication_controller,
            "generation": True,
            "status": {"replicas": 0},
        },
    ),
    "v1/secrets": Behaviour(
        cells=SECRET_CELLS,
        selectable_fields=selectable_fields.SECRET,
        rules={"immutable": ("type",), "check_update": core.check_config_update},
    ),
    "v1/services": Behaviour(
        cells=SERVICE_CELLS,
        selectable_fields=selectable_fields.SERVICE,
        rules={
            "name": syntax.dns1035_label,
            "default": service.default,
            "prepare": service.prepare,
            "check_update": service.check_update,
            "check_status": service.check_status,
            "before_others": ("spec.clusterIP", "spec.ipFamil"),
            "status": {"loadBalancer": {}},
        },
    ),
    "apps/v1/daemonsets": ruled(
        workload_cells.DAEMON_SET_CELLS,
        default=workloads.default_daemon_set,
        prepare=workloads.prepare_daemon_set,
        immutable=("spec.selector",),
        immutable_first=True,
        generation=True,
        status=dict.fromkeys(workloads.DAEMON_SET_COUNTS, 0),
    ),
    "apps/v1/deployments": ruled(
        workload_cells.DEPLOYMENT_CELLS,
        immutable=("spec.selector",),
        generation=workloads.deployment_wanted,
    ),
    "apps/v1/replicasets": ruled(
        workload_cells.REPLICA_SET_CELLS,
        immutable=("spec.selector",),
        generation=True,
        status={"replicas": 0},
    ),
    "apps/v1/statefulsets": ruled(
        workload_cells.STATEFUL_SET_CELLS,
        check_create=workloads.check_stateful_set_create,
        check_update=workloads.check_stateful_set_update,
        generation=True,
        status={"replicas": 0},
    ),
    "events.k8s.io/v1/events": Behaviour(
        lambda release: core_strategy(_event(release)),
        {name: core_cell(cell) for name, cell in {**COMMON, **EVENT_CELLS}.items()},
        selectable_fields.EVENTS_K8S_IO_EVENT,
        {
            "garbage_collected": False,
            "storage": "events",
            "storage_version": "v1",
            "to_storage": to_core,
            "from_storage": from_core,
        },
    ),
    "networking.k8s.io/v1/networkpolicies": ruled(
        NETWORK_POLICY_CELLS,
        generation=True,
    ),
    "policy/v1/poddisruptionbudgets": ruled(
        POD_DISRUPTION_BUDGET_CELLS,
        status=dict.fromkeys(
            ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"), 0
        ),
        generation=True,
        name=syntax.path_segment,
        plain=True,
    ),
    "rbac.authorization.k8s.io/v1/clusterroles": ruled(name=syntax.path_segment),
    "rbac.authorization.k8s.io/v1/clusterrolebindings": ruled(
        BINDING_CELLS, name=syntax.path_segment, check_update=rbac.check_role_ref
    ),
    "rbac.authorization.k8s.io/v1/roles": ruled(name=syntax.path_segment),
    "rbac.authorization.k8s.io/v1/rolebindings": ruled(
        BINDING_CELLS, name=syntax.path_segment, check_update=rbac.check_role_ref
    ),
    "storage.k8s.io/v1/csidrivers": ruled(
        storage_cells.CSI_DRIVER_CELLS,
        check_update=core.check_driver_update,
    ),
    "storage.k8s.io/v1/csinodes": ruled(storage_cells.CSI_NODE_CELLS),
    "storage.k8s.io/v1/csistoragecapacities": ruled(storage_cells.CSI_STORAGE_CAPACITY_CELLS),
    "storage.k8s.io/v1/storageclasses": ruled(
        storage_cells.STORAGE_CLASS_CELLS,
        # Recorded of the provisioner alone; the others are taken to be told in the same words.
        immutable=("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
    ),
    "storage.k8s.io/v1/volumeattachments": ruled(
        storage_cells.VOLUME_ATTACHMENT_CELLS,
        immutable=("spec",),
        status={"attached": False},
    ),
    "scheduling.k8s.io/v1/priorityclasses": ruled(
        PRIORITY_CLASS_CELLS,
        prepare=core.new_generation,
        created_only=True,
        check_update=core.check_priority_class_update,
    ),
    "coordination.k8s.io/v1/leases": ruled(LEASE_CELLS, prepare=core.prepare_lease),
    "resource.k8s.io/v1/deviceclasses": Behaviour(partial(devices.device_class, ())),
    "resource.k8s.io/v1/resourceclaims": Behaviour(
        partial(devices.resource_claim, ()), RESOURCE_CLAIM_CELLS
    ),
    "resource.k8s.io/v1/resourceclaimtemplates": Behaviour(
        partial(devices.resource_claim_template, ())
    ),
    "resource.k8s.io/v1/resourceslices": Behaviour(
        partial(resource_slices.resource_slice, ()),
        RESOURCE_SLICE_CELLS,
        selectable_fields.RESOURCE_SLICE,
        more_selectable_fields={SLICES_BY_POOL: selectable_fields.POOL_OF_SLICE},
    ),
    "resource.k8s.io/v1/devicetaintrules": ruled(generation=True),
    "admissionregistration.k8s.io/v1/mutatingadmissionpolicies": ruled(
        check=policies.check_mutating_policy,
        generation=True,
    ),
    "admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings": ruled(
        check=policies.check_mutating_binding, generation=True
    ),
    "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations": ruled(
        check=webhooks.check, generation=True
    ),
    "admissionregistration.k8s.io/v1/validatingadmissionpolicies": ruled(
        check=policies.check_policy, generation=True
    ),
    "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings": ruled(
        check=policies.check_binding, generation=True
    ),
    "admissionregistration.k8s.io/v1/validatingwebhookconfigurations": ruled(
        check=webhooks.check, generation=True
    ),
    "apiextensions.k8s.io/v1/customresourcedefinitions": Behaviour(
        lambda _release: CUSTOM_RESOURCE_DEFINITION
    ),
    "autoscaling/v1/horizontalpodautoscalers": Behaviour(
        cells=_v1_autoscaler_cells(),
        more={
            "storage_version": "autoscaling/v2",
            "to_storage": autoscaling.to_v2,
            "from_storage": autoscaling.from_v2,
        },
        rules={
            "default": autoscaling.default_v1,
            "check": autoscaling.check_v1,
        },
    ),
    "autoscaling/v2/horizontalpodautoscalers": ruled(workload_cells.AUTOSCALER_CELLS),
    "batch/v1/cronjobs": ruled(
        workload_cells.CRON_JOB_CELLS,
        check_create=workloads.check_cron_job_create,
        generation=True,
    ),
    "batch/v1/jobs": Behaviour(
        job.job,
        cells=workload_cells.JOB_CELLS,
        selectable_fields=selectable_fields.JOB,
        more={
            "default_propagation": "Orphan",
            "deletion_warning": "child pods are preserved by default when jobs are deleted; set "
            "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to "
            "suppress this warning",
        },
    ),
    "apps/v1/controllerrevisions": Behaviour(
        rules={"immutable": ("data",)}, more={"written_field": "data"}
    ),
    "node.k8s.io/v1/runtimeclasses": ruled(immutable=("handler",)),
    "certificates.k8s.io/v1/podcertificaterequests": ruled(immutable=("spec",), generation=True),
    "storagemigration.k8s.io/v1/storageversionmigrations": ruled(
        immutable=("spec",), generation=True
    ),
    "certificates.k8s.io/v1/certificatesigningrequests": Behaviour(
        selectable_fields=selectable_fields.CERTIFICATE_SIGNING_REQUEST,
        rules={"prepare": certificates.prepare, "check_status": certificates.check_status},
    ),
    "discovery.k8s.io/v1/endpointslices": ruled(
        prepare=preparing.endpoint_slice,
        immutable=("addressType",),
    ),
    "flowcontrol.apiserver.k8s.io/v1/flowschemas": ruled(generation=True),
    "flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations": ruled(generation=True),
    "networking.k8s.io/v1/ingressclasses": ruled(
        generation=True,
        immutable=("spec.controller",),
        immutable_first=True,
    ),
    "networking.k8s.io/v1/ingresses": ruled(generation=True),
    "networking.k8s.io/v1/ipaddresses": ruled(name=syntax.path_segment),
    "v1/endpoints": Behaviour(
        more={
            "deprecation": "v1 Endpoints is deprecated in v1.33+; "
            "use discovery.k8s.io/v1 EndpointSlice"
        },
    ),
    "v1/resourcequotas": ruled(check_update=quotas.check_scopes_kept),
    "v1/podtemplates": ruled(generation=True),
}
"""By group, version and plural. Of kinds that are not here the schema says all."""


VERSIONED_ANNOTATIONS: Final = {"apps/v1/daemonsets": ("deprecated.daemonset.template.generation",)}
"""Annotations that are fields of Kubernetes' own type of a kind."""


def _by_precedence(flow_schema: Object) -> tuple[int, str]:
    """Return what flow schemas are asked in the order of."""
    return flow_schema["spec"].get("matchingPrecedence") or 0, flow_schema["metadata"]["name"]


ROW_ORDERS: Final = {"flowcontrol.apiserver.k8s.io/v1/flowschemas": _by_precedence}
"""What the rows of a kind's tables are sorted by."""


class _Traits(msgspec.Struct, frozen=True):
    """``traits.json``: kinds by what Kubernetes' strategies and registries of them have."""

    created_by_put: frozenset[str]
    """``AllowCreateOnUpdate``."""
    needs_version: frozenset[str]
    """No ``AllowUnconditionalUpdate``, as those of custom resources."""
    returned_when_gone: frozenset[str]
    """``ReturnDeletedObject``."""
    metadata_rule: dict[str, frozenset[str]]
    """Of others than those that evaluate the update of metadata alone."""


TRAITS: Final = read("berth.cluster.kinds", "traits.json", _Traits)
_METADATA_RULES: Final = {
    path: rule for rule, paths in TRAITS.metadata_rule.items() for path in paths
}


def _resource(data: KindData, version: EffectiveVersion) -> ResourceType:
    group_version = f"{data.group}/{data.version}" if data.group else data.version
    path = f"{group_version}/{data.plural}"
    behaviour = BEHAVIOURS.get(path, Behaviour())
    rule = _METADATA_RULES.get(path, "update")
    schema = builtin.schema_of(data.group, data.version, data.kind, version.emulation)
    if schema is None:
        raise LookupError(f"{group_version} {data.kind} has no schema")
    subresources = {
        subresource.name: Subresource(*subresource)
        for subresource in data.subresources
        if subresource.name in SERVED_SUBRESOURCES
    }
    if behaviour.strategy is not None:
        strategy = behaviour.strategy(version.emulation)
    else:
        rules = {
            "status": "status" in subresources,
            "plain": data.group in metadata.PLAIN_GROUPS,
            "whole_first": rule == "whole, then update",
            **behaviour.rules,
        }
        strategy = of_schema(schema, namespaced=data.namespaced, **rules)
    selectable = dict(behaviour.selectable_fields)
    for difference, fields in behaviour.more_selectable_fields.items():
        if version.has(difference):
            selectable |= fields
    cells = {**COMMON, **inert_cells.CELLS.get(data.plural, {}), **behaviour.cells}
    return ResourceType(
        group=data.group,
        version=data.version,
        kind=data.kind,
        plural=data.plural,
        singular=data.singular,
        namespaced=data.namespaced,
        schema=schema,
        short_names=data.short_names,
        categories=data.categories,
        verbs=data.verbs,
        subresources=subresources,
        strategy=strategy,
        created_by_put=path in TRAITS.created_by_put,
        needs_version=path in TRAITS.needs_version,
        returned_when_gone=path in TRAITS.returned_when_gone,
        metadata_rule=rule,
        warnings=WARNINGS.get(path),
        versioned_annotations=VERSIONED_ANNOTATIONS.get(path, ()),
        row_order=ROW_ORDERS.get(path),
        columns=tuple(
            Column(name, type_, cells[name], format_, priority, description)
            for name, type_, format_, priority, description in data.columns
        ),
        selectable_fields=selectable,
        **behaviour.more,
    )


def _order(data: KindData) -> tuple[int, int, str]:
    """The newest version of a group comes first: it is the preferred one."""
    return GROUPS.index(data.group), -int(data.version.removeprefix("v")), data.plural


@cache
def resources(release: str) -> tuple[ResourceType, ...]:
    """Return the kinds that a server of *release* serves by default, in the order of discovery."""
    version = EffectiveVersion.of(release)
    known = sorted(builtin.kinds(release), key=_order)
    return (*(_resource(kind, version) for kind in known), *MEASURED)


RESOURCES: Final = resources(RELEASE)
"""Those of the latest release."""

STORED: Final = tuple(each for each in RESOURCES if each.is_stored)
"""Without those that are questions only."""

_BY_KEY = {(each.group, each.version, each.plural): each for each in RESOURCES}


def find(group: str, version: str, plural: str) -> ResourceType:
    """Return one of these kinds; KeyError when there is none.

    Its names and URL are the same in all releases that have it.
    """
    return _BY_KEY[group, version, plural]
