"""The constraints of kinds that have no code of their own for them: object type → field → rules.

Sentences and order are those that a real API server was recorded to answer with; those of
namespaces, users, TLS hosts and resource rules, which no recording shows, follow them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from berth.cluster.resources import Object
from berth.cluster.schemas import builtin
from berth.cluster.strategies import metadata, syntax
from berth.cluster.strategies.autoscaling_validation import AUTOSCALING_TABLE
from berth.cluster.strategies.certificates import CERTIFICATE_TABLE
from berth.cluster.strategies.constraints import (
    ITSELF,
    Constraints,
    If,
    Owners,
    Plain,
    Table,
    Within,
    above,
    all_or_some,
    among,
    amount,
    anything,
    at_least,
    at_most,
    at_most_all,
    between,
    counted,
    distinct,
    domain_path,
    empty,
    enumerated,
    first_of,
    ip,
    is_ip,
    keys,
    known,
    named,
    of_each,
    one_of,
    port,
    present,
    required,
    said,
    selector,
    shown,
    spelled,
    text,
)
from berth.cluster.strategies.device_constraints import DEVICE_TABLE
from berth.cluster.strategies.pod_constraints import (
    POD_TABLE,
    PREEMPTION_POLICIES,
    distinct_taints,
    labels,
)
from berth.cluster.strategies.pod_groups import HIGHEST_USER_PRIORITY, POD_GROUP_TABLE
from berth.cluster.strategies.pod_groups_beta import GROUP_TABLE
from berth.cluster.strategies.quantities import (
    amounts,
    container_resources,
    parse_or_none,
    validate_quantity,
)
from berth.cluster.strategies.quotas import QUOTA_TABLE
from berth.cluster.strategies.rbac import RBAC_TABLE
from berth.cluster.strategies.service_constraints import SERVICE_TABLE
from berth.cluster.strategies.workload_constraints import WORKLOAD_TABLE
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.pod_defaults import SYSTEM_PRIORITIES
from berth.kube.objects.quantity import parse

VERBS: Final = (
    "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch",
)  # fmt: skip
ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_SOURCES: Final = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd",
    "quobyte", "cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume",
    "photonPersistentDisk", "portworxVolume", "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip
"""Of volumes, in the order in which upstream looks for them."""
SUBJECTS: Final = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
UNCLEAN_PATHS: Final = ("//", "/./", "/../", "%2f", "%2F")

CONFIG_LIMIT: Final = 1024 * 1024
"""Bytes of all values of a ConfigMap or Secret together."""
NOTE_LIMIT: Final = 1024
"""Bytes of ``note`` (core: ``message``) that events.k8s.io takes."""
SYSTEM_CLASSES: Final = {
    "system-cluster-critical": (
        SYSTEM_PRIORITIES["system-cluster-critical"],
        "Used for system critical pods that must run in the cluster, but can be moved to another "
        "node if necessary.",
    ),
    "system-node-critical": (
        SYSTEM_PRIORITIES["system-node-critical"],
        "Used for system critical pods that must not be moved from their current node.",
    ),
}
"""Value and description of the classes that exist from the start."""
SECRETS: Final[Mapping[str, tuple[str, ...]]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
"""What secrets of these types must have."""

Errors = Iterator[FieldError]


# Of core.


def _config_map(config_map: Object, path: str) -> Errors:
    data, binary = config_map.get("data") or {}, config_map.get("binaryData") or {}
    for key in data:
        if key in binary:
            detail = "duplicate of key present in binaryData"
            yield field_errors.invalid(f"data[{key}]", key, detail)
    if sum(len(value.encode()) for value in data.values()) + _size(binary) > CONFIG_LIMIT:
        yield field_errors.too_long("", CONFIG_LIMIT)


def _secret(secret: Object, _path: str) -> Errors:
    data, kind = secret.get("data") or {}, secret.get("type")
    if _size(data) > CONFIG_LIMIT:
        yield field_errors.too_long("data", CONFIG_LIMIT)
    for key in SECRETS.get(kind or "", ()):
        if not data.get(key) if kind == "kubernetes.io/ssh-auth" else key not in data:
            yield field_errors.required(f"data[{key}]")
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        yield field_errors.required("data[username]")
        yield field_errors.required("data[password]")
    name = "kubernetes.io/service-account.name"
    annotations = (secret.get("metadata") or {}).get("annotations") or {}
    if kind == "kubernetes.io/service-account-token" and not annotations.get(name):
        yield field_errors.required(f"metadata.annotations[{name}]")


def _size(data: Mapping[str, str]) -> int:
    """Return how many bytes base64 texts stand for."""
    return sum(len(text) * 3 // 4 - text[-2:].count("=") for text in data.values())


def _event(event: Object, _path: str) -> Errors:
    """Evaluate an event; one with the time of the newer API has its fields, too."""
    regarding = (event.get("involvedObject") or {}).get("namespace") or ""
    # Events of cluster-scoped objects live in namespace default.
    if (event.get("metadata") or {}).get("namespace", "") != (regarding or "default"):
        detail = "does not match event.namespace"
        yield field_errors.invalid("involvedObject.namespace", regarding, detail)
    if not event.get("eventTime"):
        return
    for name, field in (
        ("reportingController", "reportingComponent"),
        ("reportingInstance", "reportingInstance"),
        ("action", "action"),
        ("reason", "reason"),
    ):
        yield from required()(event.get(field), name)
    if len((event.get("message") or "").encode()) > NOTE_LIMIT:
        yield field_errors.invalid("note", "", f"can have at most {NOTE_LIMIT} bytes")
    if event.get("type") not in ("Normal", "Warning"):
        yield field_errors.invalid("type", event.get("type") or "", "has invalid value")


def _namespace_phase(phase: str | None, _path: str, owners: Owners) -> Errors:
    is_deleted = bool((owners[0].get("metadata") or {}).get("deletionTimestamp"))
    wanted = "Terminating" if is_deleted else "Active"
    if phase != wanted:
        detail = f"may only be '{wanted}' if `deletionTimestamp` is {'not ' * is_deleted}empty"
        yield field_errors.invalid("status.Phase", phase, detail)


def _finalizers(finalizers: list[str] | None, path: str) -> Errors:
    for each in finalizers or ():
        yield from metadata.finalizer(path, each)


def _priority(value: int | None, path: str, owners: Owners) -> Errors:
    name = (owners[0].get("metadata") or {}).get("name") or ""
    if name.startswith("system-"):
        if SYSTEM_CLASSES.get(name, (None, ""))[0] != (value or 0):
            detail = (
                "priority class names with 'system-' prefix are reserved for system use only. "
                f"error: {name} is not a known system priority class"
            )
            yield field_errors.forbidden("metadata.name", detail)
    elif (value or 0) > HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        yield field_errors.forbidden(path, detail)


def _image_names(pod: Object, _path: str) -> Errors:
    spec = pod.get("spec") or {}
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            image = container.get("image") or ""
            if image != image.strip():
                detail = "must not have leading or trailing whitespace"
                yield field_errors.invalid(f"spec.{field}[{index}].image", image, detail)


def _conditions(conditions: list[Object] | None, path: str) -> Errors:
    """Evaluate the conditions of a pod or node: each says which it is, and no two the same."""
    for index, condition in enumerate(conditions or ()):
        yield from required()(condition.get("type"), f"{path}[{index}].type")
    yield from distinct("type")([each for each in conditions or () if each.get("type")], path)


def _condition(condition: Object, path: str) -> Errors:
    """Evaluate a ``metav1.Condition``, of the kinds whose validation does."""
    yield from spelled(syntax.qualified_name)(condition.get("type"), f"{path}.type")
    yield from known("False", "True", "Unknown")(condition.get("status"), f"{path}.status")
    yield from required()(condition.get("lastTransitionTime"), f"{path}.lastTransitionTime")
    yield from named(syntax.condition_reason)(condition.get("reason"), f"{path}.reason")


def _budget(spec: Object, path: str) -> Errors:
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        value = shown(builtin.schema("io.k8s.api.policy.v1.PodDisruptionBudgetSpec"), spec)
        detail = "minAvailable and maxUnavailable cannot be both set"
        yield field_errors.invalid(path, value, detail)


# Of other groups.


def _access_modes(modes: list[str] | None, path: str) -> Errors:
    yield from _modes(*ACCESS_MODES)(modes, path)
    if "ReadWriteOncePod" in (modes or ()) and len(modes or ()) > 1:
        detail = "may not use ReadWriteOncePod with other access modes"
        yield field_errors.forbidden(path, detail)


def _capacity(capacity: Object | None, path: str) -> Errors:
    if path.endswith("inlineVolumeSpec.capacity"):  # of an attachment, which needs none
        return
    yield from required()(capacity, path)
    if not capacity or list(capacity) != ["storage"]:
        yield field_errors.not_supported(path, capacity, ("storage",))
    for name, quantity in (capacity or {}).items():
        if parse(quantity) <= 0:
            why = "must be greater than zero"
            yield field_errors.invalid(f"{path}[{name}]", quantity, why)


def _one_source(spec: Object, path: str) -> Errors:
    sources = [name for name in VOLUME_SOURCES if spec.get(name) is not None]
    for name in sources[1:]:
        yield field_errors.forbidden(f"{path}.{name}", "may not specify more than 1 volume type")
    if not sources:
        yield field_errors.required(path, "must specify a volume type")


def _asks_for_storage(spec: Object, path: str) -> Errors:
    requests = (spec.get("resources") or {}).get("requests") or {}
    amount, here = requests.get("storage"), f"{path}.resources[storage]"
    if amount is None:
        yield field_errors.required(here)
    elif (parse_or_none(amount) or 0) <= 0:
        yield field_errors.invalid(here, amount, "must be greater than zero")


def _flow_distinguisher(method: Object, path: str) -> Errors:
    kind, supported = method.get("type") or "", ("ByNamespace", "ByUser")
    if kind not in supported:  # upstream shows the whole object, as Go calls its fields
        yield field_errors.not_supported(f"{path}.type", {"Type": kind}, supported)


def _flow_rule(rule: Object, path: str) -> Errors:
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        detail = "at least one of resourceRules and nonResourceRules has to be non-empty"
        yield field_errors.required(path, detail)


def _flow_subject(subject: Object, path: str) -> Errors:
    kind = subject.get("kind") or ""
    if kind not in SUBJECTS:
        yield field_errors.not_supported(f"{path}.kind", kind, SUBJECTS)
        return
    field = SUBJECTS[kind]
    if subject.get(field) is None:
        detail = f"{field} is required when subject kind is '{kind}'"
        yield field_errors.required(f"{path}.{field}", detail)
    for other, its_field in SUBJECTS.items():
        if other != kind and subject.get(its_field) is not None:
            detail = f"{its_field} is forbidden when subject kind is not '{other}'"
            yield field_errors.forbidden(f"{path}.{its_field}", detail)


def _flow_namespaces(rule: Object, path: str) -> Errors:
    if not rule.get("namespaces") and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        yield field_errors.required(f"{path}.namespaces", detail)


def _url_path(url: str, path: str) -> Errors:
    if url == "*":
        return
    if not url.startswith("/"):
        yield field_errors.invalid(path, url, "must start with slash")
    elif " " in url:
        yield field_errors.invalid(path, url, "must not contain white-space")
    elif "//" in url:
        yield field_errors.invalid(path, url, "must not contain double slash")
    elif "*" in url and (url.count("*") > 1 or not url.endswith("/*")):
        detail = "wildcard can only do suffix matching, and must be after the last slash"
        yield field_errors.invalid(path, url, detail)


def _namespace(name: str, path: str) -> Errors:
    if name != "*":
        yield from said(syntax.dns1123_label)(name, path)


def _endpoint_subset(subset: Object, path: str) -> Errors:
    if not subset.get("addresses") and not subset.get("notReadyAddresses"):
        yield field_errors.required(path, "must specify `addresses` or `notReadyAddresses`")
    ports = subset.get("ports") or ()
    for index, each in enumerate(ports if len(ports) > 1 else ()):
        if not each.get("name"):
            yield field_errors.required(f"{path}.ports[{index}].name")


def _endpoint_ip(address: Object, path: str) -> Errors:
    if not is_ip(value := address.get("ip") or ""):
        yield field_errors.invalid(f"{path}.ip", value, "must be a valid IP address")


def _slice_addresses(endpoint_slice: Object, _path: str) -> Errors:
    rule = text(syntax.dns1123_subdomain) if endpoint_slice.get("addressType") == "FQDN" else ip
    for index, endpoint in enumerate(endpoint_slice.get("endpoints") or ()):
        path = f"endpoints[{index}].addresses"
        yield from required("must contain at least 1 address")(endpoint.get("addresses"), path)
        if endpoint_slice.get("addressType") in ("FQDN", "IPv4", "IPv6"):
            yield from of_each(rule)(endpoint.get("addresses"), path)


def _ingress_spec(spec: Object, path: str) -> Errors:
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        detail = "either `defaultBackend` or `rules` must be specified"
        yield field_errors.invalid(path, spec.get("rules"), detail)


def _dns_host(host: str | None, path: str) -> Errors:
    if not host:
        return
    if is_ip(host):
        yield field_errors.invalid(path, host, "must be a DNS name, not an IP address")
    elif "*" not in host:
        yield from said(syntax.dns1123_subdomain)(host, path)
    else:
        yield from said(syntax.wildcard_dns1123_subdomain)(host, path)


def _ingress_path(http_path: Object, path: str) -> Errors:
    kind, value = http_path.get("pathType"), http_path.get("path") or ""
    if kind is None:
        yield field_errors.required(f"{path}.pathType", "pathType must be specified")
        return
    path_at = f"{path}.path"
    if (value or kind != "ImplementationSpecific") and not value.startswith("/"):
        yield field_errors.invalid(path_at, value, "must be an absolute path")
    if kind in ("Exact", "Prefix"):
        for unclean in UNCLEAN_PATHS:
            if unclean in value:
                yield field_errors.invalid(path_at, value, f"must not contain '{unclean}'")
        for unclean in ("/..", "/."):
            if value.endswith(unclean):
                yield field_errors.invalid(path_at, value, f"cannot end with '{unclean}'")


def _ingress_backend(backend: Object, path: str) -> Errors:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield field_errors.invalid(path, "", "cannot set both resource and service backends")
    elif service is not None:
        yield from required()(service.get("name"), f"{path}.service.name")
        yield from text(syntax.dns1035_label)(service.get("name"), f"{path}.service.name")
        yield from _backend_port(service.get("port") or {}, path)
    elif resource is not None:
        yield from _local_reference(resource, f"{path}.resource")
    else:
        yield field_errors.invalid(path, "", "resource or service backend is required")


def _backend_port(its_port: Object, path: str) -> Errors:
    name, number = its_port.get("name"), its_port.get("number")
    if not name and not number:
        yield field_errors.required(path, "port name or number is required")
    elif name and number:
        yield field_errors.invalid(path, "", "cannot set both port name & port number")
    elif name:
        yield from port(name, f"{path}.service.port.name")
    else:
        yield from port(number, f"{path}.service.port.number")


def _local_reference(reference: Object, path: str) -> Errors:
    yield from text(syntax.dns1123_subdomain)(reference.get("apiGroup"), f"{path}.apiGroup")
    for field in ("kind", "name"):
        value = reference.get(field)
        yield from required()(value, f"{path}.{field}")
        yield from text(syntax.path_segment)(value, f"{path}.{field}")


def _class_parameters(parameters: Object, path: str) -> Errors:
    yield from _local_reference(parameters, path)
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    at = f"{path}.namespace"
    if scope is None:
        yield field_errors.required(f"{path}.scope")
    elif scope == "Cluster":
        if namespace is not None:
            yield field_errors.forbidden(at, "`parameters.scope` is set to 'Cluster'")
    elif scope != "Namespace":
        yield field_errors.not_supported(f"{path}.scope", scope, ("Cluster", "Namespace"))
    elif namespace is None:
        yield field_errors.required(at, "`parameters.scope` is set to 'Namespace'")
    else:
        yield from said(syntax.dns1123_label)(namespace, at)


def _network_peer(peer: Object, path: str) -> Errors:
    selects = [peer[field] for field in ("podSelector", "namespaceSelector") if field in peer]
    block = peer.get("ipBlock")
    if not selects and block is None:
        yield field_errors.required(path, "must specify a peer")
    elif selects and block is not None:
        yield field_errors.forbidden(path, "may not specify both ipBlock and another peer")


def _priority_level(spec: Object, path: str) -> Errors:
    kind = spec.get("type")
    if kind == "Limited":
        detail = "must not be empty when type is Limited"
        yield from present(detail)(spec.get("limited"), f"{path}.limited")
        yield from empty("must be nil if the type is Limited")(spec.get("exempt"), f"{path}.exempt")
    elif kind == "Exempt":
        detail = "must be nil if the type is Exempt"
        yield from empty(detail)(spec.get("limited"), f"{path}.limited")


def _limit_response(response: Object, path: str) -> Errors:
    queuing, here = response.get("queuing"), f"{path}.queuing"
    if response.get("type") == "Queue":
        detail = "must not be empty if limited.limitResponse.type is Limited"
        yield from present(detail)(queuing, here)
    elif response.get("type") == "Reject":
        detail = "must be nil if limited.limitResponse.type is not Limited"
        yield from empty(detail)(queuing, here)


def _hand_size(size: int | None, path: str, owners: Owners) -> Errors:
    queues = owners[-1].get("queues") or 0
    if (size or 0) > queues > 0:
        yield field_errors.invalid(path, size, f"should not be greater than queues ({queues})")


def _end_port(number: int | None, path: str, owners: Owners) -> Errors:
    first = owners[-1].get("port")
    if number is None:
        return
    if first is None:
        detail = "must be specified when `endPort` is set"
        yield field_errors.required(path.replace("endPort", "port"), detail)
    elif isinstance(first, str):
        detail = "may not be specified when `port` is non-numeric"
        yield field_errors.invalid(path, number, detail)
    elif number < first:
        yield field_errors.invalid(path, number, "must be greater than or equal to `port`")
    yield from port(number, path)


def _not_negative(quantity: str | int | None, path: str) -> Errors:
    if quantity is not None:
        yield from validate_quantity(quantity, path)


def _distinct_terms(terms: list[Object] | None, path: str) -> Errors:
    # Upstream's list has empty ones in the places to come.
    seen: list[dict[str, set[str]]] = [{} for _ in terms or ()]
    for index, term in enumerate(terms or ()):
        asked = {
            each.get("key") or "": set(each.get("values") or ())
            for each in term.get("matchLabelExpressions") or ()
        }
        for _ in range(seen.count(asked)):
            yield field_errors.duplicate(f"{path}[{index}].matchLabelExpressions", "")
        seen.append(asked)


def _driver_tokens(spec: Object, path: str) -> Errors:
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets and not spec.get("tokenRequests"):
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        yield field_errors.invalid(f"{path}.serviceAccountTokenInSecrets", in_secrets, detail)


def _attached_source(source: Object, path: str) -> Errors:
    inline, volume = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if inline is None and not volume:
        yield field_errors.required(path, detail)
    elif inline is not None and volume is not None:
        yield field_errors.forbidden(path, detail)
    elif inline is None:
        return
    elif inline.get("csi") is None:
        detail = "has to be specified in the context of inline volumes"
        yield field_errors.required(f"{path}.inlineVolumeSpec.csi", detail)


def _attached_volume(spec: Object, path: str) -> Errors:
    name = (spec.get("source") or {}).get("persistentVolumeName")
    yield from said(syntax.dns1123_subdomain)(name, f"{path}.source.persistentVolumeName")


def _modes(*supported: str) -> Plain:
    """Evaluate the words of a list, which is blamed as a whole."""
    return lambda modes, path: [
        field_errors.not_supported(path, mode, supported)
        for mode in modes or ()
        if mode not in supported
    ]


def _overhead(overhead: Object | None, path: str) -> Errors:
    yield from container_resources({"limits": overhead}, path)


def _lowered(rule: syntax.Rule) -> syntax.Rule:
    return lambda value: rule(value.lower())


def _verbs() -> tuple[Any, ...]:
    return (
        required("verbs must contain at least one value"),
        all_or_some("verbs"),
        among(*VERBS),
    )


TABLE: Final[Table] = {
    **POD_TABLE,
    **SERVICE_TABLE,
    **WORKLOAD_TABLE,
    **RBAC_TABLE,
    **AUTOSCALING_TABLE,
    **CERTIFICATE_TABLE,
    **QUOTA_TABLE,
    **POD_GROUP_TABLE,
    **GROUP_TABLE,
    **DEVICE_TABLE,
    "core.v1.ConfigMap": {
        "data": (keys(said(syntax.config_key)),),
        "binaryData": (keys(said(syntax.config_key)),),
        ITSELF: (_config_map,),
    },
    "core.v1.Secret": {"data": (keys(said(syntax.config_key)),), ITSELF: (_secret,)},
    "core.v1.Event": {ITSELF: (_event,)},
    "core.v1.NamespaceSpec": {"finalizers": (_finalizers,)},
    "core.v1.NamespaceStatus": {"phase": (Within(_namespace_phase),)},
    "core.v1.Pod": {"spec": (), ITSELF: (_image_names,)},
    "core.v1.NodeSpec": {
        "taints": (distinct_taints,),
        "podCIDRs": (of_each(said(syntax.cidr)),),
    },
    "core.v1.NodePodPreemptionPolicy": {"disableResizePreemption": (at_most(20), distinct())},
    "core.v1.NodeStatus": {
        "capacity": (amounts,),
        "allocatable": (amounts,),
        "conditions": (_conditions,),
        "phase": (anything,),
    },
    "core.v1.PodStatus": {
        "phase": (enumerated("Pending", "Running", "Succeeded", "Failed", "Unknown"),),
        "conditions": (_conditions,),
    },
    "core.v1.PodExtendedResourceClaimStatus": {
        "requestMappings": (required("at least one request mapping is required"),),
        "resourceClaimName": (spelled(syntax.dns1123_subdomain),),
    },
    "core.v1.PodCondition": {"type": (spelled(syntax.qualified_name),)},
    "policy.v1.PodDisruptionBudgetSpec": {
        ITSELF: (_budget,),
        "minAvailable": (amount, at_most_all),
        "maxUnavailable": (amount, at_most_all),
        "selector": (selector,),
        "unhealthyPodEvictionPolicy": (),
    },
    "policy.v1.PodDisruptionBudgetStatus": {
        "conditions": (of_each(_condition),),
        ITSELF: (
            counted(
                "disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods", most={}
            ),
        ),
    },
    "admissionregistration.v1.ValidatingAdmissionPolicyStatus": {
        "conditions": (of_each(_condition),)
    },
    "scheduling.v1.PriorityClass": {
        "value": (Within(_priority),),
        "preemptionPolicy": (known(*PREEMPTION_POLICIES),),
    },
    "coordination.v1.LeaseSpec": {
        "leaseDurationSeconds": (above(0),),
        "leaseTransitions": (at_least(0),),
    },
    "core.v1.PersistentVolumeSpec": {
        "accessModes": (required(), _access_modes),
        "capacity": (_capacity,),
        "persistentVolumeReclaimPolicy": (enumerated("Delete", "Recycle", "Retain"),),
        ITSELF: (_one_source,),
        **dict.fromkeys(VOLUME_SOURCES, (first_of(*VOLUME_SOURCES),)),
        "storageClassName": (text(syntax.dns1123_subdomain),),
        "volumeMode": (enumerated("Block", "Filesystem"),),
    },
    "core.v1.PersistentVolumeClaimSpec": {
        "selector": (selector,),
        "accessModes": (required("at least 1 access mode is required"), _access_modes),
        ITSELF: (_asks_for_storage,),
        "storageClassName": (text(syntax.dns1123_subdomain),),
        "volumeMode": (enumerated("Block", "Filesystem"),),
        "volumeAttributesClassName": (text(syntax.dns1123_subdomain),),
    },
    "core.v1.EndpointSubset": {ITSELF: (_endpoint_subset,)},
    "core.v1.EndpointAddress": {
        "ip": (lambda value, path: ip(value or "", path),),
        "hostname": (text(syntax.dns1123_label),),
        "nodeName": (said(syntax.dns1123_subdomain),),
        ITSELF: (_endpoint_ip,),
    },
    "core.v1.EndpointPort": {
        "name": (text(syntax.dns1123_label),),
        "port": (lambda value, path: port(value or 0, path),),
        "appProtocol": (said(syntax.qualified_name),),
    },
    "core.v1.VolumeNodeAffinity": {
        "required": (required("must specify required node constraints"),)
    },
    "core.v1.TopologySelectorLabelRequirement": {
        "values": (required(), distinct()),
        "key": (spelled(syntax.qualified_name),),
    },
    "discovery.v1.EndpointSlice": {
        "addressType": (required(), enumerated("FQDN", "IPv4", "IPv6")),
        ITSELF: (_slice_addresses,),
    },
    "discovery.v1.EndpointPort": {
        "name": (text(syntax.dns1123_label),),
        "appProtocol": (said(syntax.qualified_name),),
    },
    "flowcontrol.v1.FlowSchemaSpec": {
        "matchingPrecedence": (
            between(
                1,
                10_000,
                low="must be a positive value",
                high="must not be greater than 10000",
            ),
        ),
    },
    "flowcontrol.v1.FlowDistinguisherMethod": {ITSELF: (_flow_distinguisher,)},
    "flowcontrol.v1.PriorityLevelConfigurationReference": {
        "name": (
            required("must reference a priority level"),
            text(syntax.dns1123_subdomain),
        ),
    },
    "flowcontrol.v1.PolicyRulesWithSubjects": {
        "subjects": (required("subjects must contain at least one value"),),
        ITSELF: (_flow_rule,),
    },
    "flowcontrol.v1.Subject": {ITSELF: (_flow_subject,)},
    "flowcontrol.v1.UserSubject": {"name": (required(),)},
    "flowcontrol.v1.GroupSubject": {"name": (required(),)},
    "flowcontrol.v1.ServiceAccountSubject": {
        "name": (required(),),
        "namespace": (
            required("must specify namespace for service account"),
            text(syntax.dns1123_label),
        ),
    },
    "flowcontrol.v1.ResourcePolicyRule": {
        "verbs": _verbs(),
        "apiGroups": (
            required("resource rules must supply at least one api group"),
            all_or_some("api groups"),
        ),
        "resources": (
            required("resource rules must supply at least one resource"),
            all_or_some("resources"),
        ),
        ITSELF: (_flow_namespaces,),
        "namespaces": (all_or_some("namespaces"), of_each(_namespace)),
    },
    "flowcontrol.v1.NonResourcePolicyRule": {
        "verbs": _verbs(),
        "nonResourceURLs": (
            required("nonResourceURLs must contain at least one value"),
            all_or_some("non-resource URLs"),
            lambda urls, path: () if urls and "*" in urls else of_each(_url_path)(urls, path),
        ),
    },
    "flowcontrol.v1.FlowSchemaCondition": {"type": (required(),)},
    "networking.v1.IPAddressSpec": {"parentRef": (present(),)},
    "networking.v1.ParentReference": {
        "resource": (named(syntax.path_segment),),
        "name": (named(syntax.path_segment),),
        "namespace": (text(syntax.path_segment),),
    },
    "networking.v1.ServiceCIDRSpec": {
        "cidrs": (
            required("at least one CIDR required"),
            at_most(2, "may only hold up to 2 values"),
            of_each(said(syntax.cidr)),
        ),
    },
    "networking.v1.IngressSpec": {
        ITSELF: (_ingress_spec,),
        "defaultBackend": (),
        "rules": (),
        "tls": (),
        "ingressClassName": (said(syntax.dns1123_subdomain),),
    },
    "networking.v1.IngressRule": {"host": (_dns_host,)},
    "networking.v1.HTTPIngressRuleValue": {"paths": (required(),)},
    "networking.v1.HTTPIngressPath": {ITSELF: (_ingress_path,)},
    "networking.v1.IngressBackend": {ITSELF: (_ingress_backend,)},
    "networking.v1.IngressTLS": {"hosts": (of_each(_dns_host),)},
    "networking.v1.IngressClassSpec": {
        "controller": (required(), lambda value, path: domain_path(value or None, path))
    },
    "networking.v1.IngressClassParametersReference": {ITSELF: (_class_parameters,)},
    "networking.v1.NetworkPolicySpec": {
        "podSelector": (selector,),
        "ingress": (),
        "egress": (),
        "policyTypes": (of_each(one_of("Ingress", "Egress")),),
    },
    "flowcontrol.v1.PriorityLevelConfigurationSpec": {
        "type": (known("Exempt", "Limited"),),
        ITSELF: (_priority_level,),
    },
    "flowcontrol.v1.LimitedPriorityLevelConfiguration": {
        "nominalConcurrencyShares": (between(0, 2**31, "must be a non-negative integer"),),
        "lendablePercent": (between(0, 100),),
    },
    "flowcontrol.v1.LimitResponse": {
        "type": (known("Queue", "Reject"),),
        ITSELF: (_limit_response,),
    },
    "flowcontrol.v1.QueuingConfiguration": {
        "queueLengthLimit": (above(0, "must be positive"),),
        "queues": (above(0, "must be positive"),),
        "handSize": (above(0, "must be positive"), Within(_hand_size)),
    },
    "networking.v1.NetworkPolicyPort": {
        "endPort": (Within(_end_port),),
        "port": (port,),
    },
    "networking.v1.NetworkPolicyPeer": {
        "podSelector": (selector,),
        "namespaceSelector": (selector,),
        "ipBlock": (),
        ITSELF: (_network_peer,),
    },
    "networking.v1.IPBlock": {
        "cidr": (required(), text(syntax.cidr)),
        "except": (of_each(said(syntax.cidr)),),
    },
    "node.v1.RuntimeClass": {"handler": (named(syntax.dns1123_label),)},
    "node.v1.Overhead": {"podFixed": (_overhead,)},
    "node.v1.Scheduling": {"nodeSelector": (labels,)},
    "io.k8s.apimachinery.pkg.apis.meta.v1.GroupResource": {"resource": (required(),)},
    "storage.v1.CSIDriverSpec": {
        "fsGroupPolicy": (one_of("File", "None", "ReadWriteOnceWithFSType"),),
        "volumeLifecycleModes": (_modes("Persistent", "Ephemeral"),),
        "nodeAllocatableUpdatePeriodSeconds": (at_least(10, " seconds"),),
        ITSELF: (_driver_tokens,),
    },
    "storage.v1.CSINodeSpec": {"drivers": (distinct("name"),)},
    "storage.v1.CSINodeDriver": {
        "name": (required(), text(_lowered(syntax.dns1123_subdomain))),
        "nodeID": (required(),),
        "topologyKeys": (of_each(said(syntax.qualified_name)),),
    },
    "storage.v1.CSIStorageCapacity": {
        "storageClassName": (named(syntax.dns1123_subdomain),),
        "capacity": (_not_negative,),
        "maximumVolumeSize": (_not_negative,),
    },
    "storage.v1.StorageClass": {
        "provisioner": (required(), text(_lowered(syntax.qualified_name))),
        "reclaimPolicy": (one_of("Delete", "Retain"),),
        "allowedTopologies": (_distinct_terms,),
    },
    "storage.v1.VolumeAttributesClass": {
        "driverName": (named(_lowered(syntax.dns1123_subdomain)),),
        "parameters": (required("must contain at least one key/value pair"),),
    },
    "storage.v1.VolumeAttachmentSpec": {
        "attacher": (required(), text(_lowered(syntax.dns1123_subdomain))),
        "source": (),
        "nodeName": (spelled(syntax.dns1123_subdomain),),
        ITSELF: (_attached_volume,),
    },
    "storage.v1.VolumeAttachmentSource": {
        ITSELF: (_attached_source,),
        "inlineVolumeSpec": (If(lambda _, owners: not owners[-1].get("persistentVolumeName")),),
    },
}
CONSTRAINTS: Final = Constraints(TABLE)
