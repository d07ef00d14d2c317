"""Retention of the volume claims of a StatefulSet that shrinks or goes (KEP-1847).

Claims that are to go get an owner, and the garbage collector does the rest: the StatefulSet itself,
or the pod whose ordinal is no longer wanted.
"""

from collections.abc import Iterable, Iterator

import msgspec

from berth.cluster.actions import Patch
from berth.cluster.controllers.claims import owner_reference
from berth.cluster.controllers.views import ResourceView, WorkloadView
from berth.cluster.kinds.builtin import find
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object

PODS = find("", "v1", "pods")
STATEFUL_SETS = find("apps", "v1", "statefulsets")
VOLUME_CLAIMS = find("", "v1", "persistentvolumeclaims")


def deletes(stateful_set: WorkloadView, when: str) -> bool:
    """Whether claims go ``whenDeleted`` or ``whenScaled``."""
    policy = stateful_set.spec.get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get(when) == "Delete"


def owners_of_claim(
    stateful_set: WorkloadView, pod: PodView | None, *, is_wanted: bool
) -> list[Object]:
    """Return the owners, of these two, that a claim of *pod* is to have: at most one."""
    if not is_wanted and pod is not None and deletes(stateful_set, "whenScaled"):
        return [owner_reference(pod, PODS)]
    if deletes(stateful_set, "whenDeleted"):
        return [owner_reference(stateful_set, STATEFUL_SETS)]
    return []


def retention_patches(
    stateful_set: WorkloadView, pod: PodView, claims: Iterable[ResourceView], *, is_wanted: bool
) -> Iterator[Patch]:
    """Yield what gives the *claims* of *pod* the owners that the policy wants.

    A claim that somebody else controls gets none of them.
    """
    owners = owners_of_claim(stateful_set, pod, is_wanted=is_wanted)
    ours = {"StatefulSet": stateful_set.metadata.name, "Pod": pod.metadata.name}
    for claim in claims:
        meta = claim.metadata
        kept = [ref for ref in meta.owners if ours.get(ref.kind) != ref.name]
        present = [ref for ref in meta.owners if ours.get(ref.kind) == ref.name]
        wanted = [] if any(ref.controller for ref in kept) else owners
        if [ref.uid for ref in present] == [ref["uid"] for ref in wanted]:
            continue
        metadata = {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "ownerReferences": [*map(msgspec.to_builtins, kept), *wanted],
        }
        yield Patch(VOLUME_CLAIMS.path_of(meta.namespace, meta.name), {"metadata": metadata})
