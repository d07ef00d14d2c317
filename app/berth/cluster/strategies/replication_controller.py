"""ReplicationControllers: what ReplicaSets were before label selectors."""

from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import metadata, workload
from berth.cluster.strategies.constraint_table import constrained, validate_status
from berth.cluster.strategies.metadata import ObjectMeta
from berth.cluster.strategies.selectors import LabelSelector
from berth.cluster.strategies.shape import Int32, Shape, section, validated
from berth.cluster.strategies.workload import PodTemplate, WorkloadSpec
from berth.kube import field_errors
from berth.kube.field_errors import FieldError


class ReplicationControllerSpec(Shape, frozen=True):
    replicas: Int32 | None = None
    selector: dict[str, str] | None = None
    template: PodTemplate | None = None
    min_ready_seconds: Int32 | None = None


class ReplicationController(Shape, frozen=True):
    metadata: ObjectMeta | None = None
    spec: ReplicationControllerSpec | None = None


def default(obj: Object) -> None:
    """Select by the template's labels, and be labelled like it, if nothing else is said."""
    if section(obj, "spec").get("template") is None:
        obj["spec"].setdefault("replicas", 1)
        return
    workload.default(obj)
    labels = section(obj, "spec", "template", "metadata").get("labels")
    if labels:
        if not obj["spec"].get("selector"):
            obj["spec"]["selector"] = dict(labels)
        if not section(obj, "metadata").get("labels"):
            obj["metadata"]["labels"] = dict(labels)


def prepare(new: Object, old: Object | None) -> None:
    changed = old is not None and new.get("spec") != old.get("spec")
    metadata.set_generation(new, old, changed=changed)


def validate(new: ReplicationController, old: ReplicationController | None) -> list[FieldError]:
    errors = metadata.validate(new.metadata, old.metadata if old else None)
    spec = new.spec or ReplicationControllerSpec()
    if not spec.selector:
        errors.append(field_errors.required("spec.selector"))
    if spec.template is None:
        errors.append(field_errors.required("spec.template"))
    if not spec.selector or spec.template is None:
        return errors
    modern = WorkloadSpec(
        replicas=spec.replicas,
        selector=LabelSelector(match_labels=spec.selector),
        template=spec.template,
        min_ready_seconds=spec.min_ready_seconds,
    )
    # Compared with no old one: this selector may change.
    return errors + workload.validate_spec(modern, None, kind="ReplicationController")


REPLICATION_CONTROLLER = Strategy(
    default=default,
    prepare=prepare,
    validate=constrained(
        "", "v1", "ReplicationController", validated(ReplicationController, validate)
    ),
    validate_status=validate_status("", "v1", "ReplicationController"),
    initial_status=lambda _obj: {"replicas": 0},
)
