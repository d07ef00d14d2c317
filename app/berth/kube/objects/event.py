"""events.k8s.io/v1 Event, as the scheduler writes it (spec §2.11)."""

import uuid
from collections.abc import Callable
from typing import Final

from berth.kube.objects.meta import KubeStruct

NAME_LIMIT: Final = 253
"""Characters of an object's name."""


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


def event_name(regarding: str, nanos: int, *, new_uid: Callable[[], uuid.UUID] = uuid.uuid4) -> str:
    """Return client-go's name of an event: the object's and the time, or a UUID if too long.

    *nanos* is the time in nanoseconds since 1970.
    """
    name = f"{regarding}.{nanos:x}"
    return name if len(name) <= NAME_LIMIT else str(new_uid())
