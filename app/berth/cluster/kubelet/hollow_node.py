"""What one hollow node has, and which pods it takes: the kubelet's own admission."""

from collections.abc import Mapping
from dataclasses import dataclass

from berth.cluster.kubelet.node_template import host_ip, pod_network
from berth.objects.quantity import NANO, milli_value, parse, value

ADDRESSES = 250
"""Of a pod network, those that pods get; more pods than that share them."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a node does not take a pod, as a kubelet reports it."""

    reason: str
    message: str


class HollowNode:
    """The books of one node: what is used of what there is."""

    def __init__(self, name: str, *, index: int, allocatable: Mapping[str, str]) -> None:
        self.name = name
        self.index = index
        self.host_ip = host_ip(index)
        self._allocatable = {each: parse(amount) for each, amount in allocatable.items()}
        self._used: dict[str, int] = {}
        self._pods: dict[str, Mapping[str, int]] = {}
        self._addresses_given = 0

    def admit(self, uid: str, requests: Mapping[str, int]) -> Rejection | None:
        """Take the pod *uid*, or say what there is not enough of. *requests* in nano units."""
        wanted = {"pods": NANO, **requests}
        for name, amount in wanted.items():
            used, capacity = self._used.get(name, 0), self._allocatable.get(name, 0)
            if amount and used + amount > capacity:
                return _rejection(name, requested=amount, used=used, capacity=capacity)
        self.take(uid, requests)
        return None

    def resize(self, uid: str, requests: Mapping[str, int]) -> Rejection | None:
        """Give a pod that runs here other resources, or say why not: for now, or ever."""
        held = self._pods.get(uid, {})
        for name, amount in requests.items():
            capacity = self._allocatable.get(name, 0)
            used = self._used.get(name, 0) - held.get(name, 0)
            if amount > capacity:
                message = _text(name, "capacity", requested=amount, capacity=capacity)
                return Rejection("Infeasible", message)
            if amount > held.get(name, 0) and used + amount > capacity:
                message = _text(name, "resource", requested=amount, used=used, capacity=capacity)
                return Rejection("Deferred", message)
        self.release(uid)
        self.take(uid, requests)
        return None

    def take(self, uid: str, requests: Mapping[str, int]) -> None:
        """Count a pod that runs here, whether it fits or not."""
        if uid in self._pods:
            return
        self._pods[uid] = {"pods": NANO, **requests}
        for name, amount in self._pods[uid].items():
            self._used[name] = self._used.get(name, 0) + amount

    def release(self, uid: str) -> None:
        """Give back what the pod used; nothing happens if it is not here."""
        for name, amount in self._pods.pop(uid, {}).items():
            self._used[name] -= amount

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


def _rejection(name: str, *, requested: int, used: int, capacity: int) -> Rejection:
    text = _text(name, "resource", requested=requested, used=used, capacity=capacity)
    return Rejection(f"OutOf{name}", f"Pod was rejected: {text}")


def _text(name: str, lacking: str, **amounts: int) -> str:
    shown = milli_value if name == "cpu" else value
    told = ", ".join(f"{what}: {shown(amount)}" for what, amount in amounts.items())
    return f"Node didn't have enough {lacking}: {name}, {told}"
