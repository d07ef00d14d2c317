"""NAME CREATED-AT of roles; NAME ROLE AGE of bindings, with whom they are for when wide"""

from berth.cluster.columns.cells import AGE, NAME, dig, listed
from berth.cluster.resources import Column, Object

ROLE_COLUMNS = (
    NAME,
    Column(
        "Created At",
        "string",
        lambda obj: obj["metadata"].get("creationTimestamp") or "",
        "When the server stored the object for the first time.",
    ),
)


def subjects_text(binding: Object, kind: str) -> str:
    """Return the names of the subjects of a kind; ``namespace/name`` of service accounts."""
    return ", ".join(
        f"{each.get('namespace', '')}/{each['name']}" if kind == "ServiceAccount" else each["name"]
        for each in listed(binding, "subjects")
        if each.get("kind") == kind
    )


BINDING_COLUMNS = (
    NAME,
    Column(
        "Role",
        "string",
        lambda obj: f"{dig(obj, 'roleRef.kind')}/{dig(obj, 'roleRef.name')}",
        "What the subjects are given.",
    ),
    AGE,
    Column(
        "Users", "string", lambda obj: subjects_text(obj, "User"), "Users among them.", priority=1
    ),
    Column(
        "Groups",
        "string",
        lambda obj: subjects_text(obj, "Group"),
        "Groups among them.",
        priority=1,
    ),
    Column(
        "ServiceAccounts",
        "string",
        lambda obj: subjects_text(obj, "ServiceAccount"),
        "Service accounts among them.",
        priority=1,
    ),
)
