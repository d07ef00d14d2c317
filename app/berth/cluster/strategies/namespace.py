"""Namespaces: they hold a finalizer until the namespace controller has emptied them."""

from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import metadata, syntax
from berth.cluster.strategies.metadata import ObjectMeta
from berth.cluster.strategies.shape import Shape, section, validated
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

NAME_LABEL = "kubernetes.io/metadata.name"


class NamespaceSpec(Shape, frozen=True):
    finalizers: list[str] | None = None


class Namespace(Shape, frozen=True):
    metadata: ObjectMeta | None = None
    spec: NamespaceSpec | None = None


def default(obj: Object) -> None:
    name = section(obj, "metadata").get("name")
    if name:
        section(obj, "metadata", "labels")[NAME_LABEL] = name


def prepare(new: Object, old: Object | None) -> None:
    """Only the finalize subresource takes a finalizer of ``spec`` away."""
    spec = section(new, "spec")
    if old is None:
        default(new)  # a generated name is new
        finalizers = spec.setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
    else:
        spec["finalizers"] = (old.get("spec") or {}).get("finalizers") or []


def deleting(obj: Object) -> None:
    """Say that the namespace is being emptied, which takes as long as it does."""
    obj["metadata"].pop("deletionGracePeriodSeconds", None)
    section(obj, "status")["phase"] = "Terminating"


def validate(new: Namespace, old: Namespace | None) -> list[FieldError]:
    found = metadata.validate(
        new.metadata,
        old.metadata if old else None,
        namespaced=False,
        name=syntax.dns1123_label,
    )
    finalizers = (new.spec.finalizers if new.spec else None) or []
    return found + [
        error for each in finalizers for error in metadata.finalizer("spec.finalizers", each)
    ]


def validate_status(new: Object, _old: Object | None) -> list[FieldError]:
    phase = (new.get("status") or {}).get("phase")
    is_deleted = bool(new["metadata"].get("deletionTimestamp"))
    if phase == ("Terminating" if is_deleted else "Active"):
        return []
    detail = "may only be 'Active' if `deletionTimestamp` is empty"
    if is_deleted:
        detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
    return [field_errors.invalid("status.Phase", phase, detail)]


NAMESPACE = Strategy(
    default=default,
    prepare=prepare,
    validate=validated(Namespace, validate),
    validate_status=validate_status,
    initial_status=lambda _obj: {"phase": "Active"},
    deleting=deleting,
)
