"""kubectl's annotation with what was last applied, where kubectl applies on the server's side.

Who changes from ``kubectl apply`` to ``kubectl apply --server-side`` has no conflict with what he
applied himself, and the annotation follows what is applied, so that he can change back.
"""

from typing import Any, Final

import msgspec

from berth.cluster.resources import Object
from berth.cluster.strategies.metadata import ANNOTATIONS_LIMIT
from berth.cluster.writes.managed_fields.field_sets import FieldSet, difference, union
from berth.cluster.writes.managed_fields.nodes import Difference, Struct

ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL: Final = "kubectl"
"""The manager that this is for."""


def annotation_of(obj: Object) -> str:
    """Return the annotation; empty when there is none."""
    said = ((obj.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION)
    return said if isinstance(said, str) else ""


def update_annotation(obj: Object, applied: Object) -> None:
    """Make the annotation of *obj*, if it has one, say what is *applied*."""
    if not annotation_of(obj):
        return
    metadata = {**(applied.get("metadata") or {})}
    annotations = {**(metadata.get("annotations") or {})}
    annotations.pop(ANNOTATION, None)
    if "annotations" in metadata:
        metadata["annotations"] = annotations
    text = msgspec.json.encode({**applied, "metadata": metadata}, order="deterministic").decode()
    said = {**obj["metadata"]["annotations"], ANNOTATION: _escaped(text) + "\n"}
    if sum(len(key) + len(value.encode()) for key, value in said.items()) > ANNOTATIONS_LIMIT:
        del said[ANNOTATION]
    obj["metadata"] = {**obj["metadata"], "annotations": said}


def _escaped(text: str) -> str:
    """Write JSON as Go does, fit for HTML."""
    for character in "&<>\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def allowed_conflicts(live: Object, node: Struct, api_version: str) -> FieldSet:
    """Return the fields that kubectl may take from anybody: what it applied is still there."""
    try:
        last: Any = msgspec.json.decode(annotation_of(live))
    except msgspec.DecodeError:
        return {}
    if not isinstance(last, dict) or last.get("apiVersion") != api_version:
        return {}
    found = Difference()
    node.compare_fields(last, live, found)
    return difference(node.fields(last) or {}, union(found.changed, found.removed))
