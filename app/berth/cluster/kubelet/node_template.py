"""How hollow nodes look."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from berth.clock import rfc3339
from berth.cluster.resources import Object

VERSION = "v1.36.0-berth"

HEALTHY_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "is posting ready status"),
)
OWN_CONDITIONS = frozenset(type_ for type_, *_ in HEALTHY_CONDITIONS)


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """What all hollow nodes have in common. Resources are quantities."""

    prefix: str = "node-"
    """Names are this and a number."""
    cpu: str = "4"
    memory: str = "16Gi"
    pods: int = 110
    resources: Mapping[str, str] = field(default_factory=dict)
    """Further resources, such as ``example.com/gpu``; wins over the three above."""
    zones: int = 3
    """Zones the nodes are spread over; 0: no zone label."""
    region: str = "region-1"
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()

    def names(self, count: int) -> list[str]:
        """Return the names of *count* nodes; they sort as they count."""
        width = len(str(count - 1))
        return [f"{self.prefix}{index:0{width}}" for index in range(count)]

    def allocatable(self) -> dict[str, str]:
        return {
            "cpu": self.cpu,
            "memory": self.memory,
            "ephemeral-storage": "100Gi",
            "pods": str(self.pods),
            **self.resources,
        }

    def node(self, name: str, *, index: int, now: float) -> Object:
        """Return the Node that a kubelet registers."""
        spec: Object = {"podCIDR": f"{pod_network(index)}.0/24"}
        if self.taints:
            spec["taints"] = [dict(taint) for taint in self.taints]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": self._labels(name, index)},
            "spec": spec,
            "status": self.status(name, index=index, now=now),
        }

    def status(self, name: str, *, index: int, now: float) -> Object:
        """Return the status of a node that is well."""
        amounts = self.allocatable()
        return {
            "capacity": amounts,
            "allocatable": amounts,
            **self.health(name, boots=0, now=now),
            "addresses": [
                {"type": "InternalIP", "address": host_ip(index)},
                {"type": "Hostname", "address": name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        }

    def health(self, name: str, *, boots: int, now: float) -> Object:
        """Return the part of the status that tells that a node is well after *boots* restarts."""
        stamp = rfc3339(now)
        return {
            "conditions": [
                {
                    "type": type_,
                    "status": status,
                    "lastHeartbeatTime": stamp,
                    "lastTransitionTime": stamp,
                    "reason": reason,
                    "message": f"kubelet {message}",
                }
                for type_, status, reason, message in HEALTHY_CONDITIONS
            ],
            "nodeInfo": {
                "machineID": name,
                "systemUUID": name,
                "bootID": boot_id(name, boots),
                "kernelVersion": "hollow",
                "osImage": "berth hollow node",
                "containerRuntimeVersion": "hollow://1",
                "kubeletVersion": VERSION,
                "kubeProxyVersion": VERSION,
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        }

    def _labels(self, name: str, index: int) -> dict[str, str]:
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
        }
        if self.zones:
            labels["topology.kubernetes.io/region"] = self.region
            labels["topology.kubernetes.io/zone"] = f"zone-{index % self.zones + 1}"
        return {**labels, **self.labels}


def boot_id(name: str, boots: int) -> str:
    """Return the boot ID of a machine that was restarted *boots* times."""
    return f"{name}-{boots}" if boots else name


def host_ip(index: int) -> str:
    """Return the address of the node with that number; nothing answers there."""
    return f"172.{18 + (index >> 16)}.{(index >> 8) & 255}.{index & 255}"


def pod_network(index: int) -> str:
    """Return the first three bytes of the addresses of a node's pods."""
    return f"10.{(64 + (index >> 8)) & 255}.{index & 255}"
