"""The dump of cache and queue in log lines (spec §4.7): the answer to SIGUSR2."""

import logging
from collections import Counter
from collections.abc import Iterable

from berth.kube.objects.node import Node
from berth.scheduler.cache.comparer import Counted, compare, placed
from berth.scheduler.core.view import GroupsView, QueueView, SchedulerView
from berth.scheduler.queue.sub_queues import SubQueue

log = logging.getLogger(__name__)


def dump(view: SchedulerView, *, nodes: Iterable[Node]) -> None:
    """Log every node with its pods, every waiting pod, and where the cache is not as watched.

    And every pod group of which a pod waits, where groups are scheduled together. *nodes* are those
    that are watched. In one go, so that the lines are of one moment; linear in the number of pods.
    """
    cache, queue = view.cache, view.queue
    on_node: dict[str, list[str]] = {name: [] for name in cache.table.row_of}
    for pod in cache.pods():
        assumed = " (assumed)" if cache.is_assumed(pod.uid) else ""
        on_node.setdefault(pod.node_name, []).append(pod.key + assumed)
    log.info("dump of the cache", extra=cache.counts())
    for name, held in on_node.items():
        known = name in cache.table.row_of
        log.info("cached node", extra={"node": name, "known": known, "pods": sorted(held)})
    log.info("dump of the queue", extra=queue.sub_queues.pending_counts())
    for sub_queue in SubQueue:
        for queued in queue.sub_queues.pods(sub_queue):
            log.info(
                "waiting pod",
                extra={
                    "queue": sub_queue.value,
                    "pod": queued.key,
                    "attempts": queued.attempts,
                    "rejected_by": sorted(queued.unschedulable_plugins | queued.pending_plugins),
                },
            )
    if view.groups is not None:
        _dump_groups(view.groups, queue)
    names = [node.metadata.name for node in nodes]
    differences = compare(Counted.by(cache), nodes=names, pods=placed(view.pods.values())).lines()
    for line in differences:
        log.warning("cache mismatch", extra={"difference": line})
    log.info("cache compared", extra={"differences": len(differences)})


def _dump_groups(groups: GroupsView, queue: QueueView) -> None:
    for key, state in groups.pod_groups:
        waiting = list(state.unscheduled())
        if not waiting:
            continue
        queues = Counter(queue.sub_queues.place_of(pod.key) for pod in waiting)
        group = groups.groups.get(key.namespace, key.name)
        root = groups.pod_groups.hierarchy.root_key(key)
        log.info(
            "waiting pod group",
            extra={
                "pod_group": str(key),
                **({} if root == key else {"composite_pod_group": str(root)}),
                "exists": group is not None,
                "min_count": None if group is None else group.min_count,
                "pods": state.all_pods_count,
                "scheduled": state.scheduled_pods_count,
                **{sub_queue.value: queues[sub_queue] for sub_queue in SubQueue},
            },
        )
