"""Claims of devices, their templates, the classes that they name, and the devices of drivers."""

from berth.cluster.columns.cells import Cells, dig
from berth.cluster.resources import Object


def claim_state(claim: Object) -> str:
    """Return ``pending``, or what is true of it: ``deleted,allocated,reserved``."""
    states = [
        state
        for state, is_so in (
            ("deleted", claim["metadata"].get("deletionTimestamp")),
            ("allocated", dig(claim, "status.allocation")),
            ("reserved", dig(claim, "status.reservedFor")),
        )
        if is_so
    ]
    return ",".join(states) if states and states != ["deleted"] else ",".join([*states, "pending"])


RESOURCE_CLAIM_CELLS: Cells = {
    "State": claim_state,
}

RESOURCE_SLICE_CELLS: Cells = {
    "Node": lambda obj: dig(obj, "spec.nodeName") or "<unset>",
    "Driver": lambda obj: dig(obj, "spec.driver") or "",
    "Pool": lambda obj: dig(obj, "spec.pool.name") or "",
}
