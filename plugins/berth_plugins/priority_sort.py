"""PrioritySort: pods of higher priority are tried first, then those that wait longest."""

from berth.scheduler.framework.interface import QueueSortPlugin
from berth.scheduler.framework.pod_info import QueuedPodInfo


class PrioritySort(QueueSortPlugin):
    """Orders by priority, highest first, then by the time of the last enqueueing (spec §5.1)."""

    NAME = "PrioritySort"

    def sort_key(self, queued: QueuedPodInfo) -> tuple[int, float]:
        return -queued.priority, queued.timestamp
