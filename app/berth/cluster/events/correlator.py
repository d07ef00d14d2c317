"""Correlation of events: new ones, and repeats of earlier ones (client-go, events_cache.go)."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeVar

from berth.cluster.actions import STRATEGIC_MERGE, Create, Patch
from berth.cluster.resources import Object
from berth.kube.objects.event import event_name
from berth.runtime.clock import rfc3339

K = TypeVar("K")
V = TypeVar("V")

Type = Literal["Normal", "Warning"]

REMEMBERED: Final = 4096
"""Entries in each of the memories below; the one not used for longest is forgotten first."""

SIMILAR: Final = 10
SIMILAR_SECONDS: Final = 600.0
"""So many events that differ only in their message, none later than so many seconds after the one
before, and the rest are counted in one."""

BURST: Final = 25
REFILL_SECONDS: Final = 300.0
"""Events about one object that a component may write at once, and seconds until one more."""

COMBINED: Final = "(combined from similar events): "


class Reference(NamedTuple):
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    """Empty for what is in none."""
    name: str
    uid: str
    resource_version: str = ""
    field_path: str = ""
    """The part of the object that it is about, such as ``spec.containers{web}``."""


class Occurrence(NamedTuple):
    """Something that happened."""

    regarding: Reference
    type: Type
    reason: str
    message: str
    component: str
    host: str
    """The node, of kubelets."""
    at: float
    """In unix seconds."""
    annotations: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class _Similar:
    messages: set[str] = field(default_factory=set)
    last_at: float = 0.0


@dataclass(slots=True)
class _Written:
    name: str
    count: int


@dataclass(slots=True)
class _Budget:
    tokens: float
    filled_at: float


class EventCorrelator:
    """Turns occurrences into writes. Synchronous; remembers the latest ones."""

    def __init__(self) -> None:
        self._similar: OrderedDict[Occurrence, _Similar] = OrderedDict()
        self._written: OrderedDict[Occurrence, _Written] = OrderedDict()
        self._budgets: OrderedDict[tuple[str, str, Reference], _Budget] = OrderedDict()
        self._last_nanos = 0

    def correlate(self, occurrence: Occurrence) -> Create | Patch | None:
        """Return the write that tells of *occurrence*; None: there were too many like it."""
        aggregated, key = self._aggregate(occurrence)
        written = self._written.pop(key, None)
        count = 1 if written is None else written.count + 1
        name = self._name(occurrence) if written is None else written.name
        _remember(self._written, key, _Written(name, count))
        if not self._takes(occurrence):
            return None
        if written is None:
            return Create(_path(occurrence), _event(aggregated, name))
        body = {
            "count": count,
            "lastTimestamp": rfc3339(occurrence.at),
            "message": aggregated.message,
        }
        return Patch(f"{_path(occurrence)}/{name}", body, STRATEGIC_MERGE)

    def recreate(self, occurrence: Occurrence) -> Create:
        """Return the write for an event that is not on the server any more, and starts anew."""
        aggregated, key = self._aggregate(occurrence)
        name = self._name(occurrence)
        _remember(self._written, key, _Written(name, 1))
        return Create(_path(occurrence), _event(aggregated, name))

    def _aggregate(self, occurrence: Occurrence) -> tuple[Occurrence, Occurrence]:
        """Return what to tell, and by what to find it again."""
        same = occurrence._replace(at=0.0)
        alike = same._replace(message="")
        similar = self._similar.pop(alike, None)
        if similar is None or occurrence.at - similar.last_at > SIMILAR_SECONDS:
            similar = _Similar()
        similar.messages.add(occurrence.message)
        similar.last_at = occurrence.at
        _remember(self._similar, alike, similar)
        if len(similar.messages) < SIMILAR:
            return occurrence, same
        similar.messages.pop()
        return occurrence._replace(message=COMBINED + occurrence.message), alike

    def _takes(self, occurrence: Occurrence) -> bool:
        """Whether the object has had fewer events of late than would be spam."""
        about = occurrence.regarding._replace(resource_version="", field_path="")
        key = (occurrence.component, occurrence.host, about)
        now = occurrence.at
        budget = self._budgets.pop(key, None) or _Budget(float(BURST), now)
        refilled = budget.tokens + max(now - budget.filled_at, 0.0) / REFILL_SECONDS
        budget.tokens, budget.filled_at = min(refilled, float(BURST)), now
        _remember(self._budgets, key, budget)
        if budget.tokens < 1.0:
            return False
        budget.tokens -= 1.0
        return True

    def _name(self, occurrence: Occurrence) -> str:
        """Return a name that no other event has, also of the same moment."""
        self._last_nanos = max(int(occurrence.at * 1e9), self._last_nanos + 1)
        return event_name(occurrence.regarding.name, self._last_nanos)


def _path(occurrence: Occurrence) -> str:
    return f"/api/v1/namespaces/{_namespace(occurrence.regarding)}/events"


def _namespace(regarding: Reference) -> str:
    return regarding.namespace or "default"


def _event(occurrence: Occurrence, name: str) -> Object:
    regarding, stamp = occurrence.regarding, rfc3339(occurrence.at)
    involved = {
        "kind": regarding.kind,
        "namespace": regarding.namespace,
        "name": regarding.name,
        "uid": regarding.uid,
        "apiVersion": regarding.api_version,
        "resourceVersion": regarding.resource_version,
        "fieldPath": regarding.field_path,
    }
    metadata: Object = {"name": name, "namespace": _namespace(regarding)}
    if occurrence.annotations:
        metadata["annotations"] = dict(occurrence.annotations)
    source = {"component": occurrence.component, "host": occurrence.host}
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": metadata,
        "involvedObject": {key: value for key, value in involved.items() if value},
        "reason": occurrence.reason,
        "message": occurrence.message,
        "source": {key: value for key, value in source.items() if value},
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
        "type": occurrence.type,
        "eventTime": None,
        "reportingComponent": occurrence.component,
        "reportingInstance": occurrence.host,
    }


def _remember(memory: OrderedDict[K, V], key: K, value: V) -> None:
    memory[key] = value
    if len(memory) > REMEMBERED:
        memory.popitem(last=False)
