"""The container that dies when no memory is left, before or in spite of evictions.

Sources: ``pkg/kubelet/qos/policy.go``, and the ``oom_badness`` of Linux.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from berth.cluster.kubelet.eviction.stats import NodeStats, PodStats
from berth.kube.objects.pod import Container
from berth.kube.objects.quantity import parse, value
from berth.kube.objects.resources import MEMORY

GUARANTEED_SCORE: Final = -997
BEST_EFFORT_SCORE: Final = 1000
MOST_SCORE: Final = 1000
"""What memory alone gives: all of the node's."""


class Victim(NamedTuple):
    """A container that the kernel kills."""

    stats: PodStats
    container: str


def over_limits(stats: PodStats) -> Iterator[Victim]:
    """Yield the containers that use more memory than their limit."""
    for each in (*stats.pod.spec.init_containers, *stats.pod.spec.containers):
        usage = stats.containers.get(each.name)
        limit = value(parse(each.resources.limits.get(MEMORY, 0)))
        if usage is not None and limit and usage.memory > limit:
            yield Victim(stats, each.name)


def victim(stats: NodeStats) -> Victim | None:
    """Return the container that dies because the node has no memory left; None: it has some."""
    capacity = stats.capacity.get(MEMORY, 0)
    if not capacity or stats.memory <= capacity:
        return None
    found = [
        (oom_score(of_pod, each, capacity), number, Victim(of_pod, each.name))
        for number, of_pod in enumerate(stats.pods)
        for each in (*of_pod.pod.spec.init_containers, *of_pod.pod.spec.containers)
        if each.name in of_pod.containers
    ]
    if not found:
        return None
    return max(found, key=lambda each: (each[0], -each[1]))[2]


def oom_score(stats: PodStats, container: Container, capacity: int) -> int:
    """Return the container's share of memory in thousandths and its ``oom_score_adj``."""
    used = stats.containers[container.name].memory
    return used * MOST_SCORE // capacity + oom_score_adj(stats, container, capacity)


def oom_score_adj(stats: PodStats, container: Container, capacity: int) -> int:
    """Return what a kubelet sets for a container on a node with *capacity* bytes of memory."""
    if stats.is_critical:
        return GUARANTEED_SCORE
    match stats.qos_class:
        case "Guaranteed":
            return GUARANTEED_SCORE
        case "BestEffort":
            return BEST_EFFORT_SCORE
    request = value(parse(container.resources.requests.get(MEMORY, 0)))
    score = 1000 - 1000 * request // capacity
    if score < 1000 + GUARANTEED_SCORE:
        return 1000 + GUARANTEED_SCORE
    return score - 1 if score == BEST_EFFORT_SCORE else score
