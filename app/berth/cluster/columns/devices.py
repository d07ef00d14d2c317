"""Claims of devices, their templates, the classes that they name, and the devices of drivers."""

from berth.cluster.columns.cells import AGE, NAME, dig
from berth.cluster.resources import Column, Object


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


RESOURCE_CLAIM_COLUMNS = (
    NAME,
    Column("State", "string", claim_state, "Whether it has devices, and whether they are used."),
    AGE,
)

NAME_AND_AGE = (NAME, AGE)
"""Of DeviceClasses and ResourceClaimTemplates."""

RESOURCE_SLICE_COLUMNS = (
    NAME,
    Column(
        "Node",
        "string",
        lambda obj: dig(obj, "spec.nodeName") or "<unset>",
        "The node that has the devices, if it is a single one.",
    ),
    Column("Driver", "string", lambda obj: dig(obj, "spec.driver") or "", "Who knows the devices."),
    Column("Pool", "string", lambda obj: dig(obj, "spec.pool.name") or "", "What it is a part of."),
    AGE,
)
