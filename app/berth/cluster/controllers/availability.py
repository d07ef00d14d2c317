"""Availability of a pod: ready for as long as its workload wants, ``minReadySeconds``."""

from berth.cluster.pods.controllers import PodView
from berth.cluster.times import seconds_of


def seconds_until_available(pod: PodView, min_ready: float, now: float) -> float | None:
    """Return 0 for a pod that is available, None for one that is not ready or is to go."""
    since = pod.ready_since
    if since is None or pod.metadata.deletion_timestamp is not None:
        return None
    if not min_ready or not since:
        return 0
    return max(seconds_of(since) + min_ready - now, 0)
