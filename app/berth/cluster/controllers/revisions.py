"""Revisions of a Deployment, and the ReplicaSet of each."""

import json
from collections.abc import Iterable, Sequence
from typing import Final
from zlib import crc32

from berth.cluster.actions import Create, Delete, Patch
from berth.cluster.controllers.claims import owner_reference
from berth.cluster.controllers.replica_set import replica_set_path
from berth.cluster.controllers.rollout import Limits
from berth.cluster.controllers.views import WorkloadView
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from berth.cluster.writes.identities import SUFFIX_ALPHABET

DEPLOYMENTS: Final = find("apps", "v1", "deployments")

HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
"""The revisions that a ReplicaSet was before rollbacks to it, with commas between them."""
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MAXIMUM: Final = "deployment.kubernetes.io/max-replicas"

LAST_REVISION: Final = 2**63 - 1

HISTORY_LENGTH: Final = 2000
"""Characters of a revision history at most; the oldest revisions go first, as upstream."""

OWN_ANNOTATIONS: Final = frozenset(
    (
        REVISION,
        REVISION_HISTORY,
        DESIRED,
        MAXIMUM,
        "kubectl.kubernetes.io/last-applied-configuration",
    )
)
"""Annotations of a Deployment that its ReplicaSets do not inherit."""


def template_of(workload: WorkloadView) -> Object:
    """Return the pod template without the hash that ReplicaSets add to it."""
    template: Object = workload.spec.get("template") or {}
    meta = dict(template.get("metadata") or {})
    labels = {k: v for k, v in (meta.get("labels") or {}).items() if k != HASH_LABEL}
    return {**template, "metadata": {**meta, "labels": labels}}


def find_new(deployment: WorkloadView, owned: Iterable[WorkloadView]) -> WorkloadView | None:
    """Return the ReplicaSet of the current template: the oldest, should there be several."""
    template = template_of(deployment)
    return next((each for each in owned if template_of(each) == template), None)


def template_hash(template: Object, collisions: int) -> str:
    """Return a short name for *template*; *collisions* counts earlier ones that were taken."""
    text = json.dumps([template, collisions], sort_keys=True, separators=(",", ":"))
    digits = str(crc32(text.encode()))
    return "".join(SUFFIX_ALPHABET[ord(digit) % len(SUFFIX_ALPHABET)] for digit in digits)


def revision_of(workload: WorkloadView) -> int:
    """Return the revision that the annotation says; 0 when it says none."""
    text = (workload.metadata.annotations or {}).get(REVISION, "0")
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(LAST_REVISION)):
        return 0
    revision = int(text)
    return revision if revision <= LAST_REVISION else 0


def next_revision(old: Iterable[WorkloadView]) -> int:
    return max((revision_of(each) for each in old), default=0) + 1


def revision_annotations(replica_set: WorkloadView, revision: int) -> dict[str, str]:
    """Return the annotations of *replica_set* as *revision*; a rollback keeps what it was."""
    annotations = replica_set.metadata.annotations or {}
    found = {REVISION: str(revision)}
    before = annotations.get(REVISION)
    if before is None or revision_of(replica_set) >= revision:
        return found
    history = annotations.get(REVISION_HISTORY, "")
    revisions = [*(history.split(",") if history else ()), before]
    while len(revisions) > 1 and len(",".join(revisions)) > HISTORY_LENGTH:
        del revisions[0]
    return {**found, REVISION_HISTORY: ",".join(revisions)}


def inherited_annotations(deployment: WorkloadView) -> dict[str, str]:
    annotations = deployment.metadata.annotations or {}
    return {key: value for key, value in annotations.items() if key not in OWN_ANNOTATIONS}


def create_new(
    deployment: WorkloadView, *, name: str, replicas: int, revision: int, limits: Limits
) -> Create:
    """Return the creation of the ReplicaSet *name* for the current template."""
    meta = deployment.metadata
    pod_hash = name.removeprefix(f"{meta.name}-")
    template = template_of(deployment)
    labels = {**template["metadata"]["labels"], HASH_LABEL: pod_hash}
    selector = dict(deployment.spec.get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: pod_hash}
    body = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": meta.namespace,
            "labels": labels,
            "annotations": {
                **inherited_annotations(deployment),
                REVISION: str(revision),
                **size_annotations(limits),
            },
            "ownerReferences": [owner_reference(deployment, DEPLOYMENTS)],
        },
        "spec": {
            "replicas": replicas,
            "selector": selector,
            "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
            **{k: deployment.spec[k] for k in ("minReadySeconds",) if k in deployment.spec},
        },
    }
    path = f"/apis/apps/v1/namespaces/{meta.namespace}/replicasets"
    return Create(path, body, note=_scaled(name, 0, replicas))


def size_annotations(limits: Limits) -> dict[str, str]:
    return {DESIRED: str(limits.replicas), MAXIMUM: str(limits.maximum)}


def change(replica_set: WorkloadView, *, annotations: Object, spec: Object) -> Patch | None:
    """Return the patch that gives *replica_set* what differs of these; None when nothing does.

    It applies only to the state that was looked at: sizes are decided in view of each other.
    """
    meta = replica_set.metadata
    current = meta.annotations or {}
    annotations = {k: v for k, v in annotations.items() if current.get(k) != v}
    spec = {k: v for k, v in spec.items() if replica_set.spec.get(k) != v}
    if not annotations and not spec:
        return None
    body: Object = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}}
    if annotations:
        body["metadata"]["annotations"] = annotations
    if spec:
        body["spec"] = spec
    note = _scaled(meta.name, replica_set.replicas, spec.get("replicas", replica_set.replicas))
    return Patch(replica_set_path(replica_set), body, note=note)


def _scaled(name: str, before: int, after: int) -> str:
    """Return what events say of a new size; nothing when it is not new."""
    if before == after:
        return ""
    direction = "up" if before < after else "down"
    return f"Scaled {direction} replica set {name} from {before} to {after}"


def forget_history(old: Sequence[WorkloadView], limit: int) -> list[Delete]:
    """Return the deletion of the oldest revisions beyond *limit* that have no pods any more."""
    idle = [
        each
        for each in old
        if each.replicas == 0
        and each.count("replicas") == 0
        and each.count("observedGeneration") >= each.metadata.generation
        and each.metadata.deletion_timestamp is None
    ]
    surplus = max(len(old) - limit, 0)
    oldest = sorted(idle, key=revision_of)[:surplus]
    return [Delete(replica_set_path(each), each.metadata.uid) for each in oldest]
