"""A cluster read from plain API objects, and the profiles that decide on it."""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from app.cache.cache import Cache
from app.clock import Clock, FakeClock
from app.framework.listers import Lister, Listers
from app.framework.node_table import NodeTable
from app.framework.pod_info import PodInfo
from app.objects.cluster import (
    Namespace,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from app.objects.node import Node
from app.objects.pod import Pod

KINDS: Mapping[str, type[msgspec.Struct]] = {
    "Namespace": Namespace,
    "Node": Node,
    "Pod": Pod,
    "ReplicaSet": ReplicaSet,
    "ReplicationController": ReplicationController,
    "Service": Service,
    "StatefulSet": StatefulSet,
}
"""The kinds that decide something so far; objects of others are counted, not read."""


class ScenarioError(Exception):
    """A file does not hold what it should; names the field and the value."""


@dataclass(slots=True)
class Scenario:
    """A cluster at one moment. Bound pods are in ``cache``; of waiting ones, the nominated."""

    cache: Cache = field(default_factory=Cache)
    listers: Listers = field(default_factory=Listers)
    nominated: dict[str, list[PodInfo]] = field(default_factory=dict)
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Kind to key to object, for all kinds of :data:`KINDS`."""
    unread: dict[str, int] = field(default_factory=dict)
    """How many objects of other kinds there were."""

    def add(self, raw: Mapping[str, Any]) -> None:
        """Take in one API object as JSON gives it; ScenarioError if it is malformed."""
        kind = raw.get("kind", "")
        if kind not in KINDS:
            self.unread[kind] = self.unread.get(kind, 0) + 1
            return
        obj = read(raw, KINDS[kind])
        self.objects.setdefault(kind, {})[obj.metadata.key] = obj
        lister = self._lister(kind)
        if lister is not None:
            lister.on_add(obj)
        elif kind == "Node":
            self.cache.add_node(obj)
        elif kind == "Pod" and not obj.is_terminated:
            info = PodInfo(obj)
            if obj.spec.node_name:
                self.cache.add_pod(info)
            elif obj.status.nominated_node_name:
                self.nominated.setdefault(obj.status.nominated_node_name, []).append(info)

    def _lister(self, kind: str) -> Lister[Any] | None:
        by_kind: Mapping[str, Lister[Any]] = {
            "Namespace": self.listers.namespaces,
            "ReplicaSet": self.listers.replica_sets,
            "ReplicationController": self.listers.replication_controllers,
            "Service": self.listers.services,
            "StatefulSet": self.listers.stateful_sets,
        }
        return by_kind.get(kind)

    @classmethod
    def of(cls, objects: Iterable[Mapping[str, Any]]) -> "Scenario":
        scenario = cls()
        for raw in objects:
            scenario.add(raw)
        scenario.cache.refresh_order()
        return scenario


def read(raw: Mapping[str, Any], kind: type[msgspec.Struct]) -> Any:
    """Decode one object; ScenarioError names it and the field that is wrong."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as exc:
        meta = raw.get("metadata")
        name = meta.get("name", "") if isinstance(meta, Mapping) else ""
        raise ScenarioError(f"{raw.get('kind', kind.__name__)} {name!r}: {exc}") from exc


@dataclass(slots=True)
class OfflineHandle:
    """What plugins get when there is no cluster behind them; nothing can be written."""

    nodes: NodeTable
    clock: Clock = field(default_factory=FakeClock)
    rng: random.Random = field(default_factory=lambda: random.Random(0))
    listers: Listers = field(default_factory=Listers)

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        raise ScenarioError(f"pod {pod.key} cannot be bound to {node_name}: there is no cluster")


def smallest_name(nodes: NodeTable) -> Callable[[Iterable[int]], int]:
    """Return the tie rule of recordings: of equally good rows the smallest node name."""
    return lambda rows: min(rows, key=nodes.name)
