"""What the scheduler believes, in log lines (spec §4.7): the answer to SIGUSR2."""

import logging
from collections.abc import Iterable

from berth.cache.cache import Cache
from berth.cache.comparer import Counted, compare, placed
from berth.objects.node import Node
from berth.objects.pod import Pod
from berth.queue.scheduling_queue import SchedulingQueue
from berth.queue.sub_queues import SubQueue

log = logging.getLogger(__name__)


def dump(
    cache: Cache, queue: SchedulingQueue, *, nodes: Iterable[Node], pods: Iterable[Pod]
) -> None:
    """Log every node with its pods, every waiting pod, and where the cache is not as watched.

    *nodes* and *pods* are what is watched. In one go, so that the lines are of one moment; linear
    in the number of pods.
    """
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
    names = [node.metadata.name for node in nodes]
    differences = compare(Counted.by(cache), nodes=names, pods=placed(pods)).lines()
    for line in differences:
        log.warning("cache mismatch", extra={"difference": line})
    log.info("cache compared", extra={"differences": len(differences)})
