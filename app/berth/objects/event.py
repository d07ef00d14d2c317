"""events.k8s.io/v1 Event, as the scheduler writes it (spec §2.11)."""

from berth.objects.meta import KubeStruct


class ObjectReference(KubeStruct, frozen=True, gc=False):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""


class EventMeta(KubeStruct, frozen=True, gc=False):
    name: str
    namespace: str


class EventSeries(KubeStruct, frozen=True, gc=False):
    count: int
    last_observed_time: str


class Event(KubeStruct, frozen=True, gc=False, omit_defaults=True):
    """One event; ``api_version`` and ``kind`` are written out, being without defaults."""

    api_version: str
    kind: str
    metadata: EventMeta
    event_time: str
    reporting_controller: str
    reporting_instance: str
    action: str
    reason: str
    regarding: ObjectReference
    note: str
    type: str
    related: ObjectReference | None = None
    series: EventSeries | None = None
