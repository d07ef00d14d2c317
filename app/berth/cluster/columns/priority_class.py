"""NAME VALUE GLOBAL-DEFAULT AGE PREEMPTIONPOLICY"""

from berth.cluster.columns.cells import Cells

CELLS: Cells = {
    "Value": lambda obj: obj.get("value", 0),
    "Global-Default": lambda obj: obj.get("globalDefault", False),
    "PreemptionPolicy": lambda obj: obj.get("preemptionPolicy", ""),
}
