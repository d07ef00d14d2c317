"""Host ports: which ports of its node a pod takes for itself (spec §4.5)."""

from collections.abc import Collection
from itertools import chain
from typing import Final, NamedTuple

from berth.kube.objects.pod import Pod

ANY_IP: Final = "0.0.0.0"


class HostPort(NamedTuple):
    ip: str
    protocol: str
    port: int


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the distinct host ports of sidecars and containers, with defaults filled in.

    Plain init containers do not count: their ports are free again before the pod serves.
    """
    if not any(c.ports for c in (*pod.spec.containers, *pod.spec.init_containers)):
        return ()
    sidecars = (c for c in pod.spec.init_containers if c.restart_policy == "Always")
    ports = (
        HostPort(port.host_ip or ANY_IP, port.protocol or "TCP", port.host_port)
        for container in chain(sidecars, pod.spec.containers)
        for port in container.ports
        if port.host_port > 0
    )
    return tuple(dict.fromkeys(ports))


def conflicts(wanted: Collection[HostPort], used: Collection[HostPort]) -> bool:
    """Whether a port of *wanted* is among *used*.

    The same protocol and port meet on the same address, and everywhere when one of the two is
    0.0.0.0; ``::`` is an address like others.
    """
    return any(
        want.protocol == use.protocol
        and want.port == use.port
        and (want.ip == use.ip or ANY_IP in (want.ip, use.ip))
        for want in wanted
        for use in used
    )
