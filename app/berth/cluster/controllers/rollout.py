"""The arithmetic of moving from old ReplicaSets to a new one. Pure: numbers in, sizes out.

Upstream's rules: never more pods wanted than ``replicas`` + surge, and pods taken away only as long
as ``replicas`` - unavailable are available.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from berth.cluster import percent
from berth.cluster.resources import Object


@dataclass(frozen=True, slots=True)
class Size:
    """A ReplicaSet as far as its size matters."""

    name: str
    replicas: int
    """Wanted."""
    available: int
    """Reported."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a rollout may stray from ``replicas``, in pods."""

    replicas: int
    surge: int
    unavailable: int

    @property
    def maximum(self) -> int:
        """The most pods that may be wanted at a time."""
        return self.replicas + self.surge

    @property
    def minimum(self) -> int:
        """The least pods that must be available."""
        return max(self.replicas - self.unavailable, 0)


def limits_of(spec: Object) -> Limits:
    """Read the limits of a Deployment's spec.

    Percentages of surge are rounded up, of unavailable down; when both come out as 0, one pod may
    be unavailable, or nothing could ever move. Recreate has no limits of its own.
    """
    replicas = int(spec.get("replicas") or 0)
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return Limits(replicas, surge=0, unavailable=0)
    rolling = strategy.get("rollingUpdate") or {}
    surge = absolute(rolling.get("maxSurge", "25%"), replicas, round_up=True)
    unavailable = absolute(rolling.get("maxUnavailable", "25%"), replicas, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Limits(replicas, surge=surge, unavailable=min(unavailable, replicas))


def absolute(amount: int | str, total: int, *, round_up: bool) -> int:
    """Return *amount*, a number or a percentage of *total*, as a number."""
    if isinstance(amount, int):
        return amount
    scaled = percent.number_of(amount) * total
    return -(-scaled // 100) if round_up else scaled // 100


def grow_new(new: Size, old: Sequence[Size], limits: Limits) -> int:
    """Return how many replicas the new ReplicaSet should want now."""
    if new.replicas >= limits.replicas:
        return limits.replicas
    wanted = new.replicas + sum(each.replicas for each in old)
    room = max(limits.maximum - wanted, 0)
    return min(new.replicas + room, limits.replicas)


def shrink_old(new: Size, old: Sequence[Size], limits: Limits) -> dict[str, int]:
    """Return the new sizes of those *old* ReplicaSets (oldest first) that should shrink.

    Pods that are not available go first: they are no loss.
    """
    sizes = {each.name: each.replicas for each in old}
    wanted = new.replicas + sum(sizes.values())
    new_unavailable = max(new.replicas - new.available, 0)
    removable = wanted - limits.minimum - new_unavailable
    if removable <= 0:
        return {}
    for each in old:
        broken = max(each.replicas - each.available, 0)
        taken = min(broken, removable, sizes[each.name])
        sizes[each.name] -= taken
        removable -= taken
    # Counted from what is available, not from what is wanted: that is the promise.
    spare = new.available + sum(min(each.available, each.replicas) for each in old)
    spare -= limits.minimum
    for each in old:
        taken = max(min(sizes[each.name], spare), 0)
        sizes[each.name] -= taken
        spare -= taken
    return {each.name: sizes[each.name] for each in old if sizes[each.name] != each.replicas}
