"""The level ``baseline``: nothing that is known to lead out of a container."""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from berth.cluster.pod_security.violations import (
    Check,
    Violation,
    containers_of,
    containers_where,
    named,
    plural,
    quoted,
    security_of,
    setters,
)
from berth.cluster.resources import Object

APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
CAPABILITIES: Final = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
SELINUX_TYPES: Final = frozenset(
    ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
)
SYSCTLS: Final = frozenset(
    [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    ]
)


Added: TypeAlias = Callable[[Object], list[str]]
"""Returns the capabilities that a container adds and may not."""


def apparmor(metadata: Object, spec: Object) -> Violation | None:
    def unconfined(holder: Object) -> str:
        kind: str = (security_of(holder).get("appArmorProfile") or {}).get("type") or ""
        return kind if kind not in ("", "Localhost", "RuntimeDefault") else ""

    found = [
        f'{key}="{value}"'
        for key, value in sorted((metadata.get("annotations") or {}).items())
        if key.startswith(APPARMOR)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    ]
    found += sorted({each for each in map(unconfined, (spec, *containers_of(spec))) if each})
    if not found:
        return None
    return Violation(plural("forbidden AppArmor profile", found), ", ".join(found))


def capabilities(_metadata: Object, spec: Object) -> Violation | None:
    def added(container: Object) -> list[str]:
        capabilities = security_of(container).get("capabilities") or {}
        return [each for each in capabilities.get("add") or () if each not in CAPABILITIES]

    return not_default("non-default capabilities", spec, added)


def not_default(reason: str, spec: Object, added: Added) -> Violation | None:
    """Return the violation of those who add what they may not."""
    names = containers_where(spec, lambda each: bool(added(each)))
    if not names:
        return None
    found = sorted({each for container in containers_of(spec) for each in added(container)})
    detail = f"must not include {quoted(found)} in securityContext.capabilities.add"
    return Violation(reason, f"{named('container', names)} {detail}")


def host_namespaces(_metadata: Object, spec: Object) -> Violation | None:
    found = [f"{each}=true" for each in ("hostNetwork", "hostPID", "hostIPC") if spec.get(each)]
    return Violation("host namespaces", ", ".join(found)) if found else None


def host_path_volumes(_metadata: Object, spec: Object) -> Violation | None:
    found = [
        volume.get("name") or "" for volume in spec.get("volumes") or () if "hostPath" in volume
    ]
    return Violation("hostPath volumes", named("volume", found)) if found else None


def host_ports(_metadata: Object, spec: Object) -> Violation | None:
    def ports(container: Object) -> Iterator[str]:
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield str(port["hostPort"])

    names = containers_where(spec, lambda each: any(ports(each)))
    if not names:
        return None
    found = sorted({port for container in containers_of(spec) for port in ports(container)})
    uses = "uses" if len(names) == 1 else "use"
    said = f"{named('container', names)} {uses} {plural('hostPort', found)} {', '.join(found)}"
    return Violation("hostPort", said)


def host_probes(_metadata: Object, spec: Object) -> Violation | None:
    names = containers_where(spec, lambda each: any(_hosts(each)))
    if not names:
        return None
    found = sorted({host for container in containers_of(spec) for host in _hosts(container)})
    uses = "uses" if len(names) == 1 else "use"
    said = f"{named('container', names)} {uses} probe or lifecycle {plural('host', found)}"
    return Violation("probe or lifecycle host", f"{said} {quoted(found)}")


def _hosts(container: Object) -> Iterator[str]:
    """Yield the hosts that a kubelet is to talk to for a container."""
    lifecycle = container.get("lifecycle") or {}
    handlers = [
        container.get(f"{kind}Probe") or {} for kind in ("liveness", "readiness", "startup")
    ]
    handlers += [lifecycle.get("postStart") or {}, lifecycle.get("preStop") or {}]
    for handler in handlers:
        for kind in ("httpGet", "tcpSocket"):
            host = (handler.get(kind) or {}).get("host")
            if host:
                yield host


def privileged(_metadata: Object, spec: Object) -> Violation | None:
    names = containers_where(spec, lambda each: bool(security_of(each).get("privileged")))
    if not names:
        return None
    said = "must not set securityContext.privileged=true"
    return Violation("privileged", f"{named('container', names)} {said}")


def proc_mount(_metadata: Object, spec: Object) -> Violation | None:
    def unusual(container: Object) -> str:
        kind: str = security_of(container).get("procMount") or "Default"
        return "" if kind == "Default" else kind

    names = containers_where(spec, lambda each: bool(unusual(each)))
    if not names:
        return None
    found = sorted({unusual(each) for each in containers_of(spec) if unusual(each)})
    said = f"must not set securityContext.procMount to {quoted(found)}"
    return Violation("procMount", f"{named('container', names)} {said}")


def selinux_options(_metadata: Object, spec: Object) -> Violation | None:
    def options(security: Object) -> Object:
        found: Object = security.get("seLinuxOptions") or {}
        return found

    def is_bad(security: Object) -> bool:
        found = options(security)
        bad_type = (found.get("type") or "") not in SELINUX_TYPES
        return bad_type or bool(found.get("user") or found.get("role"))

    who = setters(spec, is_bad)
    if not who:
        return None
    all_options = [options(security_of(each)) for each in (spec, *containers_of(spec))]
    types = sorted({all_option.get("type") or "" for all_option in all_options} - SELINUX_TYPES)
    said = [f"{plural('type', types)} {quoted(types)}"] if types else []
    said += [
        f"{field} may not be set"
        for field in ("user", "role")
        if any(all_option.get(field) for all_option in all_options)
    ]
    why = f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(said)}"
    return Violation("seLinuxOptions", why)


def seccomp(_metadata: Object, spec: Object) -> Violation | None:
    """Refuse to run without system call filter, where that is said."""

    def kind(security: Object) -> str:
        found: str = (security.get("seccompProfile") or {}).get("type") or ""
        return "" if found in ("Localhost", "RuntimeDefault") else found

    who = setters(spec, lambda security: bool(kind(security)))
    if not who:
        return None
    kinds = sorted({kind(security_of(each)) for each in (spec, *containers_of(spec))} - {""})
    said = f"must not set securityContext.seccompProfile.type to {quoted(kinds)}"
    return Violation("seccompProfile", f"{who} {said}")


def sysctls(_metadata: Object, spec: Object) -> Violation | None:
    names = [sysctl.get("name") or "" for sysctl in security_of(spec).get("sysctls") or ()]
    found = [name for name in names if name not in SYSCTLS]
    return Violation("forbidden sysctls", ", ".join(found)) if found else None


def windows_host_process(_metadata: Object, spec: Object) -> Violation | None:
    who = setters(spec, lambda each: bool((each.get("windowsOptions") or {}).get("hostProcess")))
    if not who:
        return None
    return Violation(
        "hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true"
    )


CHECKS: Final[tuple[Check, ...]] = (
    apparmor,
    capabilities,
    host_namespaces,
    host_path_volumes,
    host_ports,
    host_probes,
    privileged,
    proc_mount,
    selinux_options,
    seccomp,
    sysctls,
    windows_host_process,
)
"""In the order of messages."""
