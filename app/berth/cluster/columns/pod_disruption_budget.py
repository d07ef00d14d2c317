"""NAME MIN-AVAILABLE MAX-UNAVAILABLE ALLOWED-DISRUPTIONS AGE"""

from berth.cluster.columns.cells import Cells, dig
from berth.cluster.resources import Object


def amount(budget: Object, field: str) -> str:
    """Return a number or a percentage."""
    given = dig(budget, f"spec.{field}")
    return "N/A" if given is None else str(given)


CELLS: Cells = {
    "Min Available": lambda obj: amount(obj, "minAvailable"),
    "Max Unavailable": lambda obj: amount(obj, "maxUnavailable"),
    "Allowed Disruptions": lambda obj: dig(obj, "status.disruptionsAllowed") or 0,
}
