"""ControllerRevisions: what the pods of a DaemonSet or StatefulSet were made from, and when.

The package pkg/controller/history upstream.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from berth.cluster.actions import Action, Create, Delete, Patch
from berth.cluster.controllers.claims import owner_reference
from berth.cluster.controllers.revisions import template_hash
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import RevisionView, WorkloadView
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType

CONTROLLER_REVISIONS: Final = find("apps", "v1", "controllerrevisions")
LONGEST_PREFIX: Final = 223
"""Of the name of a revision, the part that is the name of its owner."""


@dataclass(frozen=True, slots=True)
class Present:
    """The revision of the present template, which may not exist yet."""

    name: str
    hash: str
    number: int
    actions: list[Action]
    """What makes it exist, and be the latest."""


def data_of(template: Object) -> Object:
    """Return *template* as a patch that ``kubectl rollout undo`` can apply.

    Its keys are sorted, as clients compare the bytes of revisions.
    """
    data = {"spec": {"template": {**template, "$patch": "replace"}}}
    ordered: Object = msgspec.json.decode(msgspec.json.encode(data, order="sorted"))
    return ordered


def template_of(revision: RevisionView) -> Object:
    """Return the pod template that *revision* keeps."""
    template: Object = (revision.data.get("spec") or {}).get("template") or {}
    return {field: value for field, value in template.items() if field != "$patch"}


def names_of_others(revisions: Table[RevisionView], owner: WorkloadView) -> set[str]:
    """Return the names of revisions in the namespace of *owner* that it does not control."""
    return {
        each.metadata.name
        for each in revisions.in_namespace(owner.metadata.namespace)
        if each.metadata.controller is None or each.metadata.controller.uid != owner.metadata.uid
    }


def revision_path(revision: RevisionView) -> str:
    return CONTROLLER_REVISIONS.path_of(revision.metadata.namespace, revision.metadata.name)


def present_revision(
    owner: WorkloadView,
    resource: ResourceType,
    owned: Collection[RevisionView],
    *,
    hash_label: str,
    taken: Collection[str],
) -> Present:
    """Return the revision of the template of *owner*, which is one of *resource*.

    *owned* are its revisions; *taken* are names that others have. *hash_label* is where the hash
    stands among the labels of a revision.
    """
    data = data_of(owner.spec.get("template") or {})
    latest = max((each.revision for each in owned), default=0)
    same = [each for each in owned if each.data == data]
    if same:
        found = max(same, key=lambda each: each.revision)
        labels, name = found.metadata.labels or {}, found.metadata.name
        number, actions = found.revision, list[Action]()
        if number < latest:
            number = latest + 1
            body = {"metadata": {"uid": found.metadata.uid}, "revision": number}
            actions.append(Patch(revision_path(found), body))
        return Present(name, labels.get(hash_label) or name.rpartition("-")[2], number, actions)
    collisions = 0
    while True:
        digest = template_hash(data, collisions)
        name = f"{owner.metadata.name[:LONGEST_PREFIX]}-{digest}"
        if name not in taken:
            break
        collisions += 1
    of_template = (owner.spec.get("template") or {}).get("metadata") or {}
    labels = {**(of_template.get("labels") or {}), hash_label: digest}
    body = _revision(owner, resource, name, labels, data)
    body["revision"] = latest + 1
    path = CONTROLLER_REVISIONS.collection_path(owner.metadata.namespace)
    return Present(name, digest, latest + 1, [Create(path, body)])


def forget_revisions(
    owned: Sequence[RevisionView], live: Collection[str], limit: int
) -> list[Delete]:
    """Return the deletion of the oldest revisions beyond *limit*, but for those named in *live*."""
    idle = [each for each in owned if each.metadata.name not in live]
    surplus = max(len(idle) - limit, 0)
    oldest = sorted(idle, key=lambda each: each.revision)[:surplus]
    return [Delete(revision_path(each), each.metadata.uid) for each in oldest]


def _revision(
    owner: WorkloadView,
    resource: ResourceType,
    name: str,
    labels: Mapping[str, str],
    data: Object,
) -> Object:
    return {
        "apiVersion": CONTROLLER_REVISIONS.group_version,
        "kind": CONTROLLER_REVISIONS.kind,
        "metadata": {
            "name": name,
            "namespace": owner.metadata.namespace,
            "labels": dict(labels),
            "annotations": owner.metadata.annotations or {},
            "ownerReferences": [owner_reference(owner, resource)],
        },
        "data": data,
    }
