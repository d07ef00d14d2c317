"""Objects that count though only parts of them could be read.

What takes up room counts as far as it can be read: an object from a newer API server must never
make a node look empty. What decides is read whole or not at all, because half a rule is another
rule: its last known state stays, and an object that was never read does not exist.

Each function returns what counts of an object that was partly read, given what could not be read,
and raises ValueError if nothing of it may count.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn, TypeAlias

import msgspec

from berth.kube.objects.devices import ResourceClaim
from berth.kube.objects.node import Node
from berth.kube.objects.partial import Unread
from berth.kube.objects.pod import Pod

NOBODYS_VICTIM: Final = 2**31 - 1
"""The priority of a pod whose own cannot be read: no pod may take its place."""

PartRule: TypeAlias = Callable[[Any, Sequence[Unread]], Any]


def any_part(obj: Any, _: Sequence[Unread]) -> Any:
    """A part is more than nothing: labels, selectors to protect or to spread by, limits."""
    return obj


def no_part(_: Any, unread: Sequence[Unread]) -> NoReturn:
    """Decisions go by all of it."""
    raise ValueError("; ".join(map(str, unread[:3])))


def part_of_pod(pod: Pod, unread: Sequence[Unread]) -> Pod:
    """A bound pod counts. One that waits must not be placed by a part of what it asks for."""
    if not pod.spec.node_name:
        no_part(pod, unread)
    if _is_unread(("spec", "priority"), unread):
        spec = msgspec.structs.replace(pod.spec, priority=NOBODYS_VICTIM)
        return msgspec.structs.replace(pod, spec=spec)
    return pod


def part_of_node(node: Node, unread: Sequence[Unread]) -> Node:
    """A node counts. It takes no more pods while its taints are unknown."""
    if _is_unread(("spec",), unread):
        spec = msgspec.structs.replace(node.spec, unschedulable=True)
        return msgspec.structs.replace(node, spec=spec)
    return node


def part_of_claim(claim: ResourceClaim, unread: Sequence[Unread]) -> ResourceClaim:
    """The devices of an allocated claim are taken; another claim must not be allocated by parts."""
    if claim.status.allocation is None:
        no_part(claim, unread)
    return claim


def _is_unread(path: tuple[str, ...], unread: Sequence[Unread]) -> bool:
    """Whether what is at *path*, or something in it, could not be read."""
    return any(part.path[: len(path)] == path[: len(part.path)] for part in unread)
