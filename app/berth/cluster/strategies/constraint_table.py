"""The constraints of kinds that have no code of their own for them: object type → field → rules.

Sentences and order are those that a real API server was recorded to answer with; those of
namespaces, users, TLS hosts and resource rules, which no recording shows, follow them.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from berth.cluster.resources import Object
from berth.cluster.schemas import builtin
from berth.cluster.schemas.types import Schema
from berth.cluster.strategies import newer_constraints, syntax
from berth.cluster.strategies.constraints import (
    ITSELF,
    Constraints,
    Rule,
    Table,
    above,
    all_or_some,
    among,
    at_least,
    at_most,
    between,
    counted,
    enumerated,
    ip,
    is_ip,
    of_each,
    one_of,
    port,
    present,
    required,
    said,
    selector,
    text,
)
from berth.cluster.strategies.newer_constraints import combined
from berth.cluster.strategies.quantities import is_extended, validate_quantity
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.quantity import parse

HTTP_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
VERBS: Final = (
    "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch",
)  # fmt: skip
SYSCTL: Final = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
SYSCTL_LENGTH: Final = 253
IPC_SYSCTLS: Final = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
"""How the names of those begin that belong to the namespace of interprocess communication."""
ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_SOURCES: Final = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd",
    "quobyte", "cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume",
    "photonPersistentDisk", "portworxVolume", "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip
"""Of volumes, in the order in which upstream looks for them."""
SUBJECTS: Final = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
STANDARD_LIMITS: Final = ("Pod", "Container", "PersistentVolumeClaim")
UNCLEAN_PATHS: Final = ("//", "/./", "/../", "%2f", "%2F")

Errors = Iterator[FieldError]
Hook = Callable[[Object, Object | None], list[FieldError]]


def _access_modes(modes: list[str] | None, path: str) -> Errors:
    for mode in modes or ():
        if mode not in ACCESS_MODES:
            yield field_errors.not_supported(path, mode, ACCESS_MODES)
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
    if "storage" not in requests:
        yield field_errors.required(f"{path}.resources[storage]")
    for name, quantity in requests.items():
        yield from validate_quantity(quantity, f"{path}.resources.requests[{name}]")


def _dns_policy(spec: Object, path: str) -> Errors:
    if spec.get("dnsPolicy") != "None":
        return
    servers, at = (spec.get("dnsConfig") or {}).get("nameservers"), f"{path}.dnsConfig"
    if spec.get("dnsConfig") is None:
        detail = "must provide `dnsConfig` when `dnsPolicy` is None"
        yield field_errors.required(at, detail)
    elif not servers:
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield field_errors.required(f"{at}.nameservers", detail)


def _dns_option(option: Object, path: str) -> Errors:
    if not option.get("name"):
        yield field_errors.required(path, "must not be empty")


def _operating_system(os: Object | None, path: str) -> Errors:
    if os is None:
        return
    name = os.get("name")
    if not name:
        yield field_errors.required(f"{path}.name", "cannot be empty")
    elif name not in ("linux", "windows"):
        yield field_errors.not_supported(path, name, ("linux", "windows"))


def _sysctls(sysctls: list[Object] | None, path: str) -> Errors:
    names: set[str] = set()
    for index, each in enumerate(sysctls or ()):
        name, at = each.get("name") or "", f"{path}[{index}].name"
        if not name:
            yield field_errors.required(at)
        elif len(name) > SYSCTL_LENGTH or SYSCTL.fullmatch(name) is None:
            detail = f"must have at most {SYSCTL_LENGTH} characters and match regex "
            yield field_errors.invalid(at, name, detail + SYSCTL.pattern)
        elif name in names:
            yield field_errors.duplicate(at, name)
        names.add(name)


def _sysctls_of_host(spec: Object, path: str) -> Errors:
    """Refuse kernel parameters of a namespace that the pod shares with its host."""
    for index, each in enumerate((spec.get("securityContext") or {}).get("sysctls") or ()):
        name = each.get("name") or ""
        dotted = name.replace("/", ".")
        at = f"{path}.securityContext.sysctls[{index}].name"
        if spec.get("hostNetwork") and dotted.startswith("net."):
            yield field_errors.invalid(at, name, "may not be specified when 'hostNetwork' is true")
        elif spec.get("hostIPC") and dotted.startswith(IPC_SYSCTLS):
            yield field_errors.invalid(at, name, "may not be specified when 'hostIPC' is true")


def _sub_path(mount: Object, path: str) -> Errors:
    mounts = path.rpartition("[")[0]  # upstream does not say which of them
    sub_path, expression = mount.get("subPath"), mount.get("subPathExpr")
    if sub_path:
        yield from _descending(sub_path, f"{mounts}.subPath")
    if expression:
        if sub_path:
            detail = "subPathExpr and subPath are mutually exclusive"
            yield field_errors.invalid(f"{path}.subPathExpr", expression, detail)
        yield from _descending(expression, f"{mounts}.subPathExpr")


def _descending(value: str, path: str) -> Errors:
    """Refuse a path that is not below where it begins."""
    if value.startswith("/"):
        yield field_errors.invalid(path, value, "must be a relative path")
    if ".." in value.split("/"):
        yield field_errors.invalid(path, value, "must not contain '..'")


def _one_volume_source(volume: Object, path: str) -> Errors:
    sources = [field for field, value in volume.items() if field != "name" and value is not None]
    for field in sources[1:]:
        yield field_errors.forbidden(f"{path}.{field}", "may not specify more than 1 volume type")


def _one_handler(*handlers: str) -> Rule:
    def rule(obj: Object, path: str) -> Errors:
        given = [name for name in handlers if obj.get(name) is not None]
        if not given:
            yield field_errors.required(path, "must specify a handler type")
        for name in given[1:]:
            detail = "may not specify more than 1 handler type"
            yield field_errors.forbidden(f"{path}.{name}", detail)

    return rule


def _environment_source(source: Object, path: str) -> Errors:
    given = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
    if not given:
        detail = "must specify one of: `configMapRef` or `secretRef`"
        yield field_errors.invalid(path, "", detail)
    elif len(given) > 1:
        detail = "may not have more than one field specified at a time"
        yield field_errors.invalid(path, "", detail)


def _host_names(names: list[str] | None, path: str) -> Errors:
    for name in names or ():
        yield from said(syntax.dns1123_subdomain)(name, path)


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


def _domain_prefixed_path(value: str | None, path: str) -> Errors:
    if not value:
        yield field_errors.required(path)
        return
    host, _, rest = value.partition("/")
    if not host or not rest:
        detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
        yield field_errors.invalid(path, value, detail)
        return
    yield from said(syntax.dns1123_subdomain)(host, path)
    if HTTP_PATH.fullmatch(rest) is None:
        detail = f"Invalid path (regex used for validation is '{HTTP_PATH.pattern}')"
        yield field_errors.invalid(path, rest, detail)


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


def _limit_type(kind: str | None, path: str) -> Errors:
    complaints = list(said(syntax.qualified_name)(kind or "", path))
    yield from complaints
    if not complaints and "/" not in (kind or "") and kind not in STANDARD_LIMITS:
        yield field_errors.invalid(path, kind, "must be a standard limit type or fully qualified")


def _network_peer(peer: Object, path: str) -> Errors:
    selects = [peer[field] for field in ("podSelector", "namespaceSelector") if field in peer]
    block = peer.get("ipBlock")
    if not selects and block is None:
        yield field_errors.required(path, "must specify a peer")
    elif selects and block is not None:
        yield field_errors.forbidden(path, "may not specify both ipBlock and another peer")


def _extended_resource(name: str | None, path: str) -> Errors:
    if name is not None and (not is_extended(name) or syntax.qualified_name(name)):
        yield field_errors.invalid(path, name, "must be a valid extended resource name")


def _distinct_terms(terms: list[Object] | None, path: str) -> Errors:
    known: list[dict[str, set[str]]] = []
    for index, term in enumerate(terms or ()):
        asked = {
            each.get("key") or "": set(each.get("values") or ())
            for each in term.get("matchLabelExpressions") or ()
        }
        if asked in known:
            yield field_errors.duplicate(f"{path}[{index}].matchLabelExpressions", "")
        known.append(asked)


def _distinct_values(values: list[str] | None, path: str) -> Errors:
    for index, value in enumerate(values or ()):
        if value in (values or [])[:index]:
            yield field_errors.duplicate(f"{path}[{index}]", value)


def _driver_tokens(spec: Object, path: str) -> Errors:
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets and not spec.get("tokenRequests"):
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        yield field_errors.invalid(f"{path}.serviceAccountTokenInSecrets", in_secrets, detail)


def _driver_modes(modes: list[str] | None, path: str) -> Errors:
    supported = ("Persistent", "Ephemeral")
    for mode in modes or ():
        if mode not in supported:
            yield field_errors.not_supported(path, mode, supported)


def _attached_source(source: Object, path: str) -> Errors:
    inline, volume = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if inline is None and not volume:
        yield field_errors.required(path, detail)
    elif inline is not None and volume is not None:
        yield field_errors.forbidden(path, detail)
    elif inline is None:
        yield from said(syntax.dns1123_subdomain)(volume, f"{path}.persistentVolumeName")
    elif inline.get("csi") is None:
        detail = "has to be specified in the context of inline volumes"
        yield field_errors.required(f"{path}.inlineVolumeSpec.csi", detail)


def _lowered(rule: syntax.Rule) -> syntax.Rule:
    return lambda value: rule(value.lower())


def _verbs() -> tuple[Any, ...]:
    return (
        required("verbs must contain at least one value"),
        all_or_some("verbs"),
        among(*VERBS),
    )


_REPLICA_SET_STATUS: Final = counted(
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "terminatingReplicas",
    "observedGeneration",
    most={
        "fullyLabeledReplicas readyReplicas availableReplicas": ("replicas", "status.replicas"),
        "availableReplicas": ("readyReplicas", "readyReplicas"),
    },
)

_RANGE: Final = "must be between 0 and 2147483647, inclusive"
_IDENTITY: Final = between(0, 2**31 - 1, low=_RANGE, high=_RANGE)

TABLE: Final[Table] = {
    "apps.v1.DaemonSetStatus": {
        ITSELF: (
            counted(
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
                "observedGeneration",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberUnavailable",
                "collisionCount",
                most={},
            ),
        ),
    },
    "apps.v1.DeploymentStatus": {
        ITSELF: (
            counted(
                "observedGeneration",
                "replicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "unavailableReplicas",
                "terminatingReplicas",
                "collisionCount",
                most={
                    "updatedReplicas readyReplicas availableReplicas": (
                        "replicas",
                        "status.replicas",
                    ),
                    "availableReplicas": ("readyReplicas", "readyReplicas"),
                },
            ),
        ),
    },
    "apps.v1.ReplicaSetStatus": {ITSELF: (_REPLICA_SET_STATUS,)},
    "core.v1.ReplicationControllerStatus": {ITSELF: (_REPLICA_SET_STATUS,)},
    "apps.v1.StatefulSetStatus": {
        ITSELF: (
            counted(
                "replicas",
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas",
                "availableReplicas",
                "observedGeneration",
                "collisionCount",
                most={
                    "readyReplicas currentReplicas updatedReplicas availableReplicas": (
                        "replicas",
                        "status.replicas",
                    ),
                    "availableReplicas": ("readyReplicas", "status.readyReplicas"),
                },
            ),
        ),
    },
    "apps.v1.ControllerRevision": {
        "data": (present("data is mandatory"),),
        "revision": (at_least(0),),
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
        "storageClassName": (text(syntax.dns1123_subdomain),),
        "volumeMode": (enumerated("Block", "Filesystem"),),
    },
    "core.v1.HostPathVolumeSource": {"path": (required(),)},
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
    "core.v1.LimitRangeItem": {"type": (_limit_type,)},
    "core.v1.PodSpec": {
        "volumes": (),
        "initContainers": (),
        "containers": (),
        "serviceAccountName": (text(syntax.dns1123_subdomain),),
        "securityContext": (),
        "hostname": (text(syntax.dns1123_label),),
        "subdomain": (text(syntax.dns1123_label),),
        "hostAliases": (),
        ITSELF: (_dns_policy, _sysctls_of_host),
        "runtimeClassName": (said(syntax.dns1123_subdomain),),
        "os": (_operating_system,),
    },
    "core.v1.Volume": {ITSELF: (_one_volume_source,)},
    "core.v1.PersistentVolumeClaimVolumeSource": {"claimName": (required(),)},
    "core.v1.SecretVolumeSource": {"secretName": (required(),)},
    "core.v1.ConfigMapVolumeSource": {"name": (required(),)},
    "core.v1.LifecycleHandler": {ITSELF: (_one_handler("exec", "httpGet", "tcpSocket", "sleep"),)},
    "core.v1.Probe": {ITSELF: (_one_handler("exec", "httpGet", "tcpSocket", "grpc"),)},
    "core.v1.ExecAction": {"command": (required(),)},
    "core.v1.HTTPGetAction": {"path": (required(),), "port": (port,)},
    "core.v1.TCPSocketAction": {"port": (port,)},
    "core.v1.GRPCAction": {"port": (port,)},
    "core.v1.EnvFromSource": {ITSELF: (_environment_source,)},
    "core.v1.ConfigMapEnvSource": {"name": (required(),)},
    "core.v1.SecretEnvSource": {"name": (required(),)},
    "core.v1.HostAlias": {
        "ip": (lambda value, path: ip(value or "", path),),
        "hostnames": (_host_names,),
    },
    "core.v1.PodReadinessGate": {
        "conditionType": (lambda value, path: said(syntax.qualified_name)(value or "", path),),
    },
    "core.v1.PodDNSConfig": {
        "nameservers": (of_each(ip), at_most(3, "must not have more than 3 nameservers")),
        "searches": (at_most(32, "must not have more than 32 search paths"),),
    },
    "core.v1.PodDNSConfigOption": {ITSELF: (_dns_option,)},
    "core.v1.PodSecurityContext": {
        "runAsUser": (_IDENTITY,),
        "runAsGroup": (_IDENTITY,),
        "fsGroup": (_IDENTITY,),
        "supplementalGroups": (of_each(_IDENTITY),),
        "sysctls": (_sysctls,),
    },
    "core.v1.VolumeMount": {ITSELF: (_sub_path,)},
    "core.v1.SecurityContext": {"runAsUser": (_IDENTITY,), "runAsGroup": (_IDENTITY,)},
    "core.v1.VolumeNodeAffinity": {
        "required": (required("must specify required node constraints"),)
    },
    "core.v1.NodeSelector": {
        "nodeSelectorTerms": (required("must have at least one node selector term"),)
    },
    "core.v1.TopologySelectorLabelRequirement": {
        "values": (required(), _distinct_values),
        "key": (lambda key, path: said(syntax.qualified_name)(key or "", path),),
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
    "networking.v1.IngressClassSpec": {"controller": (_domain_prefixed_path,)},
    "networking.v1.IngressClassParametersReference": {ITSELF: (_class_parameters,)},
    "networking.v1.NetworkPolicySpec": {
        "podSelector": (selector,),
        "ingress": (),
        "egress": (),
        "policyTypes": (of_each(one_of("Ingress", "Egress")),),
    },
    "networking.v1.NetworkPolicyPort": {
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
    "node.v1.RuntimeClass": {"handler": (required(), text(syntax.dns1123_label))},
    "certificates.v1.ClusterTrustBundleSpec": {"trustBundle": (required(),)},
    "certificates.v1.PodCertificateRequestSpec": {
        "signerName": (required(),),
        "podName": (required(), text(syntax.dns1123_subdomain)),
        "podUID": (required(),),
        "serviceAccountName": (required(), text(syntax.dns1123_subdomain)),
        "serviceAccountUID": (required(),),
        "nodeName": (required(), text(syntax.dns1123_subdomain)),
        "nodeUID": (required(),),
        "maxExpirationSeconds": (
            between(
                3600,
                7_862_400,
                low="must be in the range [3600, 7862400]",
                high="must be in the range [3600, 7862400]",
            ),
        ),
        "stubPKCS10Request": (required(),),
    },
    "storagemigration.v1.StorageVersionMigrationSpec": {"resource": ()},
    "io.k8s.apimachinery.pkg.apis.meta.v1.GroupResource": {"resource": (required(),)},
    "resource.v1.DeviceClaimConfiguration": {"opaque": (required(),)},
    "resource.v1.DeviceClassConfiguration": {"opaque": (required(),)},
    "resource.v1.DeviceClassSpec": {"extendedResourceName": (_extended_resource,)},
    "resource.v1.DeviceRequest": {
        "name": (lambda value, path: said(syntax.dns1123_label)(value or "", path),)
    },
    "storage.v1.CSIDriverSpec": {
        "fsGroupPolicy": (one_of("File", "None", "ReadWriteOnceWithFSType"),),
        "volumeLifecycleModes": (_driver_modes,),
        "nodeAllocatableUpdatePeriodSeconds": (at_least(10, " seconds"),),
        ITSELF: (_driver_tokens,),
    },
    "storage.v1.CSIStorageCapacity": {"storageClassName": (required(),)},
    "storage.v1.StorageClass": {
        "provisioner": (required(), text(_lowered(syntax.qualified_name))),
        "reclaimPolicy": (one_of("Delete", "Retain"),),
        "allowedTopologies": (_distinct_terms,),
    },
    "storage.v1.VolumeAttachmentSpec": {
        "attacher": (required(), text(_lowered(syntax.dns1123_subdomain))),
        "source": (),
        "nodeName": (lambda value, path: said(syntax.dns1123_subdomain)(value or "", path),),
    },
    "storage.v1.VolumeAttachmentSource": {ITSELF: (_attached_source,)},
}
EVERYTHING: Final = combined(TABLE, newer_constraints.TABLE)
CONSTRAINTS: Final = Constraints(EVERYTHING)
_BEYOND_ENUMS: Final = Constraints(EVERYTHING, enums=False)


def constrained(group: str, version: str, kind: str, validate: Hook) -> Hook:
    """Return *validate* of a kind that has more rules, with those of its spec, each told once."""
    schema = _schema(group, version, kind)

    def validate_all(new: Object, old: Object | None) -> list[FieldError]:
        errors = validate(new, old)
        if old is not None and new.get("spec") == old.get("spec"):
            return errors
        found = _BEYOND_ENUMS.violations(schema, {"spec": new.get("spec")})
        return [*errors, *(error for error in found if error not in errors)]

    return validate_all


def validate_status(group: str, version: str, kind: str) -> Hook:
    """Return what evaluates writes to the status of a kind."""
    schema = _schema(group, version, kind)
    return lambda new, _old: list(CONSTRAINTS.violations(schema, {"status": new.get("status")}))


def _schema(group: str, version: str, kind: str) -> Schema:
    schema = builtin.schema_of(group, version, kind)
    if schema is None:
        raise LookupError(f"{group} {version} {kind} has no schema")
    return schema
