"""Eviction rates of zones whose nodes are not well.

One after the other, in case it is not the nodes that fail, but the network between them and us.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from berth.cluster.controllers.options import ControllerOptions
from berth.cluster.controllers.views import NodeView
from berth.runtime.clock import Clock


class ZoneState(Enum):
    INITIAL = auto()
    NORMAL = auto()
    PARTIAL_DISRUPTION = auto()
    """Many nodes are not well."""
    FULL_DISRUPTION = auto()
    """No node is well."""


class Counts(NamedTuple):
    """Of the nodes of a zone."""

    ready: int = 0
    not_ready: int = 0


class Disruption(Enum):
    """A change of the whole cluster."""

    ENTERED = auto()
    """No node is well any more: nobody is evicted."""
    LEFT = auto()
    """Some are well again."""


class Limiter:
    """Lets one through at once, and *rate* a second after that; 0: none."""

    def __init__(self, rate: float, *, clock: Clock, drained: bool = False) -> None:
        self.rate = rate
        self._clock = clock
        self._free_at = clock.monotonic() + (1 / rate if drained and rate > 0 else 0.0)

    def try_accept(self) -> bool:
        """Let one through if its time has come."""
        if self.wait != 0.0:
            return False
        self._free_at = self._clock.monotonic() + 1 / self.rate
        return True

    @property
    def wait(self) -> float | None:
        """The seconds until the next one; None: never."""
        return max(self._free_at - self._clock.monotonic(), 0.0) if self.rate > 0 else None


@dataclass(slots=True)
class Zone:
    limiter: Limiter
    state: ZoneState = ZoneState.INITIAL
    waiting: dict[str, None] = field(default_factory=dict)
    """Nodes that are to get a taint, in order."""


class Zones:
    """The zones of a cluster, by their names; nodes that name none are in one of their own."""

    def __init__(self, options: ControllerOptions, *, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._zones: dict[str, Zone] = {}

    def wait(self, zone: str, node: str) -> None:
        """Let *node* wait for its taint, unless it does."""
        self._zone(zone).waiting.setdefault(node)

    def forget(self, node: str) -> None:
        """Let *node* wait no more."""
        for zone in self._zones.values():
            zone.waiting.pop(node, None)

    def take(self) -> list[str]:
        """Return the nodes whose turn it is, and forget them."""
        taken: list[str] = []
        for zone in self._zones.values():
            while zone.waiting and zone.limiter.try_accept():
                node = next(iter(zone.waiting))
                del zone.waiting[node]
                taken.append(node)
        return taken

    @property
    def next(self) -> float | None:
        """The seconds until it is somebody's turn; None: nobody waits, or nobody gets one."""
        waits = [zone.limiter.wait for zone in self._zones.values() if zone.waiting]
        return min((wait for wait in waits if wait is not None), default=None)

    def update(self, counts: Mapping[str, Counts]) -> Disruption | None:
        """Take in how many nodes are well; return whether that changes all of the cluster."""
        states = {name: self.state_of(each) for name, each in counts.items()}
        for name in states:
            self._zone(name)
        for name in self._zones.keys() - states.keys():
            del self._zones[name]
        now_full, was_full = (
            _are_full(states.values()),
            _are_full(zone.state for zone in self._zones.values()),
        )
        if now_full and was_full:
            return None
        if now_full:
            for zone in self._zones.values():
                zone.state = ZoneState.FULL_DISRUPTION
                self._limit(zone, 0.0)
            return Disruption.ENTERED
        for name, zone in self._zones.items():
            if was_full or zone.state is not states[name]:
                zone.state = states[name]
                self._limit(zone, self._rate(zone.state, sum(counts[name])))
        return Disruption.LEFT if was_full and states else None

    def state_of(self, counts: Counts) -> ZoneState:
        """Return the state of a zone with so many nodes."""
        ready, not_ready = counts
        if not ready and not_ready:
            return ZoneState.FULL_DISRUPTION
        share = self._options.unhealthy_zone_threshold
        if not_ready > 2 and not_ready / (ready + not_ready) >= share:
            return ZoneState.PARTIAL_DISRUPTION
        return ZoneState.NORMAL

    def _zone(self, name: str) -> Zone:
        if name not in self._zones:
            rate = self._options.node_eviction_rate
            self._zones[name] = Zone(Limiter(rate, clock=self._clock))
        return self._zones[name]

    def _rate(self, state: ZoneState, size: int) -> float:
        if state is not ZoneState.PARTIAL_DISRUPTION:
            return self._options.node_eviction_rate
        is_large = size > self._options.large_cluster_size_threshold
        return self._options.secondary_node_eviction_rate if is_large else 0.0

    def _limit(self, zone: Zone, rate: float) -> None:
        """Change the rate of a zone; who has to wait at the old one waits at the new one, too."""
        if zone.limiter.rate != rate:
            drained = not zone.limiter.try_accept()
            zone.limiter = Limiter(rate, clock=self._clock, drained=drained)


def zone_of(node: NodeView) -> str:
    """Return the name of a node's zone: its region and zone; empty: it has neither."""
    labels = node.metadata.labels or {}
    region, zone = (
        labels.get(f"topology.kubernetes.io/{of}")
        or labels.get(f"failure-domain.beta.kubernetes.io/{of}")
        or ""
        for of in ("region", "zone")
    )
    return f"{region}:\0:{zone}" if region or zone else ""


def _are_full(states: Iterable[ZoneState]) -> bool:
    return all(state is ZoneState.FULL_DISRUPTION for state in states)
