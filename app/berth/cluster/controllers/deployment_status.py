"""Status of Deployments: counts, and the conditions ``kubectl rollout status`` waits for."""

from collections.abc import Iterable, Sequence
from typing import Final

from berth.cluster.controllers.replica_set import REPLICA_FAILURE
from berth.cluster.controllers.rollout import Limits
from berth.cluster.controllers.views import WorkloadView
from berth.cluster.resources import Object
from berth.cluster.times import seconds_of
from berth.runtime.clock import rfc3339

AVAILABLE: Final = "NewReplicaSetAvailable"
CREATED: Final = "NewReplicaSetCreated"
UPDATED: Final = "ReplicaSetUpdated"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
PAUSED: Final = "DeploymentPaused"


def counts(
    deployment: WorkloadView, new: WorkloadView | None, old: Sequence[WorkloadView]
) -> Object:
    """Return the numbers of the status."""
    everything = [*old, *([new] if new else [])]
    available = sum(each.count("availableReplicas") for each in everything)
    return {
        "observedGeneration": deployment.metadata.generation,
        "replicas": sum(each.count("replicas") for each in everything),
        "updatedReplicas": new.count("replicas") if new else 0,
        "readyReplicas": sum(each.count("readyReplicas") for each in everything),
        "availableReplicas": available,
        "unavailableReplicas": max(sum(each.replicas for each in everything) - available, 0),
        "terminatingReplicas": sum(each.count("terminatingReplicas") for each in everything),
    }


def is_complete(deployment: WorkloadView, status: Object) -> bool:
    """Whether every pod is of the new template and available, and no other is left."""
    wanted = deployment.replicas
    return bool(
        status["updatedReplicas"] == wanted
        and status["replicas"] == wanted
        and status["availableReplicas"] == wanted
    )


def conditions(
    deployment: WorkloadView,
    status: Object,
    replica_sets: Iterable[WorkloadView],
    *,
    limits: Limits,
    new_name: str,
    now: float,
) -> list[Object]:
    """Return the conditions to report: those of others, ReplicaFailure, Available, Progressing.

    *replica_sets* begin with the new one: the first failure of theirs is the Deployment's.
    """
    current = {
        condition["type"]: condition for condition in deployment.status.get("conditions") or []
    }
    own = ("Available", "Progressing", REPLICA_FAILURE)
    kept = [each for type_, each in current.items() if type_ not in own]
    kept += _failures(replica_sets)[:1]
    enough = status["availableReplicas"] >= limits.minimum
    word, text = ("Available", "has") if enough else ("Unavailable", "does not have")
    available = _condition(
        "Available",
        "True" if enough else "False",
        reason=f"MinimumReplicas{word}",
        message=f"Deployment {text} minimum availability.",
    )
    conditions = [*kept, _updated(current.get("Available"), available, now=now)]
    progressing = _progressing(
        deployment, status, current=current.get("Progressing"), new_name=new_name, now=now
    )
    return conditions if progressing is None else [*conditions, progressing]


def _failures(replica_sets: Iterable[WorkloadView]) -> list[Object]:
    return [
        {**condition, "lastUpdateTime": condition.get("lastTransitionTime")}
        for replica_set in replica_sets
        for condition in replica_set.status.get("conditions") or []
        if condition["type"] == REPLICA_FAILURE
    ]


def seconds_until_timeout(deployment: WorkloadView, status: Object, now: float) -> float | None:
    """Return when a rollout that makes no progress is to be called late; None when never."""
    deadline = deployment.spec.get("progressDeadlineSeconds")
    for condition in status.get("conditions") or []:
        if condition["type"] == "Progressing" and condition["reason"] in (CREATED, UPDATED):
            since = _seconds(condition.get("lastUpdateTime"))
            if deadline is not None and since is not None:
                return max(since + float(deadline) + 1 - now, 0.0)
    return None


def _progressing(
    deployment: WorkloadView, status: Object, *, current: Object | None, new_name: str, now: float
) -> Object | None:
    if deployment.spec.get("paused"):
        paused = _condition("Progressing", "Unknown", PAUSED, "Deployment is paused")
        return _updated(current, paused, now=now)
    deadline = deployment.spec.get("progressDeadlineSeconds")
    if deadline is None:
        return None
    resting = current is not None and current.get("reason") == AVAILABLE
    if resting and status["replicas"] == status["updatedReplicas"]:
        return current  # a change of size alone is no rollout
    name = f'ReplicaSet "{new_name}"'
    if is_complete(deployment, status):
        done = _condition("Progressing", "True", AVAILABLE, f"{name} has successfully progressed.")
        return _updated(current, done, now=now)
    moved = _condition("Progressing", "True", UPDATED, f"{name} is progressing.")
    if _has_moved(deployment.status, status):
        return _updated(current, moved, now=now, refresh=True)
    if current is None or current.get("reason") in (PAUSED, AVAILABLE):
        return _updated(current, moved, now=now, refresh=True)
    since = _seconds(current.get("lastUpdateTime"))
    if current.get("reason") != TIMED_OUT and since is not None and since + deadline < now:
        late = _condition("Progressing", "False", TIMED_OUT, f"{name} has timed out progressing.")
        return _updated(current, late, now=now)
    return current


def created(current: Object | None, name: str, *, now: float) -> Object:
    """Return the Progressing condition of a Deployment whose new ReplicaSet is being created."""
    text = f'Created new replica set "{name}"'
    return _updated(
        current, _condition("Progressing", "True", CREATED, text), now=now, refresh=True
    )


def _has_moved(old: Object, new: Object) -> bool:
    def count(status: Object, field: str) -> int:
        return int(status.get(field) or 0)

    def outdated(status: Object) -> int:
        return count(status, "replicas") - count(status, "updatedReplicas")

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return outdated(new) < outdated(old) or any(
        count(new, field) > count(old, field) for field in grown
    )


def _condition(type_: str, status: str, reason: str, message: str) -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def _updated(
    current: Object | None, wanted: Object, *, now: float, refresh: bool = False
) -> Object:
    """Return *wanted* with its times. *refresh*: say that it was looked at now even if the same."""
    stamp = rfc3339(now)
    if current is None or current.get("status") != wanted["status"]:
        return {**wanted, "lastUpdateTime": stamp, "lastTransitionTime": stamp}
    same = all(current.get(field) == wanted[field] for field in ("reason", "message"))
    if same and not refresh:
        return current
    transition = current.get("lastTransitionTime") or stamp
    return {**wanted, "lastUpdateTime": stamp, "lastTransitionTime": transition}


def _seconds(stamp: str | None) -> float | None:
    return seconds_of(stamp) if stamp else None
