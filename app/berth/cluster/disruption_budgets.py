"""The status of a PodDisruptionBudget, for the eviction API and the disruption controller.

Source: ``component-helpers/apps/poddisruptionbudget``.
"""

from typing import Final

from berth.cluster.resources import Object

DISRUPTION_ALLOWED: Final = "DisruptionAllowed"
SUFFICIENT_PODS: Final = "SufficientPods"
INSUFFICIENT_PODS: Final = "InsufficientPods"
SYNC_FAILED: Final = "SyncFailed"


def disruption_allowed(status: Object) -> Object | None:
    """Return the condition DisruptionAllowed of a budget's *status*; None without one."""
    conditions = status.get("conditions") or ()
    return next(
        (condition for condition in conditions if condition["type"] == DISRUPTION_ALLOWED), None
    )


def usual_reason(status: Object) -> str:
    """Return the reason that the condition has when nothing went wrong."""
    return SUFFICIENT_PODS if status["disruptionsAllowed"] > 0 else INSUFFICIENT_PODS


def set_disruption_allowed(status: Object, *, reason: str, message: str = "", now: str) -> None:
    """Give *status* the condition, which is True only if the *reason* is SufficientPods.

    It changes its time only with its status. The other conditions stay.
    """
    said = "True" if reason == SUFFICIENT_PODS else "False"
    before = disruption_allowed(status)
    since = before["lastTransitionTime"] if before and before["status"] == said else now
    condition = {
        "type": DISRUPTION_ALLOWED,
        "status": said,
        "observedGeneration": status.get("observedGeneration") or 0,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }
    others = [each for each in status.get("conditions") or () if each["type"] != DISRUPTION_ALLOWED]
    status["conditions"] = [*others, condition]
