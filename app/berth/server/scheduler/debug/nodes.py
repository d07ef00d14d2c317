"""Nodes as the cache counts them."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from berth.cache.node_tree import region_and_zone
from berth.framework.node_table import EPHEMERAL_STORAGE, NodeTable
from berth.framework.pod_info import PodInfo
from berth.objects.node import Node
from berth.objects.selectors import Selector
from berth.server.scheduler.debug.models import (
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
from berth.server.scheduler.debug.pagination import ordered
from berth.server.scheduler.debug.sight import Sight

MOST_UNREADABLE: Final = 100


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """Which nodes are asked for; what is empty does not matter."""

    node: str = ""
    name: str = ""
    """A part of the name of the node."""
    zone: str = ""
    selector: Selector | None = None


def cached_nodes(
    sight: Sight, wanted: NodeFilter, *, with_pods: bool, after: int | None, limit: int
) -> CachedNodes:
    """Return the nodes that *wanted* describes, as the cache has them now."""
    cache = sight.scheduler.cache
    table = cache.table
    first = 0 if after is None else max(after + 1, 0)
    rows, token = ordered(_matching(table, wanted, first), key=lambda row: row, limit=limit)
    since = _since(sight, [uid for row in rows for uid in table.pods[row]])
    return CachedNodes(
        items=tuple(_told(row, sight, since, with_pods=with_pods) for row in rows),
        continue_=token,
        counts=CacheCounts(**cache.counts()),
        unknown_nodes={
            name: tuple(sorted(pod.key for pod in pods))
            for name, pods in sorted(cache.ghosts().items())
        },
        unreadable=tuple(islice(_unreadable(sight), MOST_UNREADABLE)),
    )


def _unreadable(sight: Sight) -> Iterator[UnreadableObject]:
    for path, reflector in sight.reflectors.items():
        for key, found in reflector.unreadable.items():
            yield UnreadableObject(
                path=path, object=key, counts=found.counts, reasons=found.reasons
            )


def _candidates(table: NodeTable, wanted: NodeFilter, first: int) -> range:
    """Return the rows to look at: for one node, which a page asks for again and again, its own."""
    if not wanted.node:
        return range(first, table.size)
    row = table.row_of.get(wanted.node)
    return range(0) if row is None or row < first else range(row, row + 1)


def _matching(table: NodeTable, wanted: NodeFilter, first: int) -> Iterator[int]:
    for row in _candidates(table, wanted, first):
        node = table.nodes[row]
        if (
            node is not None
            and wanted.name in node.name
            and (not wanted.zone or region_and_zone(node)[1] == wanted.zone)
            and (wanted.selector is None or wanted.selector.matches(node.labels))
        ):
            yield row


def _since(sight: Sight, uids: Collection[str]) -> dict[str, float]:
    """Return when those of *uids* that are assumed were given their node, where that is known.

    The binding of a pod that is bound but not confirmed yet has ended; its decision is recorded.
    """
    scheduler = sight.scheduler
    assumed = {uid for uid in uids if scheduler.cache.is_assumed(uid)}
    if not assumed:
        return {}
    recorded = {r.uid: r.at for r in scheduler.decisions.all() if r.uid in assumed and r.node}
    bindings = {uid: binding for uid in assumed if (binding := scheduler.bindings.get(uid))}
    return recorded | {uid: binding.reservation.started for uid, binding in bindings.items()}


def _told(row: int, sight: Sight, since: Mapping[str, float], *, with_pods: bool) -> CachedNode:
    scheduler = sight.scheduler
    table = scheduler.cache.table
    node = table.nodes[row]
    assert node is not None, f"row {row} is empty"
    region, zone = region_and_zone(node)
    pods = [_pod(pod, sight, since) for pod in table.pods[row].values()] if with_pods else None
    return CachedNode(
        node=node.name,
        row=row,
        zone=zone,
        region=region,
        unschedulable=node.spec.unschedulable,
        taints=tuple(f"{t.key}={t.value}:{t.effect}" for t in node.spec.taints),
        resources=_resources(table, row),
        assumed=tuple(
            _pod(pod, sight, since)
            for uid, pod in table.pods[row].items()
            if scheduler.cache.is_assumed(uid)
        ),
        nominated=tuple(
            pod.key for pod in scheduler.queue.nominator.nominated_pods_for_node(node.name)
        ),
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
    found = {"pods": _room(table.allowed_pods[row], table.pod_count[row])}
    for index, name in enumerate(table.resources):
        room = _room(table.allocatable[index, row], table.requested[index, row])
        if index <= EPHEMERAL_STORAGE or room.allocatable or room.requested:
            found[name] = room
    return found


def _room(allocatable: int, requested: int) -> Room:
    there, taken = int(allocatable), int(requested)
    return Room(allocatable=there, requested=taken, free=there - taken)


def _pod(pod: PodInfo, sight: Sight, since: Mapping[str, float]) -> CachedPod:
    began = since.get(pod.uid)
    return CachedPod(
        pod=pod.key,
        uid=pod.uid,
        assumed=sight.scheduler.cache.is_assumed(pod.uid),
        assumed_since=None if began is None else sight.at(began),
        assumed_seconds=None if began is None else sight.age(began),
    )
