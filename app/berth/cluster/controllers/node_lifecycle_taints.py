"""The taints and labels that a node should have, by what it says of itself."""

from collections.abc import Iterable
from typing import Final

from berth.cluster.actions import Patch
from berth.cluster.controllers.views import NodeTaint, NodeView
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from berth.kube.objects.taints import NO_EXECUTE, NO_SCHEDULE, UNSCHEDULABLE_TAINT

NODES: Final = find("", "v1", "nodes")

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"

OF_CONDITIONS: Final = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
"""The keys of taints, by type and status of conditions."""

_OURS: Final = {*OF_CONDITIONS.values(), UNSCHEDULABLE_TAINT.key}

OLD_LABELS: Final = {
    "kubernetes.io/os": "beta.kubernetes.io/os",
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
}
"""Labels, and the names under which they are kept as well."""


def evicting(node: NodeView) -> str:
    """Return the key of the NoExecute taint that says that *node* is not well; empty: none."""
    for taint in node.spec.taints:
        if taint.effect == NO_EXECUTE and taint.key in (NOT_READY, UNREACHABLE):
            return taint.key
    return ""


def patch_of(node: NodeView, *, evict: str | None, stamp: str) -> Patch | None:
    """Return what gives *node* its taints and labels; None when it has them.

    *evict* is the key of the NoExecute taint that it is to have; empty: neither of the two;
    None: as it is. *stamp* is the time of new taints.
    """
    body: Object = {}
    taints = _taints(node, evict, stamp)
    if taints is not None:
        body["spec"] = {"taints": taints or None}
    labels = node.metadata.labels or {}
    missing = {
        old: labels[label]
        for label, old in OLD_LABELS.items()
        if label in labels and labels.get(old) != labels[label]
    }
    if not body and not missing:
        return None
    meta = node.metadata
    body["metadata"] = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    if missing:
        body["metadata"]["labels"] = missing
    return Patch(NODES.path_of("", meta.name), body)


def _taints(node: NodeView, evict: str | None, stamp: str) -> list[Object] | None:
    wanted = [(key, NO_SCHEDULE) for key in _by_condition(node)]
    if evict:
        wanted.append((evict, NO_EXECUTE))
    has = [(taint.key, taint.effect) for taint in node.spec.taints]
    gone = {
        (key, effect)
        for key, effect in has
        if (key, effect) not in wanted
        and (
            (effect == NO_SCHEDULE and key in _OURS)
            or (evict is not None and effect == NO_EXECUTE and key in (NOT_READY, UNREACHABLE))
        )
    }
    added = [each for each in wanted if each not in has]
    if not gone and not added:
        return None
    kept = [_body(t) for t in node.spec.taints if (t.key, t.effect) not in gone]
    return [*kept, *({"key": k, "effect": e, "timeAdded": stamp} for k, e in added)]


def _by_condition(node: NodeView) -> Iterable[str]:
    for condition in node.status.conditions or ():
        key = OF_CONDITIONS.get((condition.type, condition.status))
        if key is not None:
            yield key
    if node.spec.unschedulable:
        yield UNSCHEDULABLE_TAINT.key


def _body(taint: NodeTaint) -> Object:
    fields = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    return {k: v for k, v in {**fields, "timeAdded": taint.time_added}.items() if v}
