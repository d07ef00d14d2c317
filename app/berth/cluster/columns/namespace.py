"""NAME STATUS AGE"""

from berth.cluster.columns.cells import Cells, dig

CELLS: Cells = {
    "Status": lambda obj: dig(obj, "status.phase") or "",
}
