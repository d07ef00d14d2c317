"""NAME MIN-AVAILABLE MAX-UNAVAILABLE ALLOWED-DISRUPTIONS AGE"""

from berth.cluster.columns.cells import AGE, NAME, dig
from berth.cluster.resources import Column, Object


def amount(budget: Object, field: str) -> str:
    """Return a number or a percentage."""
    given = dig(budget, f"spec.{field}")
    return "N/A" if given is None else str(given)


COLUMNS = (
    NAME,
    Column(
        "Min Available",
        "string",
        lambda obj: amount(obj, "minAvailable"),
        "How many pods must stay.",
    ),
    Column(
        "Max Unavailable",
        "string",
        lambda obj: amount(obj, "maxUnavailable"),
        "How many pods may be away.",
    ),
    Column(
        "Allowed Disruptions",
        "integer",
        lambda obj: dig(obj, "status.disruptionsAllowed") or 0,
        "How many pods may be evicted now.",
    ),
    AGE,
)
