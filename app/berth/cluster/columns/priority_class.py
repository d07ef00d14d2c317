"""NAME VALUE GLOBAL-DEFAULT AGE PREEMPTIONPOLICY"""

from berth.cluster.columns.cells import AGE, NAME
from berth.cluster.resources import Column

COLUMNS = (
    NAME,
    Column(
        "Value",
        "integer",
        lambda obj: obj.get("value", 0),
        "The priority of pods that name this class.",
    ),
    Column(
        "Global-Default",
        "boolean",
        lambda obj: obj.get("globalDefault", False),
        "Whether pods that name no class get this one.",
    ),
    AGE,
    Column(
        "PreemptionPolicy",
        "string",
        lambda obj: obj.get("preemptionPolicy", ""),
        "Whether such pods may evict others: PreemptLowerPriority or Never.",
    ),
)
