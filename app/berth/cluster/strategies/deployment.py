"""Deployments: a template, and how to move from one to the next."""

from berth.cluster import percent
from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import metadata, workload
from berth.cluster.strategies.constraint_table import constrained, validate_status
from berth.cluster.strategies.metadata import ObjectMeta
from berth.cluster.strategies.shape import Int32, Shape, section, validated
from berth.cluster.strategies.workload import WorkloadSpec
from berth.kube import field_errors
from berth.kube.field_errors import FieldError


class RollingUpdate(Shape, frozen=True):
    max_surge: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None


class DeploymentStrategy(Shape, frozen=True):
    type: str | None = None
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(WorkloadSpec, frozen=True):
    strategy: DeploymentStrategy | None = None
    revision_history_limit: Int32 | None = None
    progress_deadline_seconds: Int32 | None = None
    paused: bool | None = None


class Deployment(Shape, frozen=True):
    metadata: ObjectMeta | None = None
    spec: DeploymentSpec | None = None


def default(obj: Object) -> None:
    workload.default(obj)
    spec = section(obj, "spec")
    strategy = section(spec, "strategy")
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = section(strategy, "rollingUpdate")
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def prepare(new: Object, old: Object | None) -> None:
    """A change of annotations counts as one of spec: they are copied to ReplicaSets."""
    changed = old is not None and (
        new.get("spec") != old.get("spec") or _annotations(new) != _annotations(old)
    )
    metadata.set_generation(new, old, changed=changed)


def _annotations(obj: Object) -> Object:
    return (obj.get("metadata") or {}).get("annotations") or {}


def validate(new: Deployment, old: Deployment | None) -> list[FieldError]:
    errors = metadata.validate(new.metadata, old.metadata if old else None)
    spec = new.spec or DeploymentSpec()
    errors += workload.validate_spec(spec, old.spec if old else None, kind="deployment")
    errors += _validate_strategy(spec.strategy or DeploymentStrategy())
    if spec.revision_history_limit is not None and spec.revision_history_limit < 0:
        errors.append(_negative("spec.revisionHistoryLimit", spec.revision_history_limit))
    if spec.progress_deadline_seconds is not None:
        if spec.progress_deadline_seconds < 0:
            errors.append(_negative("spec.progressDeadlineSeconds", spec.progress_deadline_seconds))
        if spec.progress_deadline_seconds <= (spec.min_ready_seconds or 0):
            errors.append(
                field_errors.invalid(
                    "spec.progressDeadlineSeconds",
                    spec.progress_deadline_seconds,
                    "must be greater than minReadySeconds",
                )
            )
    return errors


def _negative(path: str, value: int) -> FieldError:
    return field_errors.invalid(path, value, "must be greater than or equal to 0")


def _validate_strategy(strategy: DeploymentStrategy) -> list[FieldError]:
    path = "spec.strategy"
    match strategy.type:
        case "Recreate":
            if strategy.rolling_update is None:
                return []
            detail = "may not be specified when strategy `type` is 'Recreate'"
            return [field_errors.forbidden(f"{path}.rollingUpdate", detail)]
        case "RollingUpdate":
            return _validate_rolling(strategy.rolling_update or RollingUpdate(), path)
    supported = ("Recreate", "RollingUpdate")
    return [field_errors.not_supported(path, strategy.type or "", supported)]


def _validate_rolling(rolling: RollingUpdate, path: str) -> list[FieldError]:
    path = f"{path}.rollingUpdate"
    errors = []
    for field, amount in (
        ("maxUnavailable", rolling.max_unavailable),
        ("maxSurge", rolling.max_surge),
    ):
        errors += _validate_amount(amount, f"{path}.{field}")
    if errors:
        return errors
    if _leading_number(rolling.max_unavailable) == 0 == _leading_number(rolling.max_surge):
        detail = "may not be 0 when `maxSurge` is 0"
        return [field_errors.invalid(f"{path}.maxUnavailable", rolling.max_unavailable, detail)]
    unavailable = rolling.max_unavailable
    if isinstance(unavailable, str) and _leading_number(unavailable) > 100:
        detail = "must not be greater than 100%"
        return [field_errors.invalid(f"{path}.maxUnavailable", unavailable, detail)]
    return []


def _validate_amount(amount: int | str | None, path: str) -> list[FieldError]:
    if isinstance(amount, str) and not percent.is_percent(amount):
        return [field_errors.invalid(path, amount, percent.WANTED)]
    if isinstance(amount, int) and amount < 0:
        return [_negative(path, amount)]
    return []


def _leading_number(amount: int | str | None) -> int:
    """Return the number of a valid amount, percent or not."""
    if isinstance(amount, str):
        return percent.number_of(amount)
    return amount or 0


DEPLOYMENT = Strategy(
    default=default,
    prepare=prepare,
    validate=constrained("apps", "v1", "Deployment", validated(Deployment, validate)),
    validate_status=validate_status("apps", "v1", "Deployment"),
    initial_status=lambda _obj: {},
)
