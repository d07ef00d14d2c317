"""What hollow nodes report of themselves: that they exist, and that they live. Synchronous."""

import random
from collections.abc import Callable
from enum import Enum, auto

from berth.client.errors import AlreadyExistsError, ApiError, NotFoundError
from berth.clock import Clock, rfc3339_micro
from berth.cluster.actions import STRATEGIC_MERGE, Action, Create, Patch
from berth.cluster.kubelet.hollow_node import HollowNode
from berth.cluster.kubelet.node_template import NodeTemplate
from berth.cluster.resources import Object

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

RENEWALS = 4
"""A lease is renewed this often in its duration, as kubelets do: three may be lost."""

JITTER = 0.04
"""By which part of the interval a renewal may come later, so that nodes do not march in step."""

RETRY_SECONDS = 1.0

Schedule = Callable[[str, float], None]
"""Have the node with that name looked at in so many seconds."""


class Registration(Enum):
    NEW = auto()
    EXISTS = auto()
    DONE = auto()


class NodeReports:
    """Registers nodes, each once; whoever is deleted afterwards stays away, as with kubelets."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._nodes: dict[str, tuple[HollowNode, NodeTemplate]] = {}
        self._states: dict[str, Registration] = {}
        self._left = 0

    @property
    def all_registered(self) -> bool:
        return self._left == 0

    def add(self, node: HollowNode, template: NodeTemplate) -> None:
        """Have *node* registered, as *template* says that it looks."""
        self._nodes[node.name] = (node, template)
        self._states[node.name] = Registration.NEW
        self._left += 1

    def remove(self, name: str) -> None:
        """Report nothing of a node any more."""
        del self._nodes[name]
        self._left -= self._states.pop(name) is not Registration.DONE

    def step(self, name: str) -> Action | None:
        if name not in self._nodes:
            return None
        (node, template), now = self._nodes[name], self._clock.now()
        match self._states[name]:
            case Registration.NEW:
                body = template.node(name, index=node.index, now=now)
                return Create("/api/v1/nodes", body)
            case Registration.EXISTS:
                status = template.status(name, index=node.index, now=now)
                path = f"/api/v1/nodes/{name}/status"
                return Patch(path, {"status": status}, STRATEGIC_MERGE)
        return None

    def finished(self, name: str, error: ApiError | None) -> float | None:
        """Note how a report ended; return the seconds to the next one, None if there is none."""
        if name not in self._nodes:
            return None
        if error is None:
            self._states[name] = Registration.DONE
            self._left -= 1
            return None
        if isinstance(error, AlreadyExistsError):
            self._states[name] = Registration.EXISTS
            return 0.0
        if isinstance(error, NotFoundError):
            self._states[name] = Registration.NEW
        return RETRY_SECONDS


class Leases:
    """Keeps one lease per node. *seconds* is their duration."""

    def __init__(self, *, seconds: int, clock: Clock, rng: random.Random) -> None:
        self._seconds = seconds
        self._clock = clock
        self._rng = rng
        self._existing: set[str] = set()

    def first_delay(self) -> float:
        """Return when to make a node's lease, spread over the interval."""
        return self._rng.random() * self._seconds / RENEWALS

    def step(self, name: str) -> Action:
        spec = {"renewTime": rfc3339_micro(self._clock.now())}
        if name in self._existing:
            return Patch(f"{LEASES}/{name}", {"spec": spec})
        body: Object = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": self._seconds, **spec},
        }
        return Create(LEASES, body)

    def finished(self, name: str, error: ApiError | None) -> float:
        """Note how a renewal ended; return the seconds to the next one."""
        if isinstance(error, NotFoundError):
            self._existing.discard(name)
            return RETRY_SECONDS
        if isinstance(error, AlreadyExistsError):  # from before we were started
            self._existing.add(name)
            return 0.0
        if error is None:
            self._existing.add(name)
            interval = self._seconds / RENEWALS
            return interval * (1.0 + JITTER * self._rng.random())
        return RETRY_SECONDS
