"""NAME STATUS ROLES AGE VERSION, and with ``-o wide`` addresses and software versions."""

from berth.cluster.columns.cells import NONE, UNKNOWN, Cells, dig, listed
from berth.cluster.resources import Object

ROLE_PREFIX = "node-role.kubernetes.io/"
OLD_ROLE_LABEL = "kubernetes.io/role"


def status(node: Object) -> str:
    """Return what the Ready condition says, and whether the node is cordoned."""
    words = [
        "Ready" if condition.get("status") == "True" else "NotReady"
        for condition in listed(node, "status.conditions")
        if condition.get("type") == "Ready"
    ] or ["Unknown"]
    if dig(node, "spec.unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def roles(node: Object) -> str:
    """Return the roles that the node's labels claim, sorted."""
    found = set()
    for key, value in (node["metadata"].get("labels") or {}).items():
        role = key.removeprefix(ROLE_PREFIX) if key.startswith(ROLE_PREFIX) else ""
        found.add(role or (value if key == OLD_ROLE_LABEL else ""))
    return ",".join(sorted(found - {""})) or NONE


def address(node: Object, kind: str) -> str:
    """Return the first address of that kind."""
    addresses = listed(node, "status.addresses")
    return next((each.get("address", "") for each in addresses if each.get("type") == kind), NONE)


CELLS: Cells = {
    "Status": status,
    "Roles": roles,
    "Version": lambda node: dig(node, "status.nodeInfo.kubeletVersion") or "",
    "Internal-IP": lambda node: address(node, "InternalIP"),
    "External-IP": lambda node: address(node, "ExternalIP"),
    "OS-Image": lambda node: dig(node, "status.nodeInfo.osImage") or UNKNOWN,
    "Kernel-Version": lambda node: dig(node, "status.nodeInfo.kernelVersion") or UNKNOWN,
    "Container-Runtime": lambda node: (
        dig(node, "status.nodeInfo.containerRuntimeVersion") or UNKNOWN
    ),
}
