"""The looks of hollow nodes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from berth.cluster.resources import Object
from berth.kube.objects.amounts import Amount, amount
from berth.kube.objects.quantity import Quantity
from berth.runtime.clock import rfc3339
from berth.runtime.release import PATCHES, RELEASE

HEALTHY_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "is posting ready status"),
)
UNDER_PRESSURE: Mapping[str, tuple[str, str]] = {
    "MemoryPressure": ("KubeletHasInsufficientMemory", "has insufficient memory available"),
    "DiskPressure": ("KubeletHasDiskPressure", "has disk pressure"),
    "PIDPressure": ("KubeletHasInsufficientPID", "has insufficient PID available"),
}
"""Reason and message of a condition that is True."""

OWN_CONDITIONS = frozenset(type_ for type_, *_ in HEALTHY_CONDITIONS)


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """What the hollow nodes of a pool have in common. Resources are quantities."""

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
    reserved: Mapping[str, str] = field(default_factory=dict)
    """What of the capacity pods do not get."""
    release: str = RELEASE
    """Of Kubernetes, that their kubelets are of."""

    def allocatable(self) -> dict[str, str]:
        """Return what pods get."""
        return {name: str(each) for name, each in without(self.capacity(), self.reserved).items()}

    def capacity(self) -> dict[str, str]:
        """Return what the machine has."""
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
        return {
            "capacity": self.capacity(),
            "allocatable": self.allocatable(),
            **self.health(name, boots=0, now=now),
            "addresses": [
                {"type": "InternalIP", "address": host_ip(index)},
                {"type": "Hostname", "address": name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        }

    def health(
        self, name: str, *, boots: int, now: float, pressure: Collection[str] = ()
    ) -> Object:
        """Return the part of the status that tells that a node is well after *boots* restarts.

        *pressure* are the conditions of pressure that are True all the same.
        """
        version = f"v{PATCHES[self.release]}-berth"
        return {
            "conditions": conditions(pressure, now=now),
            "nodeInfo": {
                "machineID": name,
                "systemUUID": name,
                "bootID": boot_id(name, boots),
                "kernelVersion": "hollow",
                "osImage": "berth hollow node",
                "containerRuntimeVersion": "hollow://1",
                "kubeletVersion": version,
                "kubeProxyVersion": version,
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        }

    def _labels(self, name: str, index: int) -> dict[str, str]:
        labels = {
            "beta.kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
        }
        if self.zones:
            labels["topology.kubernetes.io/region"] = self.region
            labels["topology.kubernetes.io/zone"] = f"zone-{index % self.zones + 1}"
        return {**labels, **self.labels}


@dataclass(frozen=True, slots=True)
class NodePool:
    """So many nodes of one shape."""

    count: int
    template: NodeTemplate = field(default_factory=NodeTemplate)

    def names(self) -> list[str]:
        """Return the names of the nodes; they sort as they count."""
        width = len(str(self.count - 1))
        return [f"{self.template.prefix}{index:0{width}}" for index in range(self.count)]


def without(capacity: Mapping[str, Quantity], reserved: Mapping[str, str]) -> dict[str, Quantity]:
    """Return quantities without those that are *reserved*, nothing below zero."""
    found: dict[str, Quantity] = dict(capacity)
    for name, quantity in reserved.items():
        if name in found:
            whole, part = amount(found[name]), amount(quantity)
            binary = whole.binary or part.binary
            found[name] = str(Amount(max(whole.nanos - part.nanos, 0), binary))
    return found


def conditions(pressure: Collection[str], *, now: float) -> list[Object]:
    """Return the conditions of a node that works, of which those in *pressure* are True."""
    stamp = rfc3339(now)
    found = []
    for type_, healthy, *told in HEALTHY_CONDITIONS:
        status, (reason, message) = healthy, told
        if type_ in pressure:
            status, (reason, message) = "True", UNDER_PRESSURE[type_]
        found.append(
            {
                "type": type_,
                "status": status,
                "lastHeartbeatTime": stamp,
                "lastTransitionTime": stamp,
                "reason": reason,
                "message": f"kubelet {message}",
            }
        )
    return found


def boot_id(name: str, boots: int) -> str:
    """Return the boot ID of a machine that was restarted *boots* times."""
    return f"{name}-{boots}" if boots else name


def host_ip(index: int) -> str:
    """Return the address of the node with that number; nothing answers there."""
    return f"172.{18 + (index >> 16)}.{(index >> 8) & 255}.{index & 255}"


def pod_network(index: int) -> str:
    """Return the first three bytes of the addresses of a node's pods."""
    return f"10.{(64 + (index >> 8)) & 255}.{index & 255}"
