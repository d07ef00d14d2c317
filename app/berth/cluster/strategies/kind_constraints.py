"""Rules of kinds that have no module of their own for them: a part of :mod:`.constraint_table`.

Sentences are those that a real API server was recorded to answer with; those of namespaces, users,
TLS hosts and resource rules, which no recording shows, follow them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from berth.cluster.resources import Object
from berth.cluster.schemas import builtin
from berth.cluster.strategies import metadata, syntax
from berth.cluster.strategies.constraints import (
    If,
    Owners,
    Plain,
    distinct,
    empty,
    ip,
    is_ip,
    known,
    named,
    of_each,
    port,
    present,
    required,
    said,
    shown,
    spelled,
    text,
)
from berth.cluster.strategies.pod_groups import HIGHEST_USER_PRIORITY
from berth.cluster.strategies.quantities import (
    container_resources,
    parse_or_none,
    validate_quantity,
)
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.pod_defaults import SYSTEM_PRIORITIES
from berth.kube.objects.quantity import parse

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


def check_config_map(config_map: Object, path: str) -> Errors:
    data, binary = config_map.get("data") or {}, config_map.get("binaryData") or {}
    for key in data:
        if key in binary:
            detail = "duplicate of key present in binaryData"
            yield field_errors.invalid(f"data[{key}]", key, detail)
    if sum(len(value.encode()) for value in data.values()) + _size(binary) > CONFIG_LIMIT:
        yield field_errors.too_long("", CONFIG_LIMIT)


def check_secret(secret: Object, _path: str) -> Errors:
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


def check_event(event: Object, _path: str) -> Errors:
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


def check_namespace_phase(phase: str | None, _path: str, owners: Owners) -> Errors:
    is_deleted = bool((owners[0].get("metadata") or {}).get("deletionTimestamp"))
    wanted = "Terminating" if is_deleted else "Active"
    if phase != wanted:
        detail = f"may only be '{wanted}' if `deletionTimestamp` is {'not ' * is_deleted}empty"
        yield field_errors.invalid("status.Phase", phase, detail)


def check_finalizers(finalizers: list[str] | None, path: str) -> Errors:
    for each in finalizers or ():
        yield from metadata.finalizer(path, each)


def check_priority(value: int | None, path: str, owners: Owners) -> Errors:
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


def check_image_names(pod: Object, _path: str) -> Errors:
    spec = pod.get("spec") or {}
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            image = container.get("image") or ""
            if image != image.strip():
                detail = "must not have leading or trailing whitespace"
                yield field_errors.invalid(f"spec.{field}[{index}].image", image, detail)


def check_conditions(conditions: list[Object] | None, path: str) -> Errors:
    """Evaluate the conditions of a pod or node: each says which it is, and no two the same."""
    for index, condition in enumerate(conditions or ()):
        yield from required()(condition.get("type"), f"{path}[{index}].type")
    yield from distinct("type")([each for each in conditions or () if each.get("type")], path)


def check_condition(condition: Object, path: str) -> Errors:
    """Evaluate a ``metav1.Condition``, of the kinds whose validation does."""
    yield from spelled(syntax.qualified_name)(condition.get("type"), f"{path}.type")
    yield from known("False", "True", "Unknown")(condition.get("status"), f"{path}.status")
    yield from required()(condition.get("lastTransitionTime"), f"{path}.lastTransitionTime")
    yield from named(syntax.condition_reason)(condition.get("reason"), f"{path}.reason")


def check_budget(spec: Object, path: str) -> Errors:
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        value = shown(builtin.schema("io.k8s.api.policy.v1.PodDisruptionBudgetSpec"), spec)
        detail = "minAvailable and maxUnavailable cannot be both set"
        yield field_errors.invalid(path, value, detail)


# Of other groups.


def check_access_modes(modes: list[str] | None, path: str) -> Errors:
    yield from known_words(*ACCESS_MODES)(modes, path)
    if "ReadWriteOncePod" in (modes or ()) and len(modes or ()) > 1:
        detail = "may not use ReadWriteOncePod with other access modes"
        yield field_errors.forbidden(path, detail)


def check_capacity(capacity: Object | None, path: str) -> Errors:
    if path.endswith("inlineVolumeSpec.capacity"):  # of an attachment, which needs none
        return
    yield from required()(capacity, path)
    if not capacity or list(capacity) != ["storage"]:
        yield field_errors.not_supported(path, capacity, ("storage",))
    for name, quantity in (capacity or {}).items():
        if parse(quantity) <= 0:
            why = "must be greater than zero"
            yield field_errors.invalid(f"{path}[{name}]", quantity, why)


def check_one_source(spec: Object, path: str) -> Errors:
    sources = [name for name in VOLUME_SOURCES if spec.get(name) is not None]
    for name in sources[1:]:
        yield field_errors.forbidden(f"{path}.{name}", "may not specify more than 1 volume type")
    if not sources:
        yield field_errors.required(path, "must specify a volume type")


def check_asks_for_storage(spec: Object, path: str) -> Errors:
    requests = (spec.get("resources") or {}).get("requests") or {}
    amount, here = requests.get("storage"), f"{path}.resources[storage]"
    if amount is None:
        yield field_errors.required(here)
    elif (parse_or_none(amount) or 0) <= 0:
        yield field_errors.invalid(here, amount, "must be greater than zero")


def check_flow_distinguisher(method: Object, path: str) -> Errors:
    kind, supported = method.get("type") or "", ("ByNamespace", "ByUser")
    if kind not in supported:  # upstream shows the whole object, as Go calls its fields
        yield field_errors.not_supported(f"{path}.type", {"Type": kind}, supported)


def check_flow_rule(rule: Object, path: str) -> Errors:
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        detail = "at least one of resourceRules and nonResourceRules has to be non-empty"
        yield field_errors.required(path, detail)


def check_flow_subject(subject: Object, path: str) -> Errors:
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


def check_flow_namespaces(rule: Object, path: str) -> Errors:
    if not rule.get("namespaces") and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        yield field_errors.required(f"{path}.namespaces", detail)


def check_url_path(url: str, path: str) -> Errors:
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


def check_urls(urls: list[str] | None, path: str) -> Iterable[FieldError]:
    """Evaluate the paths that a rule is about; one that is about all says nothing else."""
    return () if urls and "*" in urls else of_each(check_url_path)(urls, path)


def check_namespace(name: str, path: str) -> Errors:
    if name != "*":
        yield from said(syntax.dns1123_label)(name, path)


def check_endpoint_subset(subset: Object, path: str) -> Errors:
    if not subset.get("addresses") and not subset.get("notReadyAddresses"):
        yield field_errors.required(path, "must specify `addresses` or `notReadyAddresses`")
    ports = subset.get("ports") or ()
    for index, each in enumerate(ports if len(ports) > 1 else ()):
        if not each.get("name"):
            yield field_errors.required(f"{path}.ports[{index}].name")


def check_endpoint_ip(address: Object, path: str) -> Errors:
    if not is_ip(value := address.get("ip") or ""):
        yield field_errors.invalid(f"{path}.ip", value, "must be a valid IP address")


def check_slice_addresses(endpoint_slice: Object, _path: str) -> Errors:
    rule = text(syntax.dns1123_subdomain) if endpoint_slice.get("addressType") == "FQDN" else ip
    for index, endpoint in enumerate(endpoint_slice.get("endpoints") or ()):
        path = f"endpoints[{index}].addresses"
        yield from required("must contain at least 1 address")(endpoint.get("addresses"), path)
        if endpoint_slice.get("addressType") in ("FQDN", "IPv4", "IPv6"):
            yield from of_each(rule)(endpoint.get("addresses"), path)


def check_ingress_spec(spec: Object, path: str) -> Errors:
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        detail = "either `defaultBackend` or `rules` must be specified"
        yield field_errors.invalid(path, spec.get("rules"), detail)


def check_dns_host(host: str | None, path: str) -> Errors:
    if not host:
        return
    if is_ip(host):
        yield field_errors.invalid(path, host, "must be a DNS name, not an IP address")
    elif "*" not in host:
        yield from said(syntax.dns1123_subdomain)(host, path)
    else:
        yield from said(syntax.wildcard_dns1123_subdomain)(host, path)


def check_ingress_path(http_path: Object, path: str) -> Errors:
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


def check_ingress_backend(backend: Object, path: str) -> Errors:
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


def check_class_parameters(parameters: Object, path: str) -> Errors:
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


def check_network_peer(peer: Object, path: str) -> Errors:
    selects = [peer[field] for field in ("podSelector", "namespaceSelector") if field in peer]
    block = peer.get("ipBlock")
    if not selects and block is None:
        yield field_errors.required(path, "must specify a peer")
    elif selects and block is not None:
        yield field_errors.forbidden(path, "may not specify both ipBlock and another peer")


def check_priority_level(spec: Object, path: str) -> Errors:
    kind = spec.get("type")
    if kind == "Limited":
        detail = "must not be empty when type is Limited"
        yield from present(detail)(spec.get("limited"), f"{path}.limited")
        yield from empty("must be nil if the type is Limited")(spec.get("exempt"), f"{path}.exempt")
    elif kind == "Exempt":
        detail = "must be nil if the type is Exempt"
        yield from empty(detail)(spec.get("limited"), f"{path}.limited")


def check_limit_response(response: Object, path: str) -> Errors:
    queuing, here = response.get("queuing"), f"{path}.queuing"
    if response.get("type") == "Queue":
        detail = "must not be empty if limited.limitResponse.type is Limited"
        yield from present(detail)(queuing, here)
    elif response.get("type") == "Reject":
        detail = "must be nil if limited.limitResponse.type is not Limited"
        yield from empty(detail)(queuing, here)


def check_hand_size(size: int | None, path: str, owners: Owners) -> Errors:
    queues = owners[-1].get("queues") or 0
    if (size or 0) > queues > 0:
        yield field_errors.invalid(path, size, f"should not be greater than queues ({queues})")


def check_end_port(number: int | None, path: str, owners: Owners) -> Errors:
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


def check_not_negative(quantity: str | int | None, path: str) -> Errors:
    if quantity is not None:
        yield from validate_quantity(quantity, path)


def check_distinct_terms(terms: list[Object] | None, path: str) -> Errors:
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


def check_driver_tokens(spec: Object, path: str) -> Errors:
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets and not spec.get("tokenRequests"):
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        yield field_errors.invalid(f"{path}.serviceAccountTokenInSecrets", in_secrets, detail)


def check_attached_source(source: Object, path: str) -> Errors:
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


def check_attached_volume(spec: Object, path: str) -> Errors:
    name = (spec.get("source") or {}).get("persistentVolumeName")
    yield from said(syntax.dns1123_subdomain)(name, f"{path}.source.persistentVolumeName")


IF_INLINE: Final = If(lambda _volume, owners: not owners[-1].get("persistentVolumeName"))


def known_words(*supported: str) -> Plain:
    """Evaluate the words of a list, which is blamed as a whole."""
    return lambda modes, path: [
        field_errors.not_supported(path, mode, supported)
        for mode in modes or ()
        if mode not in supported
    ]


def check_overhead(overhead: Object | None, path: str) -> Errors:
    yield from container_resources({"limits": overhead}, path)


def lowered(rule: syntax.Rule) -> syntax.Rule:
    return lambda value: rule(value.lower())
