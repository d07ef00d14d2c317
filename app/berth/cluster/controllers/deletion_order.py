"""The order of deletion when there are too many pods: least felt first.

As ``ActivePods`` and ``ActivePodsWithRanks`` in ``k8s.io/kubernetes/pkg/controller``, but for
restarts of containers, which are not asked about.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import cmp_to_key, partial
from itertools import groupby
from typing import Final, NamedTuple

from berth.cluster.pods.controllers import PodView
from berth.cluster.times import seconds_of

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
COST: Final = re.compile(r"0|-?[1-9]\d{0,9}|-0\d{0,9}", re.ASCII)
COSTS: Final = range(-(2**31), 2**31)

PHASE_RANKS: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


def in_order_of_deletion(pods: Iterable[PodView]) -> list[PodView]:
    """Return *pods*: not bound, not running, not ready, ready for a shorter time, younger."""
    latest_first = sorted(
        pods,
        key=lambda pod: (pod.ready_since or "", pod.metadata.creation_timestamp or ""),
        reverse=True,
    )
    return sorted(latest_first, key=_state)


def ranked(pods: Iterable[PodView], related: Iterable[PodView], *, now: float) -> list[PodView]:
    """Return *pods* as a ReplicaSet lets them go.

    Not bound, not running, not ready, of low deletion cost, on a node with more *related* pods,
    ready for a shorter time, younger. Times of the same order of magnitude, by powers of two, count
    as the same (KEP-2185); then it is the uid that decides, which is as good as chance. *now* is in
    unix seconds.
    """
    per_node = Counter(pod.node_name for pod in related if pod.is_active)

    def rank(pod: PodView) -> tuple[bool, int, bool, int, int]:
        return *_state(pod), deletion_cost(pod), -per_node[pod.node_name]

    order: list[PodView] = []
    for _, equals in groupby(sorted(pods, key=rank), key=rank):
        aged = sorted(map(_Aged.of, equals), key=cmp_to_key(partial(_compare, now=now)))
        order += [each.pod for each in aged]
    return order


def deletion_cost(pod: PodView) -> int:
    """Return what the annotation says; 0 if it makes no sense, such as ``+1`` and ``007``."""
    text = (pod.metadata.annotations or {}).get(DELETION_COST, "0")
    cost = int(text) if COST.fullmatch(text) else 0
    return cost if cost in COSTS else 0


class _Aged(NamedTuple):
    pod: PodView
    ready: float
    """Since when, in unix seconds; 0: it is not, or does not say."""
    born: float

    @classmethod
    def of(cls, pod: PodView) -> "_Aged":
        ready, born = pod.ready_since, pod.metadata.creation_timestamp
        return cls(pod, seconds_of(ready) if ready else 0.0, seconds_of(born) if born else 0.0)


def _compare(one: _Aged, other: _Aged, *, now: float) -> int:
    """Return a negative number if *one* goes first."""
    for since, since_other in ((one.ready, other.ready), (one.born, other.born)):
        if since == since_other:
            continue
        if not since or not since_other:
            return -1 if not since else 1
        difference = _magnitude(now - since) - _magnitude(now - since_other)
        return difference or (-1 if one.pod.metadata.uid < other.pod.metadata.uid else 1)
    return 0


def _magnitude(seconds: float) -> int:
    return int(math.log2(seconds * 1e9)) if seconds > 0 else -1


def _state(pod: PodView) -> tuple[bool, int, bool]:
    return (
        bool(pod.node_name),
        PHASE_RANKS.get(pod.status.phase or "Pending", 1),
        pod.ready_since is not None,
    )
