"""Pod groups."""

from collections.abc import Iterator

from berth.insight.explain.groups.explainer import policy_of, status_of
from berth.kube.objects.pod_group import GroupKey
from berth.scheduler.pod_group.reports import GroupParts
from berth.scheduler.queue.sub_queues import SubQueue
from berth.service.server.scheduler.debug.models import PodGroupOverview, PodGroups
from berth.service.server.scheduler.debug.pagination import unordered
from berth.service.server.scheduler.debug.sight import Sight


def known_groups(
    sight: Sight, *, namespace: str, name: str, after: tuple[str, str] | None, limit: int
) -> PodGroups:
    """Return the groups that have an object or a pod, of *namespace* only if it is given.

    *name* is a part of namespace/name.
    """
    parts = sight.scheduler.groups
    if parts is None:
        return PodGroups(items=())
    found, token = unordered(
        (key for key in _keys(parts) if namespace in ("", key.namespace) and name in str(key)),
        key=lambda key: (key.namespace, key.name),
        after=after,
        limit=limit,
    )
    return PodGroups(items=tuple(_overview(key, parts, sight) for key in found), continue_=token)


def _keys(parts: GroupParts) -> Iterator[GroupKey]:
    for key, _ in parts.pod_groups:
        yield key
    for group in parts.groups:
        key = GroupKey(group.metadata.namespace, group.metadata.name)
        if parts.pod_groups.get(key) is None:
            yield key


def _overview(key: GroupKey, parts: GroupParts, sight: Sight) -> PodGroupOverview:
    group, state = parts.groups.get(key.namespace, key.name), parts.pod_groups.get(key)
    place_of = sight.scheduler.queue.sub_queues.place_of
    waiting = state.unscheduled() if state is not None else ()
    return PodGroupOverview(
        pod_group=str(key),
        exists=group is not None,
        policy=policy_of(group),
        min_count=None if group is None else group.min_count,
        num_pods=state.all_pods_count if state is not None else 0,
        num_scheduled=state.scheduled_pods_count if state is not None else 0,
        num_gated=sum(place_of(pod.key) is SubQueue.GATED for pod in waiting),
        status=status_of(group),
    )
