"""The address of a node's kubelet, and the error when it cannot be reached."""

from typing import Final

from berth.cluster import errors
from berth.cluster.errors import StatusError
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from berth.cluster.storage.store import NotFoundError, Store

NODES: Final = find("", "v1", "nodes")
PODS: Final = find("", "v1", "pods")
KUBELET_PORT: Final = 10250
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
HOLLOW: Final = "hollow://"
ADDRESS_TYPES: Final = ("InternalIP", "ExternalIP", "Hostname")
"""In the order in which they are tried, as kubeadm sets ``--kubelet-preferred-address-types``."""


class Kubelet:
    """The kubelet of a node that is stored."""

    def __init__(self, node: Object) -> None:
        status: Object = node.get("status") or {}
        self._name: str = node["metadata"]["name"]
        runtime = (status.get("nodeInfo") or {}).get("containerRuntimeVersion") or ""
        self.is_hollow: bool = runtime.startswith(HOLLOW)
        self._addresses = [
            (each.get("type") or "", each.get("address") or "")
            for each in status.get("addresses") or ()
        ]
        self._label: str = (node["metadata"].get("labels") or {}).get(HOSTNAME_LABEL) or ""
        endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
        self._port: int = endpoint.get("Port") or KUBELET_PORT

    @property
    def _host(self) -> str:
        """The address that is preferred; 500: there is none of a type that is looked for."""
        known = {"Hostname": self._label} | dict(reversed(self._addresses))
        for wanted in ADDRESS_TYPES:
            if host := known.get(wanted):
                return host
        told = " ".join(f"{{{kind} {address}}}" for kind, address in self._addresses)
        raise unreachable(f"no preferred addresses found; known addresses: [{told}]")

    @property
    def address(self) -> str:
        return host_and_port(self._host, self._port)

    def host_and_port(self, port: str) -> str:
        """Return the address of a port of the node; that of the kubelet when *port* is empty."""
        return host_and_port(self._host, port or self._port)

    @property
    def why(self) -> str:
        """Why a connection to it fails."""
        hollow = f" (node {self._name} is hollow: no container runs there)"
        return refused(self.address) + (hollow if self.is_hollow else "")


def kubelet_of(store: Store, node: str) -> Kubelet:
    """Return the kubelet of that node, or raise a 404, in which it is a pod that is not found."""
    try:
        return Kubelet(store.get(NODES.storage_key, "", node).decode())
    except NotFoundError:
        raise errors.not_found(PODS, node) from None


def refused(address: str) -> str:
    """Say that nobody listens there."""
    return f"dial tcp {address}: connect: connection refused"


def unreachable(message: str) -> StatusError:
    """A backend did not answer: what a real server passes on without a reason of its own."""
    return StatusError(500, "", message)


def service_unavailable(message: str) -> StatusError:
    return StatusError(503, "ServiceUnavailable", message)


def host_and_port(host: str, port: str | int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
