"""The importance of victims: by priority, then by how long they run (spec §6.4)."""

from datetime import datetime
from functools import lru_cache
from math import inf

from berth.scheduler.framework.pod_info import PodInfo


def importance(pod: PodInfo) -> tuple[int, float]:
    """Return a key that sorts the most important pod first: priority down, start time up."""
    return -pod.priority, started(pod)


def started(pod: PodInfo) -> float:
    """Return when *pod* started, in unix seconds.

    A pod that has not started yet counts as started now, and that is later than all others.
    """
    written = pod.pod.status.start_time
    return inf if written is None else _seconds(written)


@lru_cache(maxsize=65_536)
def _seconds(written: str) -> float:
    return datetime.fromisoformat(written).timestamp()
