"""Nodes as the cache counts them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from berth.kube.informer.reflector import Reflector
from berth.kube.objects.node import Node
from berth.kube.objects.selectors import Selector
from berth.scheduler.cache.node_tree import region_and_zone
from berth.scheduler.core.view import SchedulerView
from berth.scheduler.framework.node_table import EPHEMERAL_STORAGE, NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.service.server.scheduler.debug.models import (
    CacheCounts,
    CachedNode,
    CachedNodes,
    CachedPod,
    NodeCondition,
    NodeDetails,
    NodeImage,
    Room,
    UnreadableObject,
)
from berth.service.server.scheduler.debug.pagination import ordered
from berth.service.server.scheduler.debug.responses import told_in_turns

MOST_UNREADABLE: Final = 100
PODS: Final = "pods"
BY_NAME: Final = "name"
BY_USE: Final = "use"
"""By the share of the resource of which the largest share is requested."""


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """Which nodes are asked for; what is empty does not matter."""

    node: str = ""
    name: str = ""
    """A part of the name of the node."""
    zone: str = ""
    selector: Selector | None = None


@dataclass(frozen=True, slots=True)
class NodeOrder:
    """In which order nodes are told."""

    by: str = ""
    """BY_NAME, BY_USE, or a resource: by the share of it that is requested. Empty: in the
    order of the rows."""
    descending: bool = False


IN_ROWS: Final = NodeOrder()


async def cached_nodes(
    view: SchedulerView,
    reflectors: Mapping[str, Reflector[Any]],
    wanted: NodeFilter,
    *,
    with_pods: bool,
    after: int | None,
    limit: int,
    order: NodeOrder = IN_ROWS,
) -> CachedNodes:
    """Return the nodes that *wanted* describes, as the cache has each when its turn comes.

    Others have turns on the event loop meanwhile; nodes that go then are left out. And the objects
    that *reflectors*, by path, could not read.
    """
    cache = view.cache
    table = cache.table
    first = 0 if after is None else max(after + 1, 0)
    places = _places(table, wanted, order)[first:]
    found, token = ordered(
        _matching(table, wanted, enumerate(places, first)),
        key=lambda placed: placed[0],
        limit=limit,
    )
    rows = {node.name: row for _, row in found if (node := table.nodes[row]) is not None}
    since = _since(view, [uid for row in rows.values() for uid in table.pods[row]])
    items = await told_in_turns(
        (
            _told(row, view, since, with_pods=with_pods)
            for name, row in rows.items()
            if table.row_of.get(name) == row
        ),
        view.clock,
    )
    return CachedNodes(
        items=items,
        continue_=token,
        counts=CacheCounts(**cache.counts()),
        unknown_nodes={
            name: tuple(sorted(pod.key for pod in pods))
            for name, pods in sorted(cache.ghosts().items())
        },
        unreadable=tuple(islice(_unreadable(reflectors), MOST_UNREADABLE)),
    )


def _unreadable(reflectors: Mapping[str, Reflector[Any]]) -> Iterator[UnreadableObject]:
    for path, reflector in reflectors.items():
        for key, unreadable in reflector.unreadable.items():
            yield UnreadableObject(
                path=path, object=key, counts=unreadable.counts, reasons=unreadable.reasons
            )


def _places(table: NodeTable, wanted: NodeFilter, order: NodeOrder) -> Sequence[int]:
    """Return the rows to look at: for one node, which a page asks for again and again, its own."""
    if wanted.node:
        row = table.row_of.get(wanted.node)
        return () if row is None else (row,)
    if not order.by:
        return range(table.size)
    if order.by == BY_NAME:
        names = sorted(table.row_of, reverse=order.descending)
        return [table.row_of[name] for name in names]
    shares = _shares(table, order.by)
    by_share: list[int] = np.argsort(
        -shares if order.descending else shares, kind="stable"
    ).tolist()
    return by_share


def _shares(table: NodeTable, by: str) -> NDArray[np.float64]:
    """Return what is requested of a resource, by row, as a share of what is allocatable.

    0 where there is nothing allocatable.
    """
    there = {PODS: table.allowed_pods, **_by_name(table, table.allocatable)}
    taken = {PODS: table.pod_count, **_by_name(table, table.requested)}
    names = there.keys() if by == BY_USE else {by} & there.keys()
    shares = [np.zeros(table.size)] + [
        np.divide(taken[name], there[name], out=np.zeros(table.size), where=there[name] > 0)
        for name in names
    ]
    largest: NDArray[np.float64] = np.stack(shares).max(axis=0)
    return largest


def _by_name(table: NodeTable, column: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    return {name: column[index] for name, index in table.resources.items()}


def _matching(
    table: NodeTable, wanted: NodeFilter, places: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Yield those of *places*, in the order and as rows, whose nodes are asked for."""
    for place, row in places:
        node = table.nodes[row]
        if (
            node is not None
            and wanted.name in node.name
            and (not wanted.zone or region_and_zone(node)[1] == wanted.zone)
            and (wanted.selector is None or wanted.selector.matches(node.labels))
        ):
            yield place, row


def _since(view: SchedulerView, uids: Collection[str]) -> dict[str, float]:
    """Return when those of *uids* that are assumed were given their node, where that is known.

    The binding of a pod that is bound but not confirmed yet has ended; its decision is recorded.
    """
    assumed = {uid for uid in uids if view.cache.is_assumed(uid)}
    if not assumed:
        return {}
    begun = view.decisions.begun()
    recorded = {uid: begun[uid] for uid in assumed & begun.keys()}
    bindings = {uid: binding for uid in assumed if (binding := view.bindings.get(uid))}
    return recorded | {uid: binding.reservation.started for uid, binding in bindings.items()}


def _told(
    row: int, view: SchedulerView, since: Mapping[str, float], *, with_pods: bool
) -> CachedNode:
    table = view.cache.table
    node = table.nodes[row]
    assert node is not None, f"row {row} is empty"
    region, zone = region_and_zone(node)
    pods = [_pod(pod, view, since) for pod in table.pods[row].values()] if with_pods else None
    return CachedNode(
        node=node.name,
        row=row,
        zone=zone,
        region=region,
        unschedulable=node.spec.unschedulable,
        taints=tuple(f"{t.key}={t.value}:{t.effect}" for t in node.spec.taints),
        resources=_resources(table, row),
        assumed=tuple(
            _pod(pod, view, since)
            for uid, pod in table.pods[row].items()
            if view.cache.is_assumed(uid)
        ),
        nominated=tuple(pod.key for pod in view.queue.nominator.nominated_pods_for_node(node.name)),
        generation=int(table.generation[row]),
        pods=None if pods is None else tuple(pods),
        details=_details(node) if with_pods else None,
    )


def _details(node: Node) -> NodeDetails:
    return NodeDetails(
        labels=node.labels,
        conditions=tuple(
            NodeCondition(type=c.type, status=c.status, reason=c.reason, message=c.message)
            for c in node.status.conditions
        ),
        images=tuple(
            NodeImage(names=image.names, size_bytes=image.size_bytes)
            for image in node.status.images
        ),
    )


def _resources(table: NodeTable, row: int) -> dict[str, Room]:
    """Return the native resources, and the others that the node has or is asked for."""
    rooms = {"pods": _room(table.allowed_pods[row], table.pod_count[row])}
    for index, name in enumerate(table.resources):
        room = _room(table.allocatable[index, row], table.requested[index, row])
        if index <= EPHEMERAL_STORAGE or room.allocatable or room.requested:
            rooms[name] = room
    return rooms


def _room(allocatable: int, requested: int) -> Room:
    there, taken = int(allocatable), int(requested)
    return Room(allocatable=there, requested=taken, free=there - taken)


def _pod(pod: PodInfo, view: SchedulerView, since: Mapping[str, float]) -> CachedPod:
    began = since.get(pod.uid)
    return CachedPod(
        pod=pod.key,
        uid=pod.uid,
        assumed=view.cache.is_assumed(pod.uid),
        assumed_since=None if began is None else view.at(began),
        assumed_seconds=None if began is None else view.age(began),
    )
