"""Events, in the form of core/v1; :mod:`berth.cluster.events_view` translates for the other API."""

from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import metadata, syntax
from berth.cluster.strategies.metadata import ObjectMeta
from berth.cluster.strategies.shape import Int32, Shape, validated
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

NOTE_LIMIT = 1024
"""Bytes of ``note`` (core: ``message``) that events.k8s.io takes."""


TIMES = ("firstTimestamp", "lastTimestamp", "eventTime")


class ObjectReference(Shape, frozen=True):
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class EventSeries(Shape, frozen=True):
    count: Int32 | None = None
    last_observed_time: str | None = None


class Event(Shape, frozen=True):
    metadata: ObjectMeta | None = None
    involved_object: ObjectReference | None = None
    reason: str | None = None
    message: str | None = None
    type: str | None = None
    action: str | None = None
    count: Int32 | None = None
    event_time: str | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    series: EventSeries | None = None
    reporting_component: str | None = None
    reporting_instance: str | None = None


def default(obj: Object) -> None:
    """Give the times that are not known as null, as API servers do.

    ``kubectl get events --sort-by=.lastTimestamp`` shows nothing where no event has that field.
    """
    for field in TIMES:
        obj.setdefault(field, None)


def validate(new: Event, old: Event | None) -> list[FieldError]:
    errors = metadata.validate(
        new.metadata, old.metadata if old else None, name=syntax.path_segment, plain=True
    )
    regarding = (new.involved_object or ObjectReference()).namespace or ""
    own = (new.metadata or metadata.NO_METADATA).namespace or ""
    # Events of cluster-scoped objects live in namespace default.
    if own != (regarding or "default"):
        detail = "does not match event.namespace"
        errors.append(field_errors.invalid("involvedObject.namespace", regarding, detail))
    return errors + (_validate_new_style(new) if new.event_time else [])


def _validate_new_style(event: Event) -> list[FieldError]:
    errors = [
        field_errors.required(field)
        for field, value in (
            ("reportingController", event.reporting_component),
            ("reportingInstance", event.reporting_instance),
            ("action", event.action),
            ("reason", event.reason),
        )
        if not value
    ]
    if len((event.message or "").encode()) > NOTE_LIMIT:
        errors.append(field_errors.invalid("note", "", f"can have at most {NOTE_LIMIT} bytes"))
    if event.type not in ("Normal", "Warning"):
        errors.append(field_errors.invalid("type", event.type or "", "has invalid value"))
    return errors


EVENT = Strategy(default=default, validate=validated(Event, validate))
