"""NAME CREATED-AT of roles; NAME ROLE AGE of bindings, with whom they are for when wide"""

from berth.cluster.columns.cells import Cells, dig, listed
from berth.cluster.resources import Object


def subjects_text(binding: Object, kind: str) -> str:
    """Return the names of the subjects of a kind; ``namespace/name`` of service accounts."""
    return ", ".join(
        f"{each.get('namespace', '')}/{each['name']}" if kind == "ServiceAccount" else each["name"]
        for each in listed(binding, "subjects")
        if each.get("kind") == kind
    )


BINDING_CELLS: Cells = {
    "Role": lambda obj: f"{dig(obj, 'roleRef.kind')}/{dig(obj, 'roleRef.name')}",
    "Users": lambda obj: subjects_text(obj, "User"),
    "Groups": lambda obj: subjects_text(obj, "Group"),
    "ServiceAccounts": lambda obj: subjects_text(obj, "ServiceAccount"),
}
