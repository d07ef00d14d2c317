"""Pods that have room on a node, or are to get it, and pods in flight."""

from collections.abc import Iterator

from berth.clock import rfc3339
from berth.framework.pod_info import PodInfo
from berth.scheduler.claim import Claim, Stage
from berth.server.debug.models import (
    InFlightPod,
    InFlightPods,
    NominatedPod,
    NominatedPods,
    PermittedPod,
    PermittedPods,
    PermitWait,
)
from berth.server.debug.sight import Sight, leaving
from berth.server.pagination import unordered


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

    def matching() -> Iterator[tuple[Claim, dict[str, float | None]]]:
        for claim in sight.scheduler.claims:
            if claim.waiting is None or claim.stage is not Stage.PERMIT:
                continue
            deadlines = claim.waiting.deadlines
            if plugin in ("", *deadlines) and node in ("", claim.assumed.node_name):
                yield claim, deadlines

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
                pod=claim.assumed.key,
                uid=claim.assumed.uid,
                node=claim.assumed.node_name,
                profile=claim.profile.name,
                since=sight.at(claim.started),
                waits_for=tuple(
                    PermitWait(
                        plugin=name,
                        deadline=None if deadline is None else rfc3339(deadline),
                        seconds_left=None if deadline is None else deadline - now,
                    )
                    for name, deadline in sorted(deadlines.items())
                ),
            )
            for claim, deadlines in found
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
    claims = {uid: scheduler.claims.get(uid) for uid, _ in found}
    unclaimed = {uid for uid, claim in claims.items() if claim is None}
    names = {}
    if unclaimed:
        names = {p.metadata.uid: p.key for p in sight.pods.values() if p.metadata.uid in unclaimed}
    return InFlightPods(
        items=tuple(
            InFlightPod(
                pod=claim.assumed.key if (claim := claims[uid]) else names.get(uid, ""),
                uid=uid,
                events=events,
                node=claim.assumed.node_name if claim else "",
                since=sight.at(claim.started) if claim else None,
            )
            for uid, events in found
        ),
        continue_=token,
        events=dict(scheduler.queue.in_flight_counts()),
    )
