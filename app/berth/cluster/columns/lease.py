"""NAME HOLDER AGE"""

from berth.cluster.columns.cells import AGE, NAME, dig
from berth.cluster.resources import Column

COLUMNS = (
    NAME,
    Column(
        "Holder",
        "string",
        lambda obj: dig(obj, "spec.holderIdentity") or "",
        "Who has the lease now; empty when it was given back.",
    ),
    AGE,
)
