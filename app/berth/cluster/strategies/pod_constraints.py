"""The constraints of pods, alone or in a template: a part of :mod:`.constraint_table`.

Order and sentences are those of ``ValidatePodSpec`` in pkg/apis/core/validation.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from berth.cluster.resources import Object
from berth.cluster.schemas import builtin
from berth.cluster.strategies import metadata, quantities, selectors, syntax
from berth.cluster.strategies.constraints import (
    ITSELF,
    Owners,
    Plain,
    Rule,
    Rules,
    Table,
    Within,
    above,
    anything,
    at_least,
    at_least_one,
    at_most,
    at_most_one,
    between,
    chosen,
    distinct,
    empty,
    enumerated,
    exactly_one,
    first_of,
    ip,
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
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.selectors import parse_canonical_int64

Errors = Iterator[FieldError]

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
NODE_OPERATORS: Final = (*selectors.OPERATORS, "Gt", "Lt")
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
IPC_SYSCTLS: Final = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
"""How kernel parameters of the namespace of interprocess communication begin."""
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
VOLUME_SOURCES: Final = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs",
    "iscsi", "glusterfs", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "flocker",
    "downwardAPI", "fc", "flexVolume", "configMap", "azureFile", "vsphereVolume", "quobyte",
    "photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO",
    "csi", "ephemeral", "image",
)  # fmt: skip
"""Of pods, in the order in which upstream looks for them."""
HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
VARIABLE_SOURCES: Final = (
    "fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef",
)  # fmt: skip
SEVERAL: Final = "may not have more than one field specified at a time"

_ID_RANGE: Final = between(0, 2**31 - 1)
_MODE: Final = between(0, 0o777, "must be a number between 0 and 0777 (octal), both inclusive")
_positive: Final = above(0, "must be greater than zero")


def _variable_name(value: str) -> list[str]:
    if all(" " <= char <= "~" and char != "=" for char in value):
        return []
    return [
        "a valid environment variable name must consist only of printable ASCII characters other "
        "than '='"
    ]


def _absolute(path: str) -> list[str]:
    return [] if path.startswith("/") else ["must be an absolute path"]


def labels(values: Object | None, path: str) -> list[FieldError]:
    """Evaluate a map of labels."""
    return metadata.validate_labels(values, path)


def _place(path: str) -> tuple[str, int]:
    """Return the list that an object at *path* is in, and where in it."""
    whole, _, index = path.rpartition("[")
    return whole.rpartition(".")[2], int(index.rstrip("]"))


# Volumes and mounts.


def _volumes(owners: Owners) -> list[Object]:
    """Return the volumes of the pod around a container, with those that a StatefulSet adds."""
    spec = owners[-2]
    claims: list[Object] = [
        {"name": (claim.get("metadata") or {}).get("name"), "persistentVolumeClaim": {}}
        for owner in owners[:-2]
        for claim in owner.get("volumeClaimTemplates") or ()
    ]
    return [*(spec.get("volumes") or ()), *claims]


def _mounts(mounts: list[Object] | None, path: str, owners: Owners) -> Errors:
    volumes = {volume.get("name") or None for volume in _volumes(owners)} if mounts else set()
    devices = owners[-1].get("volumeDevices") or ()
    seen: set[str] = set()
    for index, mount in enumerate(mounts or ()):
        here, name, where = f"{path}[{index}]", mount.get("name"), mount.get("mountPath") or ""
        if not name:
            yield field_errors.required(f"{here}.name")
        if name not in volumes:
            yield field_errors.not_found(f"{here}.name", name or "")
        if not where:
            yield field_errors.required(f"{here}.mountPath")
        if where in seen:
            yield field_errors.invalid(f"{here}.mountPath", where, "must be unique")
        seen.add(where)
        for field, key, detail in (
            ("name", "name", "must not already exist in volumeDevices"),
            ("mountPath", "devicePath", "must not already exist as a path in volumeDevices"),
        ):
            if any(device.get(key) == mount.get(field) for device in devices):
                yield field_errors.invalid(f"{here}.{field}", mount.get(field), detail)


def _devices(devices: list[Object] | None, path: str, owners: Owners) -> Errors:
    volumes = {volume.get("name"): volume for volume in _volumes(owners)} if devices else {}
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(devices or ()):
        here, name, where = (
            f"{path}[{index}]", device.get("name") or "", device.get("devicePath") or "",
        )  # fmt: skip
        if not name:
            yield field_errors.required(f"{here}.name")
        if name in names:
            yield field_errors.invalid(f"{here}.name", name, "must be unique")
        if (volume := volumes.get(name)) is None:
            yield field_errors.not_found(f"{here}.name", name)
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            detail = (
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block "
                "mode"
            )
            yield field_errors.invalid(f"{here}.name", name, detail)
        if not where:
            yield field_errors.required(f"{here}.devicePath")
        elif where in paths:
            yield field_errors.invalid(f"{here}.devicePath", where, "must be unique")
        elif syntax.no_backsteps(where):
            detail = "can not contain backsteps ('..')"
            yield field_errors.invalid(f"{here}.devicePath", where, detail)
        names.add(name)
        paths.add(where)


def _unique_volume(volume: Object, path: str, owners: Owners) -> Errors:
    name, before = volume.get("name"), owners[-2]["volumes"][: _place(path)[1]]
    if name and any(each.get("name") == name for each in before):
        yield field_errors.duplicate(f"{path}.name", name)


# Containers.


def _port_names(ports: list[Object] | None, path: str) -> Errors:
    names = [each.get("name") or None for each in ports or ()]
    for index, name in enumerate(names):
        if name and name in names[:index] and not syntax.port_name(name):
            yield field_errors.duplicate(f"{path}[{index}].name", name)


def _unique_name(container: Object, path: str, owners: Owners) -> Errors:
    """Evaluate whether no container before this one, nor one that it runs beside, has its name."""
    name, spec = container.get("name"), owners[-2]
    kind, index = _place(path)
    kinds = ("containers", "initContainers", "ephemeralContainers")
    before = [each for one in kinds[: kinds.index(kind)] for each in spec.get(one) or ()]
    if name and any(each.get("name") == name for each in (*before, *spec[kind][:index])):
        yield field_errors.duplicate(f"{path}.name", name)


def _policy_of_restarts(policy: str | None, path: str, owners: Owners) -> Errors:
    kind = path.rpartition("[")[0].rpartition(".")[2]
    if policy is None:
        if owners[-1].get("restartPolicyRules"):
            detail = "must specify restartPolicy when restart rules are used"
            yield field_errors.required(path, detail)
    elif kind == "ephemeralContainers":
        yield field_errors.forbidden(path, "cannot be set for an Ephemeral Container")
    else:
        yield from one_of("Always", "OnFailure", "Never")(policy, path)


def _probe_of(kind: str) -> Within:
    """Evaluate what is particular to a kind of probe."""

    def rule(probe: Object | None, path: str, owners: Owners) -> Errors:
        if probe is None:
            return
        if kind != "readiness" and probe.get("successThreshold") not in (None, 1):
            here = f"{path}.successThreshold"
            yield field_errors.invalid(here, probe["successThreshold"], "must be 1")
        seconds = probe.get("terminationGracePeriodSeconds")
        if kind == "readiness" and seconds is not None:
            here = f"{path}.terminationGracePeriodSeconds"
            yield field_errors.invalid(here, seconds, "must not be set for readinessProbes")

    return Within(rule)


def _variable_source(source: Object, path: str, owners: Owners) -> Errors:
    count = sum(source.get(field) is not None for field in VARIABLE_SOURCES)
    if not count:
        detail = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
            "`secretKeyRef` or `fileKeyRef`"
        )
        yield field_errors.invalid(path, "", detail)
    elif owners[-2].get("value"):
        yield field_errors.invalid(path, "", "may not be specified when `value` is not empty")
    elif count > 1:
        yield field_errors.invalid(path, "", SEVERAL)


def _privileges(context: Object, path: str) -> Errors:
    if context.get("allowPrivilegeEscalation") is False:
        here = f"{path}.allowPrivilegeEscalation"
        detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        if context.get("privileged"):
            yield field_errors.invalid(here, context["allowPrivilegeEscalation"], detail)
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
            yield field_errors.invalid(
                here, context["allowPrivilegeEscalation"], f"{detail}CAP_SYS_ADMIN"
            )


def _profile(profile: Object, path: str) -> Errors:
    kind, here = profile.get("type"), f"{path}.localhostProfile"
    local = profile.get("localhostProfile")
    if kind == "Localhost":
        yield from required("must be set when seccomp type is Localhost")(local, here)
        yield from text(syntax.descending)(local, here)
    elif local is not None:
        detail = "can only be set when seccomp type is Localhost"
        yield field_errors.invalid(here, local, detail)


# The pod.


def _host_ports(spec: Object, path: str) -> Errors:
    """Refuse ports of a node that two containers want."""
    taken: set[str] = set()
    for index, container in enumerate(spec.get("containers") or ()):
        for number, each in enumerate(container.get("ports") or ()):
            if not each.get("hostPort"):
                continue
            protocol, address = each.get("protocol") or "", each.get("hostIP") or ""
            place = f"{protocol}/{address}/{each['hostPort']}"
            if place in taken:
                here = f"{path}.containers[{index}].ports[{number}].hostPort"
                yield field_errors.duplicate(here, place)
            taken.add(place)


def _host_network(spec: Object, path: str) -> Errors:
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            for number, each in enumerate(container.get("ports") or ()):
                wanted, given = each.get("hostPort"), each.get("containerPort")
                if wanted and wanted != given:
                    here = f"{path}.{field}[{index}].ports[{number}].containerPort"
                    detail = "must match `hostPort` when `hostNetwork` is true"
                    yield field_errors.invalid(here, given, detail)


def _context(context: Object | None, path: str, owners: Owners) -> Errors:
    spec = owners[-1]
    if spec.get("hostNetwork"):
        yield from _host_network(spec, path.rpartition(".")[0])
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        here = f"{path}.shareProcessNamespace"
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield field_errors.invalid(here, spec["shareProcessNamespace"], detail)


def _sysctls(sysctls: list[Object] | None, path: str, owners: Owners) -> Errors:
    """Evaluate kernel parameters, which may not be of a namespace that is the host's."""
    names: set[str] = set()
    spec = owners[-2] if len(owners) > 1 else {}
    for index, sysctl in enumerate(sysctls or ()):
        name, here = sysctl.get("name") or "", f"{path}[{index}].name"
        problems = list(named(syntax.sysctl)(name, here))
        if not problems and name in names:
            problems.append(field_errors.duplicate(here, name))
        yield from problems
        names.add(name)
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith("net."):
            detail = "may not be specified when 'hostNetwork' is true"
            yield field_errors.invalid(here, name, detail)
        elif spec.get("hostIPC") and dotted.startswith(IPC_SYSCTLS):
            detail = "may not be specified when 'hostIPC' is true"
            yield field_errors.invalid(here, name, detail)


def _sub_path(mount: Object, path: str) -> Errors:
    mounts = path.rpartition("[")[0]  # upstream does not say which of them
    sub_path, expression = mount.get("subPath"), mount.get("subPathExpr")
    yield from text(syntax.descending)(sub_path, f"{mounts}.subPath")
    if sub_path and expression:
        detail = "subPathExpr and subPath are mutually exclusive"
        yield field_errors.invalid(f"{path}.subPathExpr", expression, detail)
    yield from text(syntax.descending)(expression, f"{mounts}.subPathExpr")


def _dns(config: Object | None, path: str, owners: Owners) -> Errors:
    if owners[-1].get("dnsPolicy") != "None":
        return
    if config is None:
        detail = "must provide `dnsConfig` when `dnsPolicy` is None"
        yield field_errors.required(path, detail)
    elif not config.get("nameservers"):
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield field_errors.required(f"{path}.nameservers", detail)


def _dns_search(value: str) -> list[str]:
    return [] if value == "." else syntax.dns1123_subdomain(value.removesuffix("."))


def _operating_system(os: Object | None, path: str) -> Errors:
    name = os.get("name") if os is not None else ""
    if os is not None and not name:
        yield field_errors.required(f"{path}.name", "cannot be empty")
    elif name and name not in ("linux", "windows"):
        yield field_errors.not_supported(path, name, ("linux", "windows"))


def _windows(os: Object | None, path: str, owners: Owners) -> Errors:
    """Refuse what a pod for another operating system cannot have."""
    context, here = owners[-1].get("securityContext") or {}, path.rpartition(".")[0]
    if (os or {}).get("name") == "linux" and context.get("windowsOptions"):
        detail = "windows options cannot be set for a linux pod"
        yield field_errors.forbidden(f"{here}.securityContext.windowsOptions", detail)


def _gates(gates: list[Object] | None, path: str) -> Errors:
    yield from of_each(lambda gate, at: spelled(syntax.qualified_name)(gate.get("name"), at))(
        gates, path
    )
    names = [gate.get("name") or "" for gate in gates or ()]
    yield from distinct()(names, path)


def _overhead(overhead: Object | None, path: str) -> Errors:
    yield from quantities.container_resources({"limits": overhead}, path)


# Affinity, spreading, tolerations.


def _node_requirement(requirement: Object, path: str, owners: Owners) -> Errors:
    if ".matchFields[" in path:
        yield from _field_requirement(requirement, path)
        return
    yield from selectors.validate_requirement(requirement, path, NODE_OPERATORS)
    if f"{REQUIRED}." in path:
        yield from selectors.validate_values(requirement, path)


def _field_requirement(requirement: Object, path: str) -> Errors:
    operator, key = requirement.get("operator") or "", requirement.get("key") or ""
    values = requirement.get("values") or []
    if operator not in ("In", "NotIn"):
        detail = "not a valid selector operator"
        yield field_errors.invalid(f"{path}.operator", operator, detail)
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield field_errors.required(f"{path}.values", detail)
    if key == "metadata.name":
        yield from of_each(said(syntax.dns1123_subdomain))(values, f"{path}.values")
    else:
        yield field_errors.invalid(f"{path}.key", key, "not a valid field selector key")


def _label_keys(found: list[str] | None, path: str, owners: Owners) -> Errors:
    if found and owners[-1].get("labelSelector") is None:
        detail = "must not be specified when labelSelector is not set"
        yield field_errors.forbidden(path, detail)
    else:
        yield from of_each(said(syntax.qualified_name))(found, path)


def _mismatches(found: list[str] | None, path: str, owners: Owners) -> Errors:
    yield from _label_keys(found, path, owners)
    here = path.replace("mismatchLabelKeys", "matchLabelKeys")
    for index, key in enumerate(owners[-1].get("matchLabelKeys") or ()):
        if key in (found or ()):
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield field_errors.invalid(f"{here}[{index}]", key, detail)


def in_one_place(rule: syntax.Rule, *, without: str = "") -> Plain:
    """Evaluate the texts of a list, which is blamed as a whole, *without* the end of its name."""
    return lambda values, path: [
        error for value in values or () for error in said(rule)(value, path.removesuffix(without))
    ]


def _weight(weight: int | None, path: str) -> Iterable[FieldError]:
    return between(1, 100, "must be in the range 1-100")(weight or 0, path)


def _topology_key(key: str | None, path: str) -> Errors:
    yield from required("can not be empty")(key, path)
    yield from text(syntax.qualified_name)(key, path)


def _domains(count: int | None, path: str, owners: Owners) -> Errors:
    policy = owners[-1].get("whenUnsatisfiable") or ""
    yield from _positive(count, path)
    if count is not None and policy != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {policy}"
        yield field_errors.invalid(path, count, detail)


def _distinct_spread(spec: Object, path: str) -> Errors:
    pairs = [
        f"{{{each.get('topologyKey') or ''}, {each.get('whenUnsatisfiable') or ''}}}"
        for each in spec.get("topologySpreadConstraints") or ()
    ]
    here = f"{path}.topologySpreadConstraints"
    yield from distinct(at=".{topologyKey, whenUnsatisfiable}")(pairs, here)


def _toleration(toleration: Object, path: str) -> Errors:
    """Evaluate a toleration. Admission refuses ``Lt`` and ``Gt`` while their gate is off."""
    operator, value = toleration.get("operator") or "", toleration.get("value") or ""
    here = f"{path}.operator"
    yield from text(syntax.qualified_name)(toleration.get("key"), f"{path}.key")
    if not toleration.get("key") and operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and '
        yield field_errors.invalid(here, operator, detail + 'all keys"')
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield field_errors.invalid(f"{path}.effect", toleration.get("effect") or "", detail)
    match operator:
        case "" | "Equal":
            complaints = syntax.label_value(value)
            yield from (field_errors.invalid(here, value, why) for why in complaints[:1])
        case "Exists":
            if value:
                whole = shown(builtin.schema("io.k8s.api.core.v1.Toleration"), toleration)
                detail = "value must be empty when `operator` is 'Exists'"
                yield field_errors.invalid(here, whole, detail)
        case "Lt" | "Gt":
            if parse_canonical_int64(value) is None:
                detail = "must be a valid decimal integer in canonical form"
                yield field_errors.invalid(f"{path}.value", value, detail)
        case _:
            yield field_errors.not_supported(here, operator, ("Equal", "Exists"))


def distinct_taints(taints: list[Object] | None, path: str) -> Errors:
    """Refuse taints of a node that have the same key and effect."""
    seen: set[tuple[Any, Any]] = set()
    for index, taint in enumerate(taints or ()):
        pair = taint.get("key"), taint.get("effect")
        if pair in seen:
            whole = shown(builtin.schema("io.k8s.api.core.v1.Taint"), taint)
            detail = "taints must be unique by key and effect pair"
            yield field_errors.duplicate(f"{path}[{index}]", whole, detail)
        seen.add(pair)


def _claim_sources(claim: Object, path: str) -> Errors:
    given = [
        field
        for field in ("resourceClaimName", "resourceClaimTemplateName")
        if claim.get(field) is not None
    ]
    whole = shown(builtin.schema("io.k8s.api.core.v1.PodResourceClaim"), claim)
    if len(given) > 1:
        detail = (
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        )
        yield field_errors.invalid(path, whole, detail)
    elif not given:
        detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        yield field_errors.invalid(path, whole, detail)


_RESTARTS: Final = chosen("Always", "OnFailure", "Never")
_CONTAINER: Final[dict[str, tuple[Rule, ...]]] = {
    "name": (named(syntax.dns1123_label),),
    "image": (required(),),
    "terminationMessagePolicy": (enumerated("FallbackToLogsOnError", "File"),),
    "ports": (_port_names,),
    "env": (),
    "envFrom": (),
    "volumeMounts": (Within(_mounts),),
    "volumeDevices": (Within(_devices),),
    "imagePullPolicy": (chosen(*PULL_POLICIES),),
    "resources": (),
    "resizePolicy": (),
    "securityContext": (),
    ITSELF: (Within(_unique_name),),
    "lifecycle": (),
    "livenessProbe": (_probe_of("liveness"),),
    "readinessProbe": (_probe_of("readiness"),),
    "startupProbe": (_probe_of("startup"),),
    "restartPolicy": (Within(_policy_of_restarts),),
    "restartPolicyRules": (),
}


def _wanted_port(value: int | str | None, path: str) -> Iterable[FieldError]:
    return port(0 if value is None else value, path)


_KEY: Final[dict[str, tuple[Rule, ...]]] = {
    "name": (required(),),
    "key": (required(), text(syntax.config_key)),
}


def _wanted_handler(number: int) -> tuple[Rule, ...]:
    handlers = HANDLERS[:number]
    return (
        at_most_one(handlers, "may not specify more than 1 handler type"),
        at_least_one(handlers, "must specify a handler type"),
    )


def _without_group(responders: list[Object] | None, path: str, owners: Owners) -> Errors:
    """A pod of a group cannot have responders (1.37 spec N7.3)."""
    if responders and owners[-1].get("schedulingGroup"):
        yield field_errors.forbidden(path, "may not be set together with `schedulingGroup`")


_DEFAULTS_OF_FILES: Final[Mapping[str, Rules]] = {
    "defaultMode": (_MODE,),
    "defaultUser": (_ID_RANGE,),
}

POD_TABLE: Final[Table] = {
    "core.v1.PodTemplateSpec": {
        "metadata": (
            lambda meta, path: [
                *labels((meta or {}).get("labels"), path.replace(".metadata", ".labels")),
                *metadata.validate_annotations(
                    (meta or {}).get("annotations"), path.replace(".metadata", ".annotations")
                ),
            ],
        ),
        "spec": (
            lambda spec, path: empty("ephemeral containers not allowed in pod template")(
                (spec or {}).get("ephemeralContainers"), f"{path}.ephemeralContainers"
            ),
        ),
    },
    "core.v1.PodSpec": {
        "volumes": (),
        "resourceClaims": (distinct("name"),),
        "containers": (required(),),
        "initContainers": (),
        "ephemeralContainers": (),
        "resources": (),
        "restartPolicy": (_RESTARTS,),
        "dnsPolicy": (chosen("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),),
        "terminationGracePeriodSeconds": (at_least(0),),
        "nodeSelector": (labels,),
        "securityContext": (Within(_context),),
        "affinity": (),
        "dnsConfig": (Within(_dns),),
        "readinessGates": (),
        "schedulingGates": (_gates,),
        "topologySpreadConstraints": (),
        ITSELF: (_distinct_spread, _host_ports),
        "serviceAccountName": (text(syntax.dns1123_subdomain),),
        "nodeName": (text(syntax.dns1123_subdomain),),
        "activeDeadlineSeconds": (between(1, 2**31 - 1),),
        "hostname": (text(syntax.dns1123_label),),
        "subdomain": (text(syntax.dns1123_label),),
        "tolerations": (),
        "hostAliases": (),
        "priority": (between(-(2**31), 2**31 - 1),),
        "priorityClassName": (text(syntax.dns1123_subdomain),),
        "runtimeClassName": (said(syntax.dns1123_subdomain),),
        "preemptionPolicy": (one_of(*PREEMPTION_POLICIES),),
        "overhead": (_overhead,),
        "os": (_operating_system, Within(_windows)),
        "hostnameOverride": (said(syntax.dns1123_subdomain),),
        "evictionResponders": (at_most(10), Within(_without_group)),
    },
    "core.v1.EvictionResponder": {"name": (named(syntax.qualified_name),)},
    "core.v1.Container": _CONTAINER,
    "core.v1.EphemeralContainer": _CONTAINER,
    "core.v1.ContainerPort": {
        "name": (text(syntax.port_name),),
        "containerPort": (
            lambda number, path: port(number, path) if number else [field_errors.required(path)],
        ),
        "hostPort": (lambda number, path: port(number or None, path),),
        "protocol": (chosen(*PROTOCOLS),),
    },
    "core.v1.EnvVar": {"name": (named(_variable_name),)},
    "core.v1.EnvVarSource": {ITSELF: (Within(_variable_source),)},
    "core.v1.ObjectFieldSelector": {"apiVersion": (required(),), "fieldPath": (required(),)},
    "core.v1.ResourceFieldSelector": {"resource": (required(),)},
    "core.v1.ConfigMapKeySelector": _KEY,
    "core.v1.SecretKeySelector": _KEY,
    "core.v1.EnvFromSource": {
        ITSELF: (
            exactly_one(
                ("configMapRef", "secretRef"),
                "must specify one of: `configMapRef` or `secretRef`",
                SEVERAL,
            ),
        ),
        "prefix": (text(_variable_name),),
    },
    "core.v1.ConfigMapEnvSource": {"name": (required(),)},
    "core.v1.SecretEnvSource": {"name": (required(),)},
    "core.v1.VolumeMount": {
        ITSELF: (_sub_path,),
        "mountPropagation": (one_of("Bidirectional", "HostToContainer", "None"),),
        "recursiveReadOnly": (one_of("Disabled", "Enabled", "IfPossible"),),
        "bindMountOptions": (at_most(3), of_each(one_of("nodev", "noexec", "nosuid")), distinct()),
    },
    "core.v1.ResourceRequirements": {ITSELF: (quantities.container_resources,)},
    "core.v1.ContainerResizePolicy": {
        "resourceName": (chosen("cpu", "memory"),),
        "restartPolicy": (chosen("NotRequired", "RestartContainer"),),
    },
    "core.v1.ContainerRestartRule": {
        "action": (chosen("Restart", "RestartAllContainers"),),
        "exitCodes": (present("must be specified"),),
    },
    "core.v1.ContainerRestartRuleOnExitCodes": {
        "operator": (chosen("In", "NotIn"),),
        "values": (at_most(255),),
    },
    "core.v1.LifecycleHandler": {ITSELF: _wanted_handler(5)},
    "core.v1.Probe": {
        ITSELF: _wanted_handler(4),
        "exec": (),
        "httpGet": (),
        "tcpSocket": (),
        "grpc": (),
        **dict.fromkeys(
            (
                "initialDelaySeconds",
                "timeoutSeconds",
                "periodSeconds",
                "successThreshold",
                "failureThreshold",
            ),
            (at_least(0),),
        ),
        "terminationGracePeriodSeconds": (above(0),),
    },
    "core.v1.ExecAction": {"command": (required(),)},
    "core.v1.HTTPGetAction": {
        "path": (required(),),
        "port": (_wanted_port,),
        "scheme": (one_of("HTTP", "HTTPS"),),
    },
    "core.v1.HTTPHeader": {"name": (spelled(syntax.header_name),)},
    "core.v1.TCPSocketAction": {"port": (_wanted_port,)},
    "core.v1.GRPCAction": {"port": (_wanted_port,)},
    "core.v1.SecurityContext": {
        "runAsUser": (_ID_RANGE,),
        "runAsGroup": (_ID_RANGE,),
        "procMount": (one_of("Default", "Unmasked"),),
        ITSELF: (_privileges,),
    },
    "core.v1.PodSecurityContext": {
        "fsGroup": (_ID_RANGE,),
        "runAsUser": (_ID_RANGE,),
        "runAsGroup": (_ID_RANGE,),
        "supplementalGroups": (of_each(_ID_RANGE),),
        "sysctls": (Within(_sysctls),),
        "fsGroupChangePolicy": (one_of("Always", "OnRootMismatch"),),
        "supplementalGroupsPolicy": (one_of("Merge", "Strict"),),
    },
    "core.v1.SeccompProfile": {
        "type": (chosen("Localhost", "RuntimeDefault", "Unconfined"),),
        ITSELF: (_profile,),
    },
    "core.v1.Affinity": {"nodeAffinity": (), "podAffinity": (), "podAntiAffinity": ()},
    "core.v1.NodeAffinity": {REQUIRED: (), PREFERRED: ()},
    "core.v1.NodeSelector": {
        "nodeSelectorTerms": (required("must have at least one node selector term"),)
    },
    "core.v1.NodeSelectorRequirement": {
        ITSELF: (Within(_node_requirement),),
        "operator": (anything,),
    },
    "core.v1.PreferredSchedulingTerm": {
        "weight": (_weight,),
        "preference": (),
    },
    "core.v1.PodAffinity": {REQUIRED: (), PREFERRED: ()},
    "core.v1.PodAntiAffinity": {REQUIRED: (), PREFERRED: ()},
    "core.v1.WeightedPodAffinityTerm": {
        "weight": (_weight,),
        "podAffinityTerm": (),
    },
    "core.v1.PodAffinityTerm": {
        "labelSelector": (selector,),
        "namespaceSelector": (selector,),
        "namespaces": (in_one_place(syntax.dns1123_label, without="s"),),
        "topologyKey": (_topology_key,),
        "matchLabelKeys": (Within(_label_keys),),
        "mismatchLabelKeys": (Within(_mismatches),),
    },
    "core.v1.TopologySpreadConstraint": {
        "maxSkew": (lambda value, path: _positive(value or 0, path),),
        "topologyKey": (_topology_key,),
        "whenUnsatisfiable": (known("DoNotSchedule", "ScheduleAnyway"),),
        "minDomains": (Within(_domains),),
        "nodeAffinityPolicy": (one_of("Honor", "Ignore"),),
        "nodeTaintsPolicy": (one_of("Honor", "Ignore"),),
        "labelSelector": (selector,),
        "matchLabelKeys": (Within(_label_keys),),
    },
    "core.v1.Toleration": {
        ITSELF: (_toleration,),
        "operator": (anything,),
        "effect": (lambda effect, path: one_of(*EFFECTS)(effect or None, path),),
    },
    "core.v1.Taint": {
        "key": (spelled(syntax.qualified_name),),
        "value": (text(syntax.label_value),),
        "effect": (chosen(*EFFECTS),),
    },
    "core.v1.HostAlias": {
        "ip": (lambda value, path: ip(value or "", path),),
        "hostnames": (in_one_place(syntax.dns1123_subdomain),),
    },
    "core.v1.PodReadinessGate": {"conditionType": (spelled(syntax.qualified_name),)},
    "core.v1.PodDNSConfig": {
        "nameservers": (at_most(3, "must not have more than 3 nameservers"), of_each(ip)),
        "searches": (
            at_most(32, "must not have more than 32 search paths"),
            of_each(said(_dns_search)),
        ),
    },
    "core.v1.PodDNSConfigOption": {
        ITSELF: (lambda option, path: required("must not be empty")(option.get("name"), path),)
    },
    "core.v1.PodResourceClaim": {
        "name": (named(syntax.dns1123_label),),
        ITSELF: (_claim_sources,),
        "resourceClaimName": (said(syntax.dns1123_subdomain),),
        "resourceClaimTemplateName": (said(syntax.dns1123_subdomain),),
    },
    # Volumes.
    "core.v1.Volume": {
        ITSELF: (
            at_most_one(VOLUME_SOURCES, "may not specify more than 1 volume type"),
            Within(_unique_volume),
        ),
        **dict.fromkeys(VOLUME_SOURCES, (first_of(*VOLUME_SOURCES),)),
        "name": (named(syntax.dns1123_label),),
    },
    "core.v1.HostPathVolumeSource": {
        "path": (required(), text(syntax.no_backsteps)),
        "type": (
            one_of(
                "",
                "BlockDevice",
                "CharDevice",
                "Directory",
                "DirectoryOrCreate",
                "File",
                "FileOrCreate",
                "Socket",
            ),
        ),
    },
    "core.v1.EmptyDirVolumeSource": {"mode": (_MODE,)},
    "core.v1.SecretVolumeSource": {"secretName": (required(),), **_DEFAULTS_OF_FILES},
    "core.v1.ConfigMapVolumeSource": {"name": (required(),), **_DEFAULTS_OF_FILES},
    "core.v1.DownwardAPIVolumeSource": _DEFAULTS_OF_FILES,
    "core.v1.ProjectedVolumeSource": _DEFAULTS_OF_FILES,
    "core.v1.ClusterTrustBundleProjection": {"user": (_ID_RANGE,)},
    "core.v1.PodCertificateProjection": {"user": (_ID_RANGE,)},
    "core.v1.SecretProjection": {"name": (required(),)},
    "core.v1.ConfigMapProjection": {"name": (required(),)},
    "core.v1.ServiceAccountTokenProjection": {
        "expirationSeconds": (
            between(
                600,
                2**32,
                "may not specify a duration less than 10 minutes",
                "may not specify a duration larger than 2^32 seconds",
            ),
        ),
        "path": (required(), text(syntax.descending)),
        "user": (_ID_RANGE,),
    },
    "core.v1.KeyToPath": {
        "key": (required(),),
        "path": (required(), text(syntax.descending)),
        "mode": (_MODE,),
        "user": (_ID_RANGE,),
    },
    "core.v1.DownwardAPIVolumeFile": {
        "path": (required(), text(syntax.descending)),
        "mode": (_MODE,),
        "user": (_ID_RANGE,),
    },
    "core.v1.NFSVolumeSource": {
        "server": (required(),),
        "path": (required(), text(_absolute)),
    },
    "core.v1.GitRepoVolumeSource": {
        "repository": (required(),),
        "directory": (text(syntax.descending),),
    },
    "core.v1.GCEPersistentDiskVolumeSource": {
        "pdName": (required(),),
        "partition": (between(0, 255),),
    },
    "core.v1.AWSElasticBlockStoreVolumeSource": {
        "volumeID": (required(),),
        "partition": (between(0, 255),),
    },
    "core.v1.PersistentVolumeClaimVolumeSource": {"claimName": (required(),)},
    "core.v1.EphemeralVolumeSource": {"volumeClaimTemplate": (required(),)},
    "core.v1.CSIVolumeSource": {"driver": (required(),)},
    "core.v1.LocalVolumeSource": {"path": (required(), text(syntax.no_backsteps))},
}
