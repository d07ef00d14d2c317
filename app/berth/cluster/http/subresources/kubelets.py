"""The address of a node's kubelet, and the error when it cannot be reached."""

from typing import Final

from berth.cluster import errors
from berth.cluster.errors import StatusError
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from berth.cluster.storage.store import NotFoundError, Store

NODES: Final = find("", "v1", "nodes")
KUBELET_PORT: Final = 10250
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
        known = {
            address.get("type"): address.get("address") for address in status.get("addresses") or []
        }
        found = (known[each] for each in ADDRESS_TYPES if known.get(each))
        self._host: str = next(found, self._name)
        endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
        self._port: int = endpoint.get("Port") or KUBELET_PORT

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
    """Return the kubelet of that node, or raise a 404."""
    try:
        return Kubelet(store.get(NODES.storage_key, "", node).decode())
    except NotFoundError:
        raise errors.not_found(NODES, node) from None


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
