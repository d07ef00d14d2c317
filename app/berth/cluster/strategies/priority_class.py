"""PriorityClasses: names for priorities."""

from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import metadata
from berth.cluster.strategies.metadata import ObjectMeta
from berth.cluster.strategies.pod_spec import PREEMPTION_POLICIES
from berth.cluster.strategies.shape import Int32, Shape, validated
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.kube.objects.pod_defaults import SYSTEM_PRIORITIES

HIGHEST_USER_PRIORITY = 1_000_000_000
"""What is above belongs to the system classes."""

SYSTEM_CLASSES = {
    "system-cluster-critical": (
        SYSTEM_PRIORITIES["system-cluster-critical"],
        "Used for system critical pods that must run in the cluster, but can be moved to another "
        "node if necessary.",
    ),
    "system-node-critical": (
        SYSTEM_PRIORITIES["system-node-critical"],
        "Used for system critical pods that must not be moved from their current node.",
    ),
}
"""Value and description of the classes that exist from the start."""


class PriorityClass(Shape, frozen=True):
    metadata: ObjectMeta | None = None
    value: Int32 | None = None
    global_default: bool | None = None
    description: str | None = None
    preemption_policy: str | None = None


def default(obj: Object) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
    obj.setdefault("value", 0)


def prepare(new: Object, old: Object | None) -> None:
    metadata.set_generation(new, old, changed=False)


def validate(new: PriorityClass, old: PriorityClass | None) -> list[FieldError]:
    if old is None:
        errors = metadata.validate(new.metadata, None, namespaced=False) + _validate_value(new)
        policy = new.preemption_policy or ""
        if policy not in PREEMPTION_POLICIES:
            errors.append(
                field_errors.not_supported("preemptionPolicy", policy, PREEMPTION_POLICIES)
            )
        return errors
    errors = []
    if new.value != old.value:
        errors.append(field_errors.forbidden("value", "may not be changed in an update."))
    if new.preemption_policy != old.preemption_policy:
        errors.append(
            field_errors.invalid("preemptionPolicy", new.preemption_policy, "field is immutable")
        )
    return errors


def _validate_value(new: PriorityClass) -> list[FieldError]:
    name, value = (new.metadata or metadata.NO_METADATA).name or "", new.value or 0
    if name.startswith("system-"):
        if SYSTEM_CLASSES.get(name, (None, ""))[0] == value:
            return []
        detail = (
            "priority class names with 'system-' prefix are reserved for system use only. "
            f"error: {name} is not a known system priority class"
        )
        return [field_errors.forbidden("metadata.name", detail)]
    if value > HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        return [field_errors.forbidden("value", detail)]
    if value < -(2**31):
        detail = "must be between -2147483648 and 2147483647, inclusive"
        return [field_errors.invalid("value", value, detail)]
    return []


PRIORITY_CLASS = Strategy(
    default=default, prepare=prepare, validate=validated(PriorityClass, validate)
)
