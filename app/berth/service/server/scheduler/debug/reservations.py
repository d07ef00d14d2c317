"""Pods that have room on a node, or are to get it, and pods in flight."""

from collections.abc import Iterator

from berth.runtime.clock import rfc3339
from berth.scheduler.binding import Binding
from berth.scheduler.core.view import SchedulerView
from berth.service.server.scheduler.debug.models import (
    InFlightPod,
    InFlightPods,
    NominatedPod,
    NominatedPods,
    PermittedPod,
    PermittedPods,
    PermitWait,
)
from berth.service.server.scheduler.debug.pagination import unordered


def nominated_pods(
    view: SchedulerView, *, node: str, after: tuple[str, str] | None, limit: int
) -> NominatedPods:
    """Return the nominations, to *node* only if it is given."""
    nominator = view.queue.nominator
    nominated = (
        {node: nominator.nominated_pods_for_node(node)} if node else nominator.nominated_pods()
    )
    pairs = ((name, pod) for name, pods in nominated.items() for pod in pods)
    page, token = unordered(
        pairs, key=lambda pair: (pair[1].key, pair[1].uid), after=after, limit=limit
    )
    return NominatedPods(
        items=tuple(
            NominatedPod(
                pod=pod.key,
                uid=pod.uid,
                node=name,
                priority=pod.priority,
                leaving=view.leaving(name),
            )
            for name, pod in page
        ),
        continue_=token,
    )


def permitted_pods(
    view: SchedulerView, *, plugin: str, node: str, after: tuple[str, str] | None, limit: int
) -> PermittedPods:
    """Return the pods that wait for Permit, for *plugin* and on *node* if these are given."""

    def matching() -> Iterator[tuple[Binding, dict[str, float | None]]]:
        for binding in view.bindings:
            waiting = binding.waiting
            if waiting is None:
                continue
            if plugin in ("", *waiting.deadlines) and node in ("", binding.pod.node_name):
                yield binding, waiting.deadlines

    page, token = unordered(
        matching(),
        key=lambda pair: (pair[0].pod.key, pair[0].pod.uid),
        after=after,
        limit=limit,
    )
    now = view.clock.now()
    return PermittedPods(
        items=tuple(
            PermittedPod(
                pod=binding.pod.key,
                uid=binding.pod.uid,
                node=binding.pod.node_name,
                profile=binding.reservation.profile.name,
                since=view.at(binding.reservation.started),
                waits_for=tuple(
                    PermitWait(
                        plugin=name,
                        deadline=None if deadline is None else rfc3339(deadline),
                        seconds_left=None if deadline is None else deadline - now,
                    )
                    for name, deadline in sorted(deadlines.items())
                ),
            )
            for binding, deadlines in page
        ),
        continue_=token,
    )


def in_flight_pods(
    view: SchedulerView, *, after: tuple[str, str] | None, limit: int
) -> InFlightPods:
    """Return the pods in flight, and how many events are kept for them."""
    page, token = unordered(
        view.queue.in_flight().items(),
        key=lambda pair: (pair[0], ""),
        after=after,
        limit=limit,
    )
    bindings = {uid: view.bindings.get(uid) for uid, _ in page}
    others = {uid for uid, binding in bindings.items() if binding is None}
    names = {}
    if others:
        names = {p.metadata.uid: p.key for p in view.pods.values() if p.metadata.uid in others}
    return InFlightPods(
        items=tuple(
            InFlightPod(
                pod=binding.pod.key if (binding := bindings[uid]) else names.get(uid, ""),
                uid=uid,
                events=events,
                node=binding.pod.node_name if binding else "",
                since=view.at(binding.reservation.started) if binding else None,
            )
            for uid, events in page
        ),
        continue_=token,
        events=dict(view.queue.in_flight_counts()),
    )
