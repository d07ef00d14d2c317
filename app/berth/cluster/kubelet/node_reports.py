"""Reports of hollow nodes: that they exist, and that they live. Synchronous."""

import random
from collections.abc import Callable, Collection, Mapping
from enum import Enum, auto

from berth.cluster.actions import STRATEGIC_MERGE, Action, Create, Patch
from berth.cluster.kubelet.hollow_node import HollowNode
from berth.cluster.kubelet.node_template import (
    OWN_CONDITIONS,
    UNDER_PRESSURE,
    NodeTemplate,
    boot_id,
    conditions,
    without,
)
from berth.cluster.resources import Object
from berth.kube.client.errors import AlreadyExistsError, ApiError, NotFoundError
from berth.kube.objects.node import Node
from berth.kube.objects.quantity import Quantity
from berth.kube.objects.resources import is_extended
from berth.runtime.clock import Clock, rfc3339_micro

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

RENEWALS = 4
"""A lease is renewed this often in its duration, as kubelets do: three may be lost."""

JITTER = 0.04
"""By which part of the interval a renewal may come later, as with kubelets. One half of it is
random, so that nodes do not march in step; in the other a renewal waits for those of other nodes:
to wake up for each of them costs as much as the renewal."""

RETRY_SECONDS = 1.0

MOST_IMAGES = 50
"""Images in a node's status: the default of ``nodeStatusMaxImages``."""

Schedule = Callable[[str, float], None]
"""Have the node with that name looked at in so many seconds."""


class Registration(Enum):
    NEW = auto()
    EXISTS = auto()
    DONE = auto()


class NodeReports:
    """Registers nodes, each once; whoever is deleted afterwards stays away, as with kubelets.

    What the status says later is kept true: see :meth:`is_wrong`.
    """

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._nodes: dict[str, tuple[HollowNode, NodeTemplate]] = {}
        self._states: dict[str, Registration] = {}
        self._unregistered: set[str] = set()
        self._returned: set[str] = set()

    @property
    def all_registered(self) -> bool:
        return not self._unregistered

    def is_registered(self, name: str) -> bool:
        return name not in self._unregistered

    def boot_id(self, name: str) -> str:
        """Return what tells one start of the machine from the next."""
        node, _ = self._nodes[name]
        return boot_id(name, node.boots)

    def is_wrong(self, node: Node) -> bool:
        """Whether the status of *node* needs a report.

        A condition of ours is Unknown, because others have missed us, or allocatable does not
        follow capacity, which others may raise and add to.
        """
        hollow, template = self._nodes[node.name]
        return (
            _is_missed(node)
            or _allocatable_changes(node, template.reserved) != {}
            or _pressure_changes(node, hollow.pressure, now=0.0) != []
        )

    def skip(self, name: str) -> None:
        """Register nothing: the machine does not work now."""
        self._states[name] = Registration.DONE
        self._unregistered.discard(name)

    def returned(self, name: str) -> None:
        """Have it reported that the machine works again."""
        self._returned.add(name)

    def add(self, node: HollowNode, template: NodeTemplate) -> None:
        """Have *node* registered, as *template* says that it looks."""
        self._nodes[node.name] = (node, template)
        self._states[node.name] = Registration.NEW
        self._unregistered.add(node.name)

    def remove(self, name: str) -> None:
        """Report nothing of a node any more."""
        del self._nodes[name], self._states[name]
        self._unregistered.discard(name)
        self._returned.discard(name)

    def step(self, name: str) -> Action | None:
        if name not in self._nodes:
            return None
        (node, template), now = self._nodes[name], self._clock.now()
        path = f"/api/v1/nodes/{name}/status"
        match self._states[name]:
            case Registration.NEW:
                body = template.node(name, index=node.index, now=now)
                return Create("/api/v1/nodes", body)
            case Registration.EXISTS:
                status = template.status(name, index=node.index, now=now)
                return Patch(path, {"status": status}, STRATEGIC_MERGE)
        status = {}
        if name in self._returned or (node.node and _is_missed(node.node)):
            pressure = node.pressure
            status |= template.health(name, boots=node.boots, now=now, pressure=pressure)
        elif node.node and (pressed := _pressure_changes(node.node, node.pressure, now=now)):
            status["conditions"] = pressed
        if node.node and (changes := _allocatable_changes(node.node, template.reserved)):
            status["allocatable"] = changes
        if node.images != node.reported_images:
            node.reported_images = dict(node.images)
            status["images"] = _images(node.images)
        return Patch(path, {"status": status}, STRATEGIC_MERGE) if status else None

    def finished(self, name: str, error: ApiError | None) -> float | None:
        """Note how a report ended; return the seconds to the next one, None if there is none."""
        if name not in self._nodes:
            return None
        if error is None:
            self._states[name] = Registration.DONE
            self._unregistered.discard(name)
            self._returned.discard(name)
            return None
        if self._states[name] is Registration.DONE:
            self._nodes[name][0].reported_images = {}
            return None if isinstance(error, NotFoundError) else RETRY_SECONDS
        if isinstance(error, AlreadyExistsError):
            self._states[name] = Registration.EXISTS
            return 0.0
        if isinstance(error, NotFoundError):
            self._states[name] = Registration.NEW
        return RETRY_SECONDS


def _images(images: Mapping[str, int]) -> list[Object]:
    """Return the images of a node as its status has them: the largest ones, with tags."""
    largest = sorted(images.items(), key=lambda each: (-each[1], each[0]))[:MOST_IMAGES]
    return [{"names": [_tagged(name)], "sizeBytes": size} for name, size in largest]


def _tagged(image: str) -> str:
    is_tagged = ":" in image.rpartition("/")[2] or "@" in image
    return image if is_tagged else f"{image}:latest"


def _is_missed(node: Node) -> bool:
    return any(
        condition.status == "Unknown" and condition.type in OWN_CONDITIONS
        for condition in node.status.conditions
    )


def _pressure_changes(node: Node, pressure: Collection[str], *, now: float) -> list[Object]:
    """Return the conditions of pressure that are not what *pressure* says, as they should be."""
    known = {condition.type: condition.status for condition in node.status.conditions}
    wrong = {
        type_ for type_ in UNDER_PRESSURE if (known.get(type_) == "True") != (type_ in pressure)
    }
    return (
        [condition for condition in conditions(pressure, now=now) if condition["type"] in wrong]
        if wrong
        else []
    )


def _allocatable_changes(node: Node, reserved: Mapping[str, str]) -> dict[str, Quantity | None]:
    """Return what has to change so that all capacity can be allocated; None: to be removed.

    But for what is *reserved*.

    As in ``pkg/kubelet/nodestatus``: capacity that others add reaches pods, and an extended
    resource without capacity is gone. A hollow machine is as large as its capacity says.
    """
    capacity, allocatable = node.status.capacity, node.status.allocatable
    if reserved:
        capacity = without(capacity, reserved)
    if capacity == allocatable:
        return {}
    changes: dict[str, Quantity | None] = {
        name: amount for name, amount in capacity.items() if allocatable.get(name) != amount
    }
    for name in allocatable:
        if name not in capacity and is_extended(name):
            changes[name] = None
    return changes


class Leases:
    """Keeps one lease per node. *seconds* is their duration.

    A lease belongs to its Node, and goes with it. It is not made again while there is no Node.
    """

    def __init__(self, *, seconds: int, clock: Clock, rng: random.Random) -> None:
        self._seconds = seconds
        self._clock = clock
        self._rng = rng
        self._existing: set[str] = set()

    @property
    def interval(self) -> float:
        """Seconds between two renewals."""
        return self._seconds / RENEWALS

    @property
    def slack(self) -> float:
        """Seconds that a renewal may wait for those of other nodes."""
        return self.interval * JITTER / 2

    def first_delay(self) -> float:
        """Return when to make a node's lease, spread over the interval."""
        return self._rng.random() * self.interval

    def step(self, name: str, node_uid: str) -> Action | None:
        """Return the renewal, or the creation; None: it is to be made, and there is no Node."""
        spec = {"renewTime": rfc3339_micro(self._clock.now())}
        if name in self._existing:
            return Patch(f"{LEASES}/{name}", {"spec": spec})
        if not node_uid:
            return None
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node_uid}
        body: Object = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": name,
                "namespace": "kube-node-lease",
                "ownerReferences": [owner],
            },
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
            return self.interval + self.slack * self._rng.random()
        return RETRY_SECONDS
