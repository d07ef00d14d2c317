"""DaemonSets: a pod on every node."""

from typing import Final

from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import metadata, workload
from berth.cluster.strategies.constraint_table import constrained, validate_status
from berth.cluster.strategies.metadata import ObjectMeta
from berth.cluster.strategies.shape import Shape, section, validated
from berth.cluster.strategies.workload import WorkloadSpec
from berth.kube.field_errors import FieldError
from berth.kube.objects import pod_defaults

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


class DaemonSet(Shape, frozen=True):
    metadata: ObjectMeta | None = None
    spec: WorkloadSpec | None = None


def default(obj: Object) -> None:
    spec = section(obj, "spec")
    pod_defaults.default_template(section(spec, "template", "spec"))
    section(spec, "template", "metadata")
    strategy = section(spec, "updateStrategy")
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = section(strategy, "rollingUpdate")
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    section(obj, "metadata", "annotations").setdefault(TEMPLATE_GENERATION, "0")


def prepare(new: Object, old: Object | None) -> None:
    changed = old is not None and new.get("spec") != old.get("spec")
    metadata.set_generation(new, old, changed=changed)
    _count_templates(new, old)


def _count_templates(new: Object, old: Object | None) -> None:
    """Set the annotation that counts changes of the template, as the server has always done."""
    generation = 1
    if old is not None:
        annotations = (old.get("metadata") or {}).get("annotations") or {}
        before: str = annotations.get(TEMPLATE_GENERATION) or ""
        generation = int(before) if before.isdecimal() else 0
        generation += (old.get("spec") or {}).get("template") != new["spec"].get("template")
    section(new, "metadata", "annotations")[TEMPLATE_GENERATION] = str(generation)


def validate(new: DaemonSet, old: DaemonSet | None) -> list[FieldError]:
    errors = metadata.validate(new.metadata, old.metadata if old else None)
    before = old.spec if old else None
    return errors + workload.validate_spec(new.spec or WorkloadSpec(), before, kind="daemonset")


STATUS_COUNTS = (
    "currentNumberScheduled",
    "desiredNumberScheduled",
    "numberMisscheduled",
    "numberReady",
)

DAEMON_SET = Strategy(
    default=default,
    prepare=prepare,
    validate=constrained("apps", "v1", "DaemonSet", validated(DaemonSet, validate)),
    validate_status=validate_status("apps", "v1", "DaemonSet"),
    initial_status=lambda _obj: dict.fromkeys(STATUS_COUNTS, 0),
)
