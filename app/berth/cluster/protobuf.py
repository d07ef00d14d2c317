"""Kubernetes' protobuf, as far as kubectl sends it: ``kubectl create namespace`` and its siblings.

Answers are always JSON, which every client takes too. Bodies are not: kubectl's typed commands send
protobuf and do not fall back. The types of fields come from :mod:`berth.cluster.schema`; here is
only which number means which field. A field without a number here is refused, never lost in
silence.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any

from berth.clock import rfc3339
from berth.cluster import errors, schema
from berth.cluster.negotiation import JSON, YAML
from berth.cluster.resources import Object

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\0"

FIELDS: Mapping[str, Mapping[int, str]] = {
    "V1ObjectMeta": {
        1: "name",
        2: "generateName",
        3: "namespace",
        4: "selfLink",
        5: "uid",
        6: "resourceVersion",
        7: "generation",
        8: "creationTimestamp",
        11: "labels",
        12: "annotations",
        14: "finalizers",
    },
    "V1Namespace": {1: "metadata", 2: "spec", 3: "status"},
    "V1NamespaceSpec": {1: "finalizers"},
    "V1NamespaceStatus": {1: "phase"},
    "V1PriorityClass": {
        1: "metadata",
        2: "value",
        3: "globalDefault",
        4: "description",
        5: "preemptionPolicy",
    },
    "V1Service": {1: "metadata", 2: "spec", 3: "status"},
    "V1ServiceSpec": {
        1: "ports",
        2: "selector",
        3: "clusterIP",
        4: "type",
        5: "externalIPs",
        7: "sessionAffinity",
        8: "loadBalancerIP",
        9: "loadBalancerSourceRanges",
        10: "externalName",
        11: "externalTrafficPolicy",
        12: "healthCheckNodePort",
        13: "publishNotReadyAddresses",
        18: "clusterIPs",
    },
    "V1ServicePort": {
        1: "name",
        2: "protocol",
        3: "port",
        4: "targetPort",
        5: "nodePort",
        6: "appProtocol",
    },
    "V1ServiceStatus": {1: "loadBalancer"},
    "V1LoadBalancerStatus": {},
    "V1Deployment": {1: "metadata", 2: "spec", 3: "status"},
    "V1DeploymentSpec": {
        1: "replicas",
        2: "selector",
        3: "template",
        4: "strategy",
        5: "minReadySeconds",
        6: "revisionHistoryLimit",
        7: "paused",
        9: "progressDeadlineSeconds",
    },
    "V1DeploymentStrategy": {1: "type", 2: "rollingUpdate"},
    "V1RollingUpdateDeployment": {1: "maxUnavailable", 2: "maxSurge"},
    "V1DeploymentStatus": {
        1: "observedGeneration",
        2: "replicas",
        3: "updatedReplicas",
        4: "availableReplicas",
        5: "unavailableReplicas",
        7: "readyReplicas",
    },
    "V1LabelSelector": {1: "matchLabels", 2: "matchExpressions"},
    "V1LabelSelectorRequirement": {1: "key", 2: "operator", 3: "values"},
    "V1PodTemplateSpec": {1: "metadata", 2: "spec"},
    "V1PodSpec": {
        2: "containers",
        3: "restartPolicy",
        4: "terminationGracePeriodSeconds",
        6: "dnsPolicy",
        7: "nodeSelector",
        8: "serviceAccountName",
        9: "serviceAccount",
        10: "nodeName",
        11: "hostNetwork",
        12: "hostPID",
        13: "hostIPC",
        16: "hostname",
        17: "subdomain",
        19: "schedulerName",
        24: "priorityClassName",
    },
    "V1Container": {
        1: "name",
        2: "image",
        3: "command",
        4: "args",
        5: "workingDir",
        6: "ports",
        7: "env",
        8: "resources",
        13: "terminationMessagePath",
        14: "imagePullPolicy",
        16: "stdin",
        17: "stdinOnce",
        18: "tty",
        20: "terminationMessagePolicy",
    },
    "V1ContainerPort": {
        1: "name",
        2: "hostPort",
        3: "containerPort",
        4: "protocol",
        5: "hostIP",
    },
    "V1EnvVar": {1: "name", 2: "value"},
    "V1ResourceRequirements": {1: "limits", 2: "requests"},
    "V1ConfigMap": {1: "metadata", 2: "data", 3: "binaryData", 4: "immutable"},
    "V1Secret": {1: "metadata", 2: "data", 3: "type", 4: "stringData", 5: "immutable"},
    "V1ServiceAccount": {1: "metadata", 4: "automountServiceAccountToken"},
    "V1Role": {1: "metadata", 2: "rules"},
    "V1ClusterRole": {1: "metadata", 2: "rules", 3: "aggregationRule"},
    "V1AggregationRule": {1: "clusterRoleSelectors"},
    "V1PolicyRule": {
        1: "verbs",
        2: "apiGroups",
        3: "resources",
        4: "resourceNames",
        5: "nonResourceURLs",
    },
    "V1RoleBinding": {1: "metadata", 2: "subjects", 3: "roleRef"},
    "V1ClusterRoleBinding": {1: "metadata", 2: "subjects", 3: "roleRef"},
    "RbacV1Subject": {1: "kind", 2: "apiGroup", 3: "name", 4: "namespace"},
    "V1RoleRef": {1: "apiGroup", 2: "kind", 3: "name"},
    "AuthenticationV1TokenRequest": {1: "metadata", 2: "spec", 3: "status"},
    "V1TokenRequestSpec": {1: "audiences", 4: "expirationSeconds"},
    "V1TokenRequestStatus": {1: "token", 2: "expirationTimestamp"},
    "V1TokenReview": {1: "metadata", 2: "spec", 3: "status"},
    "V1TokenReviewSpec": {1: "token", 2: "audiences"},
    "V1TokenReviewStatus": {1: "authenticated", 2: "user", 3: "error", 4: "audiences"},
    "V1SelfSubjectReview": {1: "metadata", 2: "status"},
    "V1SelfSubjectReviewStatus": {1: "userInfo"},
    "V1UserInfo": {1: "username", 2: "uid", 3: "groups"},
    "V1LocalSubjectAccessReview": {1: "metadata", 2: "spec", 3: "status"},
    "V1SubjectAccessReview": {1: "metadata", 2: "spec", 3: "status"},
    "V1SubjectAccessReviewSpec": {
        1: "resourceAttributes",
        2: "nonResourceAttributes",
        3: "user",
        4: "groups",
        6: "uid",
    },
    "V1SelfSubjectAccessReview": {1: "metadata", 2: "spec", 3: "status"},
    "V1SelfSubjectAccessReviewSpec": {1: "resourceAttributes", 2: "nonResourceAttributes"},
    "V1ResourceAttributes": {
        1: "namespace",
        2: "verb",
        3: "group",
        4: "version",
        5: "resource",
        6: "subresource",
        7: "name",
    },
    "V1NonResourceAttributes": {1: "path", 2: "verb"},
    "V1SubjectAccessReviewStatus": {1: "allowed", 2: "reason", 3: "evaluationError", 4: "denied"},
    "V1SelfSubjectRulesReview": {1: "metadata", 2: "spec", 3: "status"},
    "V1SelfSubjectRulesReviewSpec": {1: "namespace"},
    "V1SubjectRulesReviewStatus": {
        1: "resourceRules",
        2: "nonResourceRules",
        3: "incomplete",
        4: "evaluationError",
    },
    "V1DeleteOptions": {
        1: "gracePeriodSeconds",
        2: "preconditions",
        3: "orphanDependents",
        4: "propagationPolicy",
        5: "dryRun",
    },
    "V1Preconditions": {1: "uid", 2: "resourceVersion"},
}
"""By model: field numbers of the API's ``generated.proto`` files."""

BYTES_FIELDS = frozenset({("V1ConfigMap", "binaryData"), ("V1Secret", "data")})
"""Maps whose values are bytes: texts in base64 when it is JSON."""

MEANT_WHEN_ZERO = frozenset(
    {
        "gracePeriodSeconds",
        "orphanDependents",
        "progressDeadlineSeconds",
        "replicas",
        "revisionHistoryLimit",
        "terminationGracePeriodSeconds",
        "value",
    }
)
"""Optional in the API's types, so written only when somebody set them; other zeros are no value."""

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class ProtobufError(Exception):
    """The body is not what it says it is, or says more than we know."""


def decode(content: bytes, model: str) -> Object:
    """Return the object in a protobuf body, as its JSON would be; 400 or 415 when it cannot be."""
    try:
        if not content.startswith(MAGIC):
            raise ProtobufError("it does not begin with the magic number")
        envelope = dict(_fields(memoryview(content)[len(MAGIC) :]))
        named = {number: _text(value) for number, value in _fields(envelope.get(1, b""))}
        body = _message(envelope.get(2, b""), model)
    except (ProtobufError, UnicodeDecodeError, IndexError, TypeError) as exc:
        raise errors.bad_request(f"the protobuf body cannot be read: {exc}") from exc
    return {"apiVersion": named.get(1, ""), "kind": named.get(2, ""), **body}


def _message(content: Any, model: str) -> Object:
    numbers, fields = FIELDS.get(model), schema.schema(model).fields
    message: Object = {}
    for number, value in _fields(content):
        name = (numbers or {}).get(number)
        if name is None:
            raise _unknown(f"field {number} of {schema.schema_name(model)}")
        field_type = fields[name].type
        match field_type:
            case schema.ListOf(item):
                message.setdefault(name, []).append(_value(value, item))
            case schema.MapOf(item):
                entry = dict(_fields(value))
                key, found = _text(entry.get(1, b"")), entry.get(2, b"")
                if (model, name) in BYTES_FIELDS:
                    found = b64encode(found)
                message.setdefault(name, {})[key] = _value(found, item)
            case _:
                found = _value(value, field_type)
                if found or found == {} or name in MEANT_WHEN_ZERO:
                    message[name] = found
    return message


def _value(value: Any, field_type: schema.Type) -> Any:
    match field_type:
        case schema.Ref(model):
            return _message(value, model)
        case schema.Scalar("string"):
            return _text(value)
        case schema.Scalar("integer"):
            return value - (1 << 64) if value >> 63 else value
        case schema.Scalar("boolean"):
            return bool(value)
        case schema.Scalar("Quantity"):
            return _text(dict(_fields(value)).get(1, b""))
        case schema.Scalar("IntOrString"):
            parts = dict(_fields(value))
            return _text(parts.get(3, b"")) if parts.get(1) else parts.get(2, 0)
        case schema.Scalar("Time"):
            seconds = dict(_fields(value)).get(1)
            return rfc3339(seconds) if seconds else None
        case _:
            raise _unknown(str(field_type))


def _unknown(what: str) -> errors.StatusError:
    found = (
        f"{what} is not read from protobuf by the embedded cluster; "
        f"the client's contentType should be {JSON}"
    )
    return errors.unsupported_media_type([JSON, YAML], found=found)


def _text(value: Any) -> str:
    return bytes(value).decode()


def _fields(content: Any) -> Iterator[tuple[int, Any]]:
    """Yield field number and raw value: an int, or bytes where there is a length."""
    view, position = memoryview(content), 0
    while position < len(view):
        tag, position = _varint(view, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == VARINT:
            value, position = _varint(view, position)
            yield number, value
            continue
        if wire_type == BYTES:
            length, position = _varint(view, position)
        elif wire_type in (FIXED64, FIXED32):
            length = 8 if wire_type == FIXED64 else 4
        else:
            raise ProtobufError(f"wire type {wire_type} is not one of ours")
        if position + length > len(view):
            raise ProtobufError("it ends in the middle of a field")
        yield number, view[position : position + length]
        position += length


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = view[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & ((1 << 64) - 1), position
        shift += 7
        if shift > 63:
            raise ProtobufError("a number does not end")
