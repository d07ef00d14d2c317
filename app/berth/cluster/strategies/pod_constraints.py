"""The constraints of pods, alone or in a template: a part of :mod:`.constraint_table`.

Order and sentences are those of ``ValidatePodSpec`` in pkg/apis/core/validation.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from berth.cluster.resources import Object
from berth.cluster.schemas import builtin
from berth.cluster.strategies import metadata, quantities, selectors, syntax
from berth.cluster.strategies.constraints import (
    Owners,
    Plain,
    Within,
    above,
    between,
    distinct,
    empty,
    named,
    of_each,
    one_of,
    port,
    required,
    said,
    shown,
    spelled,
    text,
)
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.selectors import parse_canonical_int64

Errors = Iterator[FieldError]

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
NODE_OPERATORS: Final = (*selectors.OPERATORS, "Gt", "Lt")
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
IPC_SYSCTLS: Final = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
"""How kernel parameters of the namespace of interprocess communication begin."""
VOLUME_SOURCES: Final = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs",
    "iscsi", "glusterfs", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "flocker",
    "downwardAPI", "fc", "flexVolume", "configMap", "azureFile", "vsphereVolume", "quobyte",
    "photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO",
    "csi", "ephemeral", "image",
)  # fmt: skip
"""Of pods, in the order in which upstream looks for them."""
VARIABLE_SOURCES: Final = (
    "fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef",
)  # fmt: skip
SEVERAL: Final = "may not have more than one field specified at a time"

_MODE: Final = between(0, 0o777, "must be a number between 0 and 0777 (octal), both inclusive")
_positive: Final = above(0, "must be greater than zero")


def variable_name(value: str) -> list[str]:
    if all(" " <= char <= "~" and char != "=" for char in value):
        return []
    return [
        "a valid environment variable name must consist only of printable ASCII characters other "
        "than '='"
    ]


def absolute(path: str) -> list[str]:
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


def check_mounts(mounts: list[Object] | None, path: str, owners: Owners) -> Errors:
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


def check_devices(devices: list[Object] | None, path: str, owners: Owners) -> Errors:
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


def check_unique_volume(volume: Object, path: str, owners: Owners) -> Errors:
    name, before = volume.get("name"), owners[-2]["volumes"][: _place(path)[1]]
    if name and any(each.get("name") == name for each in before):
        yield field_errors.duplicate(f"{path}.name", name)


# Containers.


def check_port_names(ports: list[Object] | None, path: str) -> Errors:
    names = [each.get("name") or None for each in ports or ()]
    for index, name in enumerate(names):
        if name and name in names[:index] and not syntax.port_name(name):
            yield field_errors.duplicate(f"{path}[{index}].name", name)


def check_unique_name(container: Object, path: str, owners: Owners) -> Errors:
    """Evaluate whether no container before this one, nor one that it runs beside, has its name."""
    name, spec = container.get("name"), owners[-2]
    kind, index = _place(path)
    kinds = ("containers", "initContainers", "ephemeralContainers")
    before = [each for one in kinds[: kinds.index(kind)] for each in spec.get(one) or ()]
    if name and any(each.get("name") == name for each in (*before, *spec[kind][:index])):
        yield field_errors.duplicate(f"{path}.name", name)


def check_policy_of_restarts(policy: str | None, path: str, owners: Owners) -> Errors:
    kind = path.rpartition("[")[0].rpartition(".")[2]
    if policy is None:
        if owners[-1].get("restartPolicyRules"):
            detail = "must specify restartPolicy when restart rules are used"
            yield field_errors.required(path, detail)
    elif kind == "ephemeralContainers":
        yield field_errors.forbidden(path, "cannot be set for an Ephemeral Container")
    else:
        yield from one_of("Always", "OnFailure", "Never")(policy, path)


def probe_of(kind: str) -> Within:
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


def check_variable_source(source: Object, path: str, owners: Owners) -> Errors:
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


def check_privileges(context: Object, path: str) -> Errors:
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


def check_profile(profile: Object, path: str) -> Errors:
    kind, here = profile.get("type"), f"{path}.localhostProfile"
    local = profile.get("localhostProfile")
    if kind == "Localhost":
        yield from required("must be set when seccomp type is Localhost")(local, here)
        yield from text(syntax.descending)(local, here)
    elif local is not None:
        detail = "can only be set when seccomp type is Localhost"
        yield field_errors.invalid(here, local, detail)


# The pod.


def check_host_ports(spec: Object, path: str) -> Errors:
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


def check_context(context: Object | None, path: str, owners: Owners) -> Errors:
    spec = owners[-1]
    if spec.get("hostNetwork"):
        yield from _host_network(spec, path.rpartition(".")[0])
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        here = f"{path}.shareProcessNamespace"
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield field_errors.invalid(here, spec["shareProcessNamespace"], detail)


def check_sysctls(sysctls: list[Object] | None, path: str, owners: Owners) -> Errors:
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


def check_sub_path(mount: Object, path: str) -> Errors:
    mounts = path.rpartition("[")[0]  # upstream does not say which of them
    sub_path, expression = mount.get("subPath"), mount.get("subPathExpr")
    yield from text(syntax.descending)(sub_path, f"{mounts}.subPath")
    if sub_path and expression:
        detail = "subPathExpr and subPath are mutually exclusive"
        yield field_errors.invalid(f"{path}.subPathExpr", expression, detail)
    yield from text(syntax.descending)(expression, f"{mounts}.subPathExpr")


def check_dns(config: Object | None, path: str, owners: Owners) -> Errors:
    if owners[-1].get("dnsPolicy") != "None":
        return
    if config is None:
        detail = "must provide `dnsConfig` when `dnsPolicy` is None"
        yield field_errors.required(path, detail)
    elif not config.get("nameservers"):
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield field_errors.required(f"{path}.nameservers", detail)


def dns_search(value: str) -> list[str]:
    return [] if value == "." else syntax.dns1123_subdomain(value.removesuffix("."))


def check_operating_system(os: Object | None, path: str) -> Errors:
    name = os.get("name") if os is not None else ""
    if os is not None and not name:
        yield field_errors.required(f"{path}.name", "cannot be empty")
    elif name and name not in ("linux", "windows"):
        yield field_errors.not_supported(path, name, ("linux", "windows"))


def check_windows(os: Object | None, path: str, owners: Owners) -> Errors:
    """Refuse what a pod for another operating system cannot have."""
    context, here = owners[-1].get("securityContext") or {}, path.rpartition(".")[0]
    if (os or {}).get("name") == "linux" and context.get("windowsOptions"):
        detail = "windows options cannot be set for a linux pod"
        yield field_errors.forbidden(f"{here}.securityContext.windowsOptions", detail)


def check_gates(gates: list[Object] | None, path: str) -> Errors:
    yield from of_each(lambda gate, at: spelled(syntax.qualified_name)(gate.get("name"), at))(
        gates, path
    )
    names = [gate.get("name") or "" for gate in gates or ()]
    yield from distinct()(names, path)


def check_overhead(overhead: Object | None, path: str) -> Errors:
    yield from quantities.container_resources({"limits": overhead}, path)


# Affinity, spreading, tolerations.


def check_node_requirement(requirement: Object, path: str, owners: Owners) -> Errors:
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


def check_label_keys(found: list[str] | None, path: str, owners: Owners) -> Errors:
    if found and owners[-1].get("labelSelector") is None:
        detail = "must not be specified when labelSelector is not set"
        yield field_errors.forbidden(path, detail)
    else:
        yield from of_each(said(syntax.qualified_name))(found, path)


def check_mismatches(found: list[str] | None, path: str, owners: Owners) -> Errors:
    yield from check_label_keys(found, path, owners)
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


def check_weight(weight: int | None, path: str) -> Iterable[FieldError]:
    return between(1, 100, "must be in the range 1-100")(weight or 0, path)


def check_topology_key(key: str | None, path: str) -> Errors:
    yield from required("can not be empty")(key, path)
    yield from text(syntax.qualified_name)(key, path)


def check_domains(count: int | None, path: str, owners: Owners) -> Errors:
    policy = owners[-1].get("whenUnsatisfiable") or ""
    yield from _positive(count, path)
    if count is not None and policy != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {policy}"
        yield field_errors.invalid(path, count, detail)


def check_distinct_spread(spec: Object, path: str) -> Errors:
    pairs = [
        f"{{{each.get('topologyKey') or ''}, {each.get('whenUnsatisfiable') or ''}}}"
        for each in spec.get("topologySpreadConstraints") or ()
    ]
    here = f"{path}.topologySpreadConstraints"
    yield from distinct(at=".{topologyKey, whenUnsatisfiable}")(pairs, here)


def check_toleration(toleration: Object, path: str) -> Errors:
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


def check_claim_sources(claim: Object, path: str) -> Errors:
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


def check_wanted_port(value: int | str | None, path: str) -> Iterable[FieldError]:
    return port(0 if value is None else value, path)


def check_without_group(responders: list[Object] | None, path: str, owners: Owners) -> Errors:
    """A pod of a group cannot have responders (1.37 spec N7.3)."""
    if responders and owners[-1].get("schedulingGroup"):
        yield field_errors.forbidden(path, "may not be set together with `schedulingGroup`")


def check_template_metadata(meta: Object | None, path: str) -> list[FieldError]:
    """Evaluate labels and annotations of a template, which upstream blames without metadata."""
    given, here = meta or {}, path.removesuffix(".metadata")
    return [
        *labels(given.get("labels"), f"{here}.labels"),
        *metadata.validate_annotations(given.get("annotations"), f"{here}.annotations"),
    ]


def check_template_spec(spec: Object | None, path: str) -> Iterable[FieldError]:
    refuse = empty("ephemeral containers not allowed in pod template")
    return refuse((spec or {}).get("ephemeralContainers"), f"{path}.ephemeralContainers")


def check_container_port(number: int | None, path: str) -> Iterable[FieldError]:
    return port(number, path) if number else [field_errors.required(path)]


def check_dns_option(option: Object, path: str) -> Iterable[FieldError]:
    return required("must not be empty")(option.get("name"), path)
