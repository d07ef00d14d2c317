"""NAME STATUS AGE"""

from berth.cluster.columns.cells import AGE, NAME, dig
from berth.cluster.resources import Column

COLUMNS = (
    NAME,
    Column(
        "Status",
        "string",
        lambda obj: dig(obj, "status.phase") or "",
        "Active, or Terminating while its contents are removed.",
    ),
    AGE,
)
