"""NAME HOLDER AGE"""

from berth.cluster.columns.cells import Cells, dig

CELLS: Cells = {
    "Holder": lambda obj: dig(obj, "spec.holderIdentity") or "",
}
