"""One hollow machine: what it has, what is used of it, and whether it works."""

from collections.abc import Collection, Mapping
from enum import Enum, auto
from itertools import chain
from typing import Final

from berth.cluster.kubelet import admission
from berth.cluster.kubelet.admission import Rejection, shortage
from berth.cluster.kubelet.eviction import admission as eviction_admission
from berth.cluster.kubelet.node_template import host_ip, pod_network
from berth.cluster.pods.kubelet import KubeletPod
from berth.kube.objects.host_ports import HostPort, host_ports
from berth.kube.objects.node import Node
from berth.kube.objects.quantity import NANO, Quantities, parse
from berth.kube.objects.resources import PODS, is_extended, pod_requests
from berth.kube.objects.taints import COMPARISONS

ADDRESSES: Final = 250
"""Of a pod network, those that pods get; more pods than that share them."""

FAILURE: Final = "berth.dev/failure"
"""Annotation of a Node: how its machine fails. Its hollow kubelet obeys; without it, all is well.
"""


class Failure(Enum):
    """How a machine fails, by the value of the annotation."""

    STOPPED = "stopped"
    """It is down, and its containers with it; they are restarted when it is back."""
    UNREACHABLE = "unreachable"
    """It is cut off from the network; its containers go on."""


class Return(Enum):
    """How a machine has come back."""

    RESTARTED = auto()
    RECONNECTED = auto()


FAILURES: Final[Mapping[str, Failure]] = {each.value: each for each in Failure}


def failure_of(annotations: Mapping[str, str]) -> Failure | None:
    """Return how the machine of a node with *annotations* fails.

    A value that is none of ours counts as missing.
    """
    return FAILURES.get(annotations.get(FAILURE, ""))


class HollowNode:
    """The books of one node. ``node`` is the Node as the API server has it; None: not known yet.

    ``failure`` is how the machine fails, ``boots`` how often it was restarted.
    """

    def __init__(
        self,
        name: str,
        *,
        index: int,
        allocatable: Mapping[str, str],
        features: Collection[str] = (),
    ) -> None:
        """*features* are the feature gates that are on."""
        self._comparisons = COMPARISONS in features
        self.name = name
        self.index = index
        self.host_ip = host_ip(index)
        self.node: Node | None = None
        self.failure: Failure | None = None
        self.pressure: tuple[str, ...] = ()
        """The conditions of pressure that are True."""
        self.boots = 0
        self.images: dict[str, int] = {}
        """Bytes of the images that were pulled, by name."""
        self.reported_images: dict[str, int] = {}
        """Those that the status has."""
        self._pulls: dict[str, float] = {}
        """By image that is being pulled: the unix time at which it is there."""
        self._was_stopped = False
        self._devices: Collection[str] = [each for each in allocatable if is_extended(each)]
        """The resources that device plugins of ours report."""
        self._read: Quantities = {}
        """Of which quantities ``_allocatable`` was made last."""
        self._allocatable = {each: parse(amount) for each, amount in allocatable.items()}
        self._used: dict[str, int] = {}
        self._pods: dict[str, Mapping[str, int]] = {}
        self._ports: dict[str, tuple[HostPort, ...]] = {}
        """By uid, of pods that have any."""
        self._addresses_given = 0

    def observe(self, node: Node) -> Return | None:
        """Take in what the API server has of this node; return how it is back, if it is."""
        self.node = node
        allocatable = node.status.allocatable
        if allocatable and allocatable != self._read:
            self._read = allocatable
            self._allocatable = {each: parse(amount) for each, amount in allocatable.items()}
        before, self.failure = self.failure, failure_of(node.metadata.annotations)
        if self.failure is Failure.STOPPED:
            self._was_stopped = True
        if before is None or self.failure is not None:
            return None
        if not self._was_stopped:
            return Return.RECONNECTED
        self._was_stopped = False
        self.boots += 1
        return Return.RESTARTED

    def admit(self, pod: KubeletPod) -> Rejection | None:
        """Take *pod*, or say why not."""
        refusal = eviction_admission.admit(pod, self.pressure, qos_class=pod.status.qos_class)
        if refusal is not None:
            return Rejection(eviction_admission.EVICTED, refusal)
        requests = requests_of(pod)
        rejection = admission.os_rejection(pod) or admission.resource_rejection(
            requests, used=self._used, allocatable=self._allocatable, devices=self._devices
        )
        if rejection is None and self.node is not None:
            used_ports = chain.from_iterable(self._ports.values())
            rejection = admission.placement_rejection(
                pod, self.node, used_ports, comparisons=self._comparisons
            )
        if rejection is None:
            self._take(pod, requests)
        return rejection

    def resize(self, pod: KubeletPod) -> Rejection | None:
        """Give a pod that runs here other resources, or say why not: for now, or ever."""
        requests = requests_of(pod)
        held = self._pods.get(pod.metadata.uid, {})
        for name, amount in requests.items():
            if name not in self._allocatable and is_extended(name):
                continue
            capacity = self._allocatable.get(name, 0)
            used = self._used.get(name, 0) - held.get(name, 0)
            if amount > capacity:
                message = shortage(name, "capacity", requested=amount, capacity=capacity)
                return Rejection("Infeasible", message)
            if amount > held.get(name, 0) and used + amount > capacity:
                message = shortage(name, "resource", requested=amount, used=used, capacity=capacity)
                return Rejection("Deferred", message)
        self.release(pod.metadata.uid)
        self._take(pod, requests)
        return None

    def take(self, pod: KubeletPod) -> None:
        """Count a pod that runs here, whether it fits or not."""
        if pod.metadata.uid not in self._pods:
            self._take(pod, requests_of(pod))

    def _take(self, pod: KubeletPod, requests: Mapping[str, int]) -> None:
        uid = pod.metadata.uid
        self._pods[uid] = held = {**requests, PODS: NANO}
        for name, amount in held.items():
            self._used[name] = self._used.get(name, 0) + amount
        ports = host_ports(pod)
        if ports:
            self._ports[uid] = ports

    def release(self, uid: str) -> None:
        """Give back what the pod used; nothing happens if it is not here."""
        for name, amount in self._pods.pop(uid, {}).items():
            self._used[name] -= amount
        self._ports.pop(uid, None)

    def pull(self, image: str, now: float, seconds: float) -> float:
        """Pull *image*, which takes *seconds*, after those before it; return when it is there."""
        if image not in self._pulls:
            self._pulls[image] = max([now, *self._pulls.values()]) + seconds
        return self._pulls[image]

    def pulled(self, image: str, size_bytes: int | None) -> None:
        """Note that a pull has ended; *size_bytes* is None if the image did not come."""
        self._pulls.pop(image, None)
        if size_bytes is not None:
            self.images[image] = size_bytes

    def has_pod_ip(self, pod_ip: str) -> None:
        """Note the address of a pod that ran here before: the next one is another."""
        network, _, number = pod_ip.rpartition(".")
        if network == pod_network(self.index) and number.isdecimal():
            self._addresses_given = max(self._addresses_given, int(number) - 1)

    def next_pod_ip(self) -> str:
        self._addresses_given += 1
        return f"{pod_network(self.index)}.{2 + (self._addresses_given - 1) % ADDRESSES}"

    def check_invariants(self) -> None:
        """Raise unless what is used is the sum of the pods. For tests."""
        total: dict[str, int] = dict.fromkeys(self._used, 0)
        for requests in self._pods.values():
            for name, amount in requests.items():
                total[name] += amount
        assert total == self._used, self.name


def requests_of(pod: KubeletPod) -> dict[str, int]:
    """Return what *pod* takes of its node, in nano units."""
    return pod_requests(pod, use_status=False, pod_level=True)
