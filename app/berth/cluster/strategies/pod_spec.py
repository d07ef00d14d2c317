"""The pod spec, alone or in a template: what it may say."""

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from berth.cluster.strategies import metadata, quantities, syntax, taints
from berth.cluster.strategies.affinity import (
    Affinity,
    TopologySpreadConstraint,
    validate_affinity,
    validate_spread,
)
from berth.cluster.strategies.quantities import ResourceRequirements
from berth.cluster.strategies.shape import Int32, Int64, Shape
from berth.cluster.strategies.taints import Toleration
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.quantity import Quantities

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
PROTOCOLS = ("SCTP", "TCP", "UDP")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")


class ContainerPort(Shape, frozen=True):
    name: str | None = None
    container_port: Int32 | None = None
    host_port: Int32 | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    protocol: str | None = None


class NamedEntry(Shape, frozen=True):
    """Of environment variables, gates, claims: things told apart by name."""

    name: str | None = None


class Volume(NamedEntry, frozen=True):
    """The sources listed are those that have defaults."""

    config_map: dict[str, Any] | None = None
    secret: dict[str, Any] | None = None
    projected: dict[str, Any] | None = None


class VolumeMount(Shape, frozen=True):
    name: str | None = None
    mount_path: str | None = None


class Container(Shape, frozen=True):
    name: str | None = None
    image: str | None = None
    image_pull_policy: str | None = None
    restart_policy: str | None = None
    ports: list[ContainerPort] | None = None
    resources: ResourceRequirements | None = None
    env: list[NamedEntry] | None = None
    volume_mounts: list[VolumeMount] | None = None
    liveness_probe: dict[str, Any] | None = None
    readiness_probe: dict[str, Any] | None = None
    startup_probe: dict[str, Any] | None = None


class PodSpec(Shape, frozen=True):
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    volumes: list[Volume] | None = None
    restart_policy: str | None = None
    dns_policy: str | None = None
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    node_name: str | None = None
    node_selector: dict[str, str] | None = None
    host_network: bool | None = None
    scheduler_name: str | None = None
    priority: Int32 | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    scheduling_gates: list[NamedEntry] | None = None
    resource_claims: list[NamedEntry] | None = None


NO_SPEC = PodSpec()


def validate(
    spec: PodSpec, path: str, *, claimed_volumes: Collection[str] = ()
) -> list[FieldError]:
    """Evaluate a pod spec after defaulting; *path* is ``spec`` or ``spec.template.spec``.

    *claimed_volumes* are those that a template leaves to be added to each pod.
    """
    errors = _validate_named(spec.volumes or [], f"{path}.volumes", syntax.dns1123_label)
    mountable = {volume.name for volume in spec.volumes or [] if volume.name} | {*claimed_volumes}
    errors += _validate_containers(spec, path, mountable)
    if spec.restart_policy not in RESTART_POLICIES:
        errors.append(_unknown(f"{path}.restartPolicy", spec.restart_policy, RESTART_POLICIES))
    if spec.dns_policy not in DNS_POLICIES:
        errors.append(_unknown(f"{path}.dnsPolicy", spec.dns_policy, DNS_POLICIES))
    errors += _validate_numbers(spec, path)
    errors += _validate_names(spec, path)
    errors += metadata.validate_labels(spec.node_selector, f"{path}.nodeSelector")
    errors += validate_affinity(spec.affinity, f"{path}.affinity")
    errors += taints.validate_tolerations(spec.tolerations or [], f"{path}.tolerations")
    errors += validate_spread(
        spec.topology_spread_constraints or [], f"{path}.topologySpreadConstraints"
    )
    for name, quantity in (spec.overhead or {}).items():
        errors += quantities.validate_quantity(quantity, f"{path}.overhead.{name}")
    errors += quantities.validate_requirements(spec.resources, f"{path}.resources")
    errors += _validate_gates(spec, path)
    if spec.preemption_policy and spec.preemption_policy not in PREEMPTION_POLICIES:
        errors.append(
            _unknown(f"{path}.preemptionPolicy", spec.preemption_policy, PREEMPTION_POLICIES)
        )
    return errors


def _unknown(path: str, value: str | None, supported: Sequence[str]) -> FieldError:
    if not value:
        return field_errors.required(path)
    return field_errors.not_supported(path, value, supported)


def _validate_named(
    entries: Sequence[NamedEntry | Container], path: str, rule: syntax.Rule
) -> list[FieldError]:
    """Evaluate the names of *entries*: given, well spelled, different."""
    errors = []
    seen = set()
    for index, entry in enumerate(entries):
        here, name = f"{path}[{index}].name", entry.name or ""
        if not name:
            errors.append(field_errors.required(here))
            continue
        errors += [field_errors.invalid(here, name, text) for text in rule(name)]
        if name in seen:
            errors.append(field_errors.duplicate(here, name))
        seen.add(name)
    return errors


def _validate_containers(spec: PodSpec, path: str, volumes: set[str]) -> list[FieldError]:
    containers, init = spec.containers or [], spec.init_containers or []
    if not containers:
        return [field_errors.required(f"{path}.containers")]
    errors = _validate_named(containers, f"{path}.containers", syntax.dns1123_label)
    errors += _validate_named(init, f"{path}.initContainers", syntax.dns1123_label)
    taken = {container.name for container in containers if container.name}
    for index, container in enumerate(init):
        if container.name in taken:
            here = f"{path}.initContainers[{index}].name"
            errors.append(field_errors.duplicate(here, container.name))
    host_network = bool(spec.host_network)
    for field, each in (("containers", containers), ("initContainers", init)):
        for index, container in enumerate(each):
            here = f"{path}.{field}[{index}]"
            errors += _validate_container(container, here, host_network=host_network)
            errors += _validate_mounts(container, here, volumes)
    return errors + _validate_host_ports(containers, f"{path}.containers")


def _validate_container(container: Container, path: str, *, host_network: bool) -> list[FieldError]:
    errors = []
    image = container.image or ""
    if not image:
        errors.append(field_errors.required(f"{path}.image"))
    elif image != image.strip():
        detail = "must not have leading or trailing whitespace"
        errors.append(field_errors.invalid(f"{path}.image", image, detail))
    if container.image_pull_policy not in PULL_POLICIES:
        here = f"{path}.imagePullPolicy"
        errors.append(_unknown(here, container.image_pull_policy, PULL_POLICIES))
    if container.restart_policy and container.restart_policy not in RESTART_POLICIES:
        here = f"{path}.restartPolicy"
        errors.append(_unknown(here, container.restart_policy, RESTART_POLICIES))
    errors += _validate_ports(container.ports or [], f"{path}.ports", host_network=host_network)
    for index, variable in enumerate(container.env or []):
        if not variable.name:
            errors.append(field_errors.required(f"{path}.env[{index}].name"))
    return errors + quantities.validate_requirements(container.resources, f"{path}.resources")


def _validate_mounts(container: Container, path: str, volumes: set[str]) -> list[FieldError]:
    errors = []
    seen = set()
    for index, mount in enumerate(container.volume_mounts or []):
        here = f"{path}.volumeMounts[{index}]"
        if not mount.name:
            errors.append(field_errors.required(f"{here}.name"))
        elif mount.name not in volumes:
            errors.append(FieldError(f"{here}.name", "FieldValueNotFound", _not_found(mount.name)))
        if not mount.mount_path:
            errors.append(field_errors.required(f"{here}.mountPath"))
        elif mount.mount_path in seen:
            errors.append(
                field_errors.invalid(f"{here}.mountPath", mount.mount_path, "must be unique")
            )
        seen.add(mount.mount_path)
    return errors


def _not_found(name: str) -> str:
    return f"Not found: {field_errors.quoted(name)}"


def _validate_ports(
    ports: list[ContainerPort], path: str, *, host_network: bool
) -> list[FieldError]:
    errors = []
    names = set()
    for index, port in enumerate(ports):
        here = f"{path}[{index}]"
        if port.name:
            errors += [
                field_errors.invalid(f"{here}.name", port.name, text)
                for text in syntax.port_name(port.name)
            ]
            if port.name in names:
                errors.append(field_errors.duplicate(f"{here}.name", port.name))
            names.add(port.name)
        if not port.container_port:
            errors.append(field_errors.required(f"{here}.containerPort"))
        errors += [
            field_errors.invalid(f"{here}.{field}", number, text)
            for field, number in (
                ("containerPort", port.container_port),
                ("hostPort", port.host_port),
            )
            if number
            for text in syntax.port_number(number)
        ]
        if host_network and port.host_port and port.host_port != port.container_port:
            detail = "must match `hostPort` when `hostNetwork` is true"
            errors.append(
                field_errors.invalid(f"{here}.containerPort", port.container_port, detail)
            )
        if port.protocol not in PROTOCOLS:
            errors.append(_unknown(f"{here}.protocol", port.protocol, PROTOCOLS))
    return errors


def _validate_host_ports(containers: list[Container], path: str) -> list[FieldError]:
    errors = []
    taken = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.ports or []):
            if not port.host_port:
                continue
            place = f"{port.protocol}/{port.host_ip or ''}/{port.host_port}"
            if place in taken:
                here = f"{path}[{index}].ports[{number}].hostPort"
                errors.append(field_errors.duplicate(here, place))
            taken.add(place)
    return errors


def _validate_numbers(spec: PodSpec, path: str) -> list[FieldError]:
    errors = []
    grace, deadline = spec.termination_grace_period_seconds, spec.active_deadline_seconds
    if grace is not None and grace < 0:
        here = f"{path}.terminationGracePeriodSeconds"
        errors.append(field_errors.invalid(here, grace, "must be greater than or equal to 0"))
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        here = f"{path}.activeDeadlineSeconds"
        detail = "must be between 1 and 2147483647, inclusive"
        errors.append(field_errors.invalid(here, deadline, detail))
    if spec.priority is not None and not -(2**31) <= spec.priority < 2**31:
        detail = "must be between -2147483648 and 2147483647, inclusive"
        errors.append(field_errors.invalid(f"{path}.priority", spec.priority, detail))
    return errors


def _validate_names(spec: PodSpec, path: str) -> list[FieldError]:
    return [
        field_errors.invalid(f"{path}.{field}", name, text)
        for field, name in (
            ("nodeName", spec.node_name),
            ("priorityClassName", spec.priority_class_name),
            ("schedulerName", spec.scheduler_name),
        )
        if name
        for text in syntax.dns1123_subdomain(name)
    ]


def _validate_gates(spec: PodSpec, path: str) -> list[FieldError]:
    gates = spec.scheduling_gates or []
    errors = _validate_named(gates, f"{path}.schedulingGates", syntax.qualified_name)
    claims = spec.resource_claims or []
    return errors + _validate_named(claims, f"{path}.resourceClaims", syntax.dns1123_label)
