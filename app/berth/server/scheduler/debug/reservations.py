"""Pods that have room on a node, or are to get it, and pods in flight."""

from collections.abc import Iterator

from berth.clock import rfc3339
from berth.framework.pod_info import PodInfo
from berth.scheduler.reservation import Reservation, Stage
from berth.server.scheduler.debug.models import (
    InFlightPod,
    InFlightPods,
    NominatedPod,
    NominatedPods,
    PermittedPod,
    PermittedPods,
    PermitWait,
)
from berth.server.scheduler.debug.pagination import unordered
from berth.server.scheduler.debug.sight import Sight, leaving


def nominated_pods(
    sight: Sight, *, node: str, after: tuple[str, str] | None, limit: int
) -> NominatedPods:
    """Return the nominations, to *node* only if it is given."""
    nominator = sight.scheduler.queue.nominator
    nominated = (
        {node: nominator.nominated_pods_for_node(node)} if node else nominator.nominated_pods()
    )
    pairs = ((name, pod) for name, pods in nominated.items() for pod in pods)
    found, token = unordered(
        pairs, key=lambda pair: (pair[1].key, pair[1].uid), after=after, limit=limit
    )
    return NominatedPods(
        items=tuple(
            NominatedPod(
                pod=pod.key,
                uid=pod.uid,
                node=name,
                priority=pod.priority,
                leaving=leaving(_pods_on(name, sight)),
            )
            for name, pod in found
        ),
        continue_=token,
    )


def _pods_on(node: str, sight: Sight) -> list[PodInfo]:
    table = sight.scheduler.cache.table
    row = table.row_of.get(node)
    return [] if row is None else list(table.pods[row].values())


def permitted_pods(
    sight: Sight, *, plugin: str, node: str, after: tuple[str, str] | None, limit: int
) -> PermittedPods:
    """Return the pods that wait for Permit, for *plugin* and on *node* if these are given."""

    def matching() -> Iterator[tuple[Reservation, dict[str, float | None]]]:
        for reservation in sight.scheduler.reservations:
            if reservation.waiting is None or reservation.stage is not Stage.PERMIT:
                continue
            deadlines = reservation.waiting.deadlines
            if plugin in ("", *deadlines) and node in ("", reservation.assumed.node_name):
                yield reservation, deadlines

    found, token = unordered(
        matching(),
        key=lambda pair: (pair[0].assumed.key, pair[0].assumed.uid),
        after=after,
        limit=limit,
    )
    now = sight.clock.now()
    return PermittedPods(
        items=tuple(
            PermittedPod(
                pod=reservation.assumed.key,
                uid=reservation.assumed.uid,
                node=reservation.assumed.node_name,
                profile=reservation.profile.name,
                since=sight.at(reservation.started),
                waits_for=tuple(
                    PermitWait(
                        plugin=name,
                        deadline=None if deadline is None else rfc3339(deadline),
                        seconds_left=None if deadline is None else deadline - now,
                    )
                    for name, deadline in sorted(deadlines.items())
                ),
            )
            for reservation, deadlines in found
        ),
        continue_=token,
    )


def in_flight_pods(sight: Sight, *, after: tuple[str, str] | None, limit: int) -> InFlightPods:
    """Return the pods in flight, and how many events are kept for them."""
    scheduler = sight.scheduler
    found, token = unordered(
        scheduler.queue.in_flight().items(),
        key=lambda pair: (pair[0], ""),
        after=after,
        limit=limit,
    )
    reservations = {uid: scheduler.reservations.get(uid) for uid, _ in found}
    unreserved = {uid for uid, reservation in reservations.items() if reservation is None}
    names = {}
    if unreserved:
        names = {p.metadata.uid: p.key for p in sight.pods.values() if p.metadata.uid in unreserved}
    return InFlightPods(
        items=tuple(
            InFlightPod(
                pod=reservation.assumed.key
                if (reservation := reservations[uid])
                else names.get(uid, ""),
                uid=uid,
                events=events,
                node=reservation.assumed.node_name if reservation else "",
                since=sight.at(reservation.started) if reservation else None,
            )
            for uid, events in found
        ),
        continue_=token,
        events=dict(scheduler.queue.in_flight_counts()),
    )
