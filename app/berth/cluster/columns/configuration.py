"""NAME DATA AGE, NAME TYPE DATA AGE, NAME SECRETS AGE; NAME POD-SELECTOR AGE"""

from berth.cluster.columns.cells import NONE, Cells, dig, selector_text

CONFIG_MAP_CELLS: Cells = {
    "Data": lambda obj: len(obj.get("data") or ()) + len(obj.get("binaryData") or ()),
}

SECRET_CELLS: Cells = {
    "Type": lambda obj: obj.get("type") or "",
    "Data": lambda obj: len(obj.get("data") or ()),
}

NETWORK_POLICY_CELLS: Cells = {
    "Pod-Selector": lambda obj: selector_text(dig(obj, "spec.podSelector")) or NONE,
}
