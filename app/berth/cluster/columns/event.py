"""LAST SEEN TYPE REASON OBJECT MESSAGE, and with ``-o wide`` where the event came from.

Reads the core/v1 form; ``berth.cluster.events_view`` explains why there are two.
"""

from berth.cluster.columns.cells import Cells, Since, dig
from berth.cluster.resources import Object


def first_seen(event: Object) -> Since:
    """Return the age of the first occurrence; new-style events have only ``eventTime``."""
    return Since(event.get("firstTimestamp") or event.get("eventTime"))


def last_seen(event: Object) -> Since:
    """Return the age of the last occurrence; a series knows best."""
    if event.get("series"):
        return Since(dig(event, "series.lastObservedTime"))
    return Since(event["lastTimestamp"]) if event.get("lastTimestamp") else first_seen(event)


def count(event: Object) -> int:
    """Return how often it happened; a new-style event without series happened once."""
    if event.get("series"):
        return dig(event, "series.count") or 0
    return event.get("count") or 1


def regarded(event: Object) -> str:
    """Return ``pod/web-1``."""
    kind = (dig(event, "involvedObject.kind") or "").lower()
    name = dig(event, "involvedObject.name")
    return f"{kind}/{name}" if name else kind


def source(event: Object) -> str:
    """Return ``component, host``, from the old fields or else from the new ones."""
    component = dig(event, "source.component") or event.get("reportingComponent") or ""
    host = dig(event, "source.host") or event.get("reportingInstance") or ""
    return f"{component}, {host}" if host else component


CELLS: Cells = {
    "Last Seen": last_seen,
    "Type": lambda event: event.get("type") or "",
    "Reason": lambda event: event.get("reason") or "",
    "Object": regarded,
    "Subobject": lambda event: dig(event, "involvedObject.fieldPath") or "",
    "Source": source,
    "Message": lambda event: (event.get("message") or "").strip(),
    "First Seen": first_seen,
    "Count": count,
}
