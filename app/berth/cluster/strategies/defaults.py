"""Defaults of objects beyond those that the schema says: object type → field → value.

A field that is missing gets the value; for the empty field a function fills in what depends on
others, before what is in the object gets its own. Source: ``SetDefaults_*`` of ``pkg/apis``.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache
from typing import Any, Final, NamedTuple

from berth.cluster.resources import Object, section
from berth.cluster.schemas.types import Field, Schema, object_of, objects_in
from berth.kube.objects import pod_defaults
from berth.kube.objects.volume_defaults import default_source

ITSELF: Final = ""
RBAC: Final = "rbac.authorization.k8s.io"
CPU: Final = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}

Filling = Callable[[Object], None]


def _rolling(strategy: Object) -> None:
    if strategy["type"] == "RollingUpdate":
        section(strategy, "rollingUpdate")


def _claim_templates(spec: Object) -> None:
    for claim in spec.get("volumeClaimTemplates") or []:
        claim.update(apiVersion="v1", kind="PersistentVolumeClaim")
        section(claim, "status").setdefault("phase", "Pending")


def _event_times(event: Object) -> None:
    """Give the times that are not known as null, as API servers do.

    ``kubectl get events --sort-by=.lastTimestamp`` shows nothing where no event has that field.
    """
    for field in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(field, None)


def _namespace(namespace: Object) -> None:
    if name := section(namespace, "metadata").get("name"):
        section(namespace, "metadata", "labels")["kubernetes.io/metadata.name"] = name


def _node(node: Object) -> None:
    spec, status = section(node, "spec"), section(node, "status")
    if primary := spec.get("podCIDR"):  # of which the list is the newer form
        if (spec.get("podCIDRs") or [""])[0] != primary:
            spec["podCIDRs"] = [primary]
    elif ranges := spec.get("podCIDRs"):
        spec["podCIDR"] = ranges[0]
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _volume(volume: Object) -> None:
    spec = section(volume, "spec")
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    default_source(spec)


def _secret(secret: Object) -> None:
    """Keep what is written as plain text as bytes, like the rest."""
    if texts := secret.pop("stringData", None):
        encoded = {key: b64encode(text.encode()).decode() for key, text in texts.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}


def _limits(item: Object) -> None:
    """A container's limit is what it gets when it asks for none, and so on downwards."""
    if item.get("type") != "Container":
        return
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    if limits:
        item["default"] = limits
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    if requests:
        item["defaultRequest"] = requests


def _network_policy(spec: Object) -> None:
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _subject(subject: Object) -> None:
    if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
        subject["apiGroup"] = RBAC


def _priority_level(spec: Object) -> None:
    if spec.get("type") == "Limited":
        section(spec, "limited")


def _limit_response(response: Object) -> None:
    if response["type"] == "Queue":
        section(response, "queuing")


def _scaling(behavior: Object) -> None:
    """Where there is a behavior, say what it does not say."""
    all_at_once = {"type": "Percent", "value": 100, "periodSeconds": 15}
    some = {"type": "Pods", "value": 4, "periodSeconds": 15}
    for direction, policies in (("scaleUp", [some, all_at_once]), ("scaleDown", [all_at_once])):
        rules = section(behavior, direction)
        if not rules.get("policies"):
            rules["policies"] = [dict(policy) for policy in policies]
    behavior["scaleUp"].setdefault("stabilizationWindowSeconds", 0)


def _device_count(request: Object) -> None:
    if request["allocationMode"] == "ExactCount":
        request.setdefault("count", 1)


_WEBHOOK: Final = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}
_DEVICE_REQUEST: Final = {"allocationMode": "ExactCount", ITSELF: _device_count}

WHOLE: Final[Mapping[str, Filling]] = {"core.v1.PodSpec": pod_defaults.default_template}
"""Object types that one function fills in, with all that is in them."""

DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "admissionregistration.v1.MatchResources": {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
    },
    "admissionregistration.v1.MutatingAdmissionPolicySpec": {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
    },
    "admissionregistration.v1.MutatingWebhook": {**_WEBHOOK, "reinvocationPolicy": "Never"},
    "admissionregistration.v1.NamedRuleWithOperations": {"scope": "*"},
    "admissionregistration.v1.RuleWithOperations": {"scope": "*"},
    "admissionregistration.v1.ServiceReference": {"port": 443},
    "admissionregistration.v1.ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "admissionregistration.v1.ValidatingWebhook": _WEBHOOK,
    "apps.v1.DaemonSetSpec": {"template": {}, "updateStrategy": {}, "revisionHistoryLimit": 10},
    "apps.v1.DaemonSetUpdateStrategy": {"type": "RollingUpdate", ITSELF: _rolling},
    "apps.v1.DeploymentSpec": {
        "replicas": 1,
        "template": {},
        "strategy": {},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    },
    "apps.v1.DeploymentStrategy": {"type": "RollingUpdate", ITSELF: _rolling},
    "apps.v1.ReplicaSetSpec": {"replicas": 1, "template": {}},
    "apps.v1.RollingUpdateDaemonSet": {"maxUnavailable": 1, "maxSurge": 0},
    "apps.v1.RollingUpdateDeployment": {"maxUnavailable": "25%", "maxSurge": "25%"},
    "apps.v1.RollingUpdateStatefulSetStrategy": {"partition": 0},
    "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy": {
        "whenDeleted": "Retain",
        "whenScaled": "Retain",
    },
    "apps.v1.StatefulSetSpec": {
        "replicas": 1,
        "template": {},
        "podManagementPolicy": "OrderedReady",
        "revisionHistoryLimit": 10,
        "updateStrategy": {},
        "persistentVolumeClaimRetentionPolicy": {},
        ITSELF: _claim_templates,
    },
    "apps.v1.StatefulSetUpdateStrategy": {"type": "RollingUpdate", ITSELF: _rolling},
    "autoscaling.v1.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "autoscaling.v2.HPAScalingRules": {"selectPolicy": "Max"},
    "autoscaling.v2.HorizontalPodAutoscalerBehavior": {ITSELF: _scaling},
    "autoscaling.v2.HorizontalPodAutoscalerSpec": {"minReplicas": 1, "metrics": [CPU]},
    "batch.v1.CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {},
    },
    "batch.v1.JobSpec": {"template": {}},
    "batch.v1.JobTemplateSpec": {"metadata": {}, "spec": {}},
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "core.v1.EndpointPort": {"protocol": "TCP"},
    "core.v1.Event": {ITSELF: _event_times},
    "core.v1.LimitRangeItem": {ITSELF: _limits},
    "core.v1.Namespace": {ITSELF: _namespace},
    "core.v1.Node": {ITSELF: _node},
    "core.v1.PersistentVolume": {ITSELF: _volume},
    "core.v1.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "core.v1.PodTemplate": {"template": {}},
    "core.v1.PodTemplateSpec": {"metadata": {}, "spec": {}},
    "core.v1.ReplicationControllerSpec": {"replicas": 1},
    "core.v1.Secret": {"type": "Opaque", ITSELF: _secret},
    "discovery.v1.Endpoint": {"conditions": {}},
    "discovery.v1.EndpointPort": {"name": "", "protocol": "TCP"},
    "flowcontrol.v1.FlowSchemaSpec": {"matchingPrecedence": 1000},
    "flowcontrol.v1.LimitResponse": {"type": "Reject", ITSELF: _limit_response},
    "flowcontrol.v1.LimitedPriorityLevelConfiguration": {
        "nominalConcurrencyShares": 30,
        "lendablePercent": 0,
        "limitResponse": {},
    },
    "flowcontrol.v1.PriorityLevelConfigurationSpec": {ITSELF: _priority_level},
    "flowcontrol.v1.QueuingConfiguration": {"queues": 64, "handSize": 8, "queueLengthLimit": 50},
    "networking.v1.IngressClassParametersReference": {"scope": "Cluster"},
    "networking.v1.NetworkPolicyPort": {"protocol": "TCP"},
    "networking.v1.NetworkPolicySpec": {ITSELF: _network_policy},
    "rbac.v1.ClusterRoleBinding": {"roleRef": {}},
    "rbac.v1.RoleBinding": {"roleRef": {}},
    "rbac.v1.RoleRef": {"apiGroup": RBAC},
    "rbac.v1.Subject": {ITSELF: _subject},
    "resource.v1.DeviceSubRequest": _DEVICE_REQUEST,
    "resource.v1.ExactDeviceRequest": _DEVICE_REQUEST,
    "scheduling.v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority", "value": 0},
    "storage.v1.CSIDriverSpec": {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "requiresRepublish": False,
        "seLinuxMount": False,
        "volumeLifecycleModes": ["Persistent"],
    },
    "storage.v1.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
}


class _Plan(NamedTuple):
    """What is to be done with objects of a type."""

    values: tuple[tuple[str, Any, bool], ...]
    """Field, what it gets, and whether an empty value is as good as none."""
    fill: Filling | None
    below: tuple[tuple[str, Field], ...]
    """Fields that lead to others with defaults."""


def fill_defaults(schema: Schema, obj: Object) -> None:
    """Give the missing fields of *obj*, and of what is in it, their defaults."""
    values, fill, below = _plan(schema)
    for name, value, replaces_empty in values:
        if (given := obj.get(name)) is None or (replaces_empty and not given):
            obj[name] = deepcopy(value) if isinstance(value, dict | list) else value
    if fill is not None:
        fill(obj)
    for name, field in below:
        if (given := obj.get(name)) is not None:
            for inner, child, _ in objects_in(field.type, given):
                fill_defaults(inner, child)


@cache
def _plan(schema: Schema) -> _Plan:
    name = schema.name.removeprefix("io.k8s.api.")
    if name in WHOLE:
        return _Plan((), WHOLE[name], ())
    own = DEFAULTS.get(name, {})
    fields = schema.fields
    said = {field: each.default for field, each in fields.items() if each.default is not None}
    values = {**said, **{field: value for field, value in own.items() if field}}
    return _Plan(
        tuple((field, value, fields[field].by_value) for field, value in values.items()),
        own.get(ITSELF),
        tuple(
            (field, each)
            for field, each in fields.items()
            if _leads_to_defaults(object_of(each.type), {schema})
        ),
    )


def _leads_to_defaults(schema: Schema | None, seen: set[Schema]) -> bool:
    if schema is None or schema in seen:
        return False
    seen.add(schema)
    name = schema.name.removeprefix("io.k8s.api.")
    return (
        name in DEFAULTS
        or name in WHOLE
        or any(
            field.default is not None or _leads_to_defaults(object_of(field.type), seen)
            for field in schema.fields.values()
        )
    )
