"""Which objects count though only parts of them could be read.

What takes up room counts as far as it can be read: an object of an API server that is newer than we
are must never make a node look empty. What a decision goes by is read whole or not at all, for half
a rule is another rule: it stays as it was last known, and what has never been read is not there.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

import msgspec

from berth.informer.reflector import DecodePartly
from berth.objects.cluster import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from berth.objects.devices import ResourceClaim
from berth.objects.node import Node
from berth.objects.partial import Unread, read_partly
from berth.objects.pod import Pod
from berth.objects.policy import PodDisruptionBudget
from berth.objects.storage import CSINode, PersistentVolume, PersistentVolumeClaim

NOBODYS_VICTIM: Final = 2**31 - 1
"""The priority of a pod whose own cannot be read: no pod may take its place."""

Judge = Callable[[Any, Sequence[Unread]], Any]
"""Returns what counts of a partly read object. Raises ValueError if nothing of it may."""


def partly(kind: type[msgspec.Struct]) -> DecodePartly[Any]:
    """Return how objects of *kind* are read that do not decode as a whole."""
    judge = _JUDGES.get(kind, _nothing)

    def decode(data: bytes, last: Any) -> tuple[Any, Sequence[Unread]]:
        obj, unread = read_partly(data, kind, last)
        if kind in _KEPT_WHOLE:
            obj = msgspec.structs.replace(obj, raw=data)
        return (judge(obj, unread) if unread else obj), unread

    return decode


def _anything(obj: Any, _: Sequence[Unread]) -> Any:
    return obj


def _nothing(_: Any, unread: Sequence[Unread]) -> NoReturn:
    raise ValueError("; ".join(map(str, unread[:3])))


def _pod(pod: Pod, unread: Sequence[Unread]) -> Pod:
    """A bound pod counts. One that waits must not be placed by a part of what it asks for."""
    if not pod.spec.node_name:
        _nothing(pod, unread)
    if _is_unread(("spec", "priority"), unread):
        spec = msgspec.structs.replace(pod.spec, priority=NOBODYS_VICTIM)
        return msgspec.structs.replace(pod, spec=spec)
    return pod


def _node(node: Node, unread: Sequence[Unread]) -> Node:
    """A node counts. It takes no more pods while it is not known whom it turns away."""
    if _is_unread(("spec",), unread):
        spec = msgspec.structs.replace(node.spec, unschedulable=True)
        return msgspec.structs.replace(node, spec=spec)
    return node


def _claim(claim: ResourceClaim, unread: Sequence[Unread]) -> ResourceClaim:
    """The devices of an allocated claim are taken; another claim must not be allocated by parts."""
    if claim.status.allocation is None:
        _nothing(claim, unread)
    return claim


def _is_unread(path: tuple[str, ...], unread: Sequence[Unread]) -> bool:
    """Whether what is at *path*, or something in it, could not be read."""
    return any(part.path[: len(path)] == path[: len(part.path)] for part in unread)


_JUDGES: Final[Mapping[type, Judge]] = {
    Pod: _pod,
    Node: _node,
    ResourceClaim: _claim,
    # A part of these is more than nothing: labels, selectors to protect or to spread by, limits.
    CSINode: _anything,
    Namespace: _anything,
    PodDisruptionBudget: _anything,
    ReplicaSet: _anything,
    ReplicationController: _anything,
    Service: _anything,
    StatefulSet: _anything,
}
_KEPT_WHOLE: Final = frozenset({PersistentVolume, PersistentVolumeClaim, ResourceClaim})
"""Kinds that are written back with all that they came with."""
