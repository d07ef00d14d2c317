"""Limits on how fast an autoscaler follows what its metrics call for.

Stabilization windows, policies and the limits of the autoscaler itself, after
``pkg/controller/podautoscaler/horizontal.go`` of Kubernetes 1.36.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from berth.cluster.controllers.replica_calculator import TOLERANCE, Tolerances
from berth.cluster.resources import Object
from berth.kube.objects.quantity import NANO, parse

DOWNSCALE_STABILIZATION_SECONDS: Final = 300.0
LONGEST_PERIOD: Final = 1800.0
"""Seconds that a policy may look back."""
SCALE_UP_FACTOR: Final = 2.0
SCALE_UP_MINIMUM: Final = 4.0
"""Without a behavior, the number of replicas may at most double at a time, or become this."""

STABLE: Final = ("ReadyForNewScale", "recommended size matches current size")
SCALE_UP_STABILIZED: Final = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
SCALE_DOWN_STABILIZED: Final = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, "
    "applying the highest recent recommendation",
)
WITHIN_RANGE: Final = ("DesiredWithinRange", "the desired count is within the acceptable range")
SCALE_UP_LIMIT: Final = (
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
)
SCALE_DOWN_LIMIT: Final = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
)
TOO_MANY: Final = (
    "TooManyReplicas",
    "the desired replica count is more than the maximum replica count",
)
TOO_FEW: Final = (
    "TooFewReplicas",
    "the desired replica count is less than the minimum replica count",
)

Reason = tuple[str, str]
"""The reason and the message of a condition."""


class At(NamedTuple):
    """A number at a time, in seconds of any clock."""

    time: float
    number: int


@dataclass(slots=True)
class History:
    """What an autoscaler remembers of its target."""

    recommendations: list[At] = field(default_factory=list)
    """Numbers of replicas that metrics called for."""
    changes: list[At] = field(default_factory=list)
    """By how much the number of replicas was changed; negative: there were fewer."""


@dataclass(frozen=True, slots=True)
class Target:
    """The bounds of the target, and what it has."""

    current: int
    minimum: int
    maximum: int


class Normalized(NamedTuple):
    """A number of replicas within all limits, and why it is that."""

    replicas: int
    able: Reason
    """Of the condition ``AbleToScale``, which is True."""
    is_limited: bool
    limited: Reason
    """Of the condition ``ScalingLimited``."""


def tolerances_of(behavior: Object | None) -> Tolerances:
    """Return how far from their targets metrics may be."""

    def tolerance(direction: str) -> float:
        told = ((behavior or {}).get(direction) or {}).get("tolerance")
        return TOLERANCE if told is None else parse(told) / NANO

    return Tolerances(tolerance("scaleUp"), tolerance("scaleDown"))


def normalize(
    desired: int, target: Target, behavior: Object | None, history: History, *, now: float
) -> Normalized:
    """Return what becomes of *desired* replicas, and remember it as a recommendation."""
    if not history.recommendations:
        history.recommendations.append(At(now, target.current))
    if behavior is None:
        return _by_default(desired, target, history, now)
    return _by_behavior(desired, target, behavior, history, now)


def _by_default(desired: int, target: Target, history: History, now: float) -> Normalized:
    since = now - DOWNSCALE_STABILIZATION_SECONDS
    history.recommendations = [
        recommendation for recommendation in history.recommendations if recommendation.time >= since
    ]
    stable = max([desired, *(recommendation.number for recommendation in history.recommendations)])
    history.recommendations.append(At(now, desired))
    able = STABLE if stable == desired else SCALE_DOWN_STABILIZED
    limit = int(max(SCALE_UP_FACTOR * target.current, SCALE_UP_MINIMUM))
    maximum, why = (limit, SCALE_UP_LIMIT) if target.maximum > limit else (target.maximum, TOO_MANY)
    if stable < target.minimum:
        return Normalized(target.minimum, able, is_limited=True, limited=TOO_FEW)
    if stable > maximum:
        return Normalized(maximum, able, is_limited=True, limited=why)
    return Normalized(stable, able, is_limited=False, limited=WITHIN_RANGE)


def _by_behavior(
    desired: int, target: Target, behavior: Object, history: History, now: float
) -> Normalized:
    up, down = behavior.get("scaleUp") or {}, behavior.get("scaleDown") or {}
    stable = _stabilized(desired, target.current, _window(up, 0.0),
                         _window(down, DOWNSCALE_STABILIZATION_SECONDS), history, now)  # fmt: skip
    able = STABLE
    if stable != desired:
        able = SCALE_UP_STABILIZED if desired >= target.current else SCALE_DOWN_STABILIZED
    replicas, why = stable, WITHIN_RANGE
    if stable > target.current:
        limit = max(_scale_up_limit(target.current, up, history, now), target.current)
        most, reason = (
            (limit, SCALE_UP_LIMIT) if target.maximum > limit else (target.maximum, TOO_MANY)
        )
        if stable > most:
            replicas, why = most, reason
    elif stable < target.current:
        limit = min(_scale_down_limit(target.current, down, history, now), target.current)
        least, reason = (
            (limit, SCALE_DOWN_LIMIT) if target.minimum < limit else (target.minimum, TOO_FEW)
        )
        if stable < least:
            replicas, why = least, reason
    return Normalized(replicas, able, is_limited=replicas != stable, limited=why)


def _stabilized(
    desired: int, current: int, up: float, down: float, history: History, now: float
) -> int:
    """Return *current*, brought between the lowest of the window *up* and the highest of *down*."""
    lowest = highest = desired
    for recommendation in history.recommendations:
        if recommendation.time > now - up:
            lowest = min(lowest, recommendation.number)
        if recommendation.time > now - down:
            highest = max(highest, recommendation.number)
    history.recommendations = [
        recommendation
        for recommendation in history.recommendations
        if recommendation.time >= now - max(up, down)
    ]
    history.recommendations.append(At(now, desired))
    history.changes = [change for change in history.changes if change.time >= now - LONGEST_PERIOD]
    return min(max(current, lowest), highest)


def _window(rules: Object, default: float) -> float:
    told = rules.get("stabilizationWindowSeconds")
    return default if told is None else float(told)


def _scale_up_limit(current: int, rules: Object, history: History, now: float) -> int:
    """Return how many replicas there may be at most now."""
    limits = []
    for policy in _policies(rules):
        start = current - _changed(history, policy["periodSeconds"], now)
        if policy["type"] == "Pods":
            limits.append(start + policy["value"])
        else:
            limits.append(math.ceil(start * (1 + policy["value"] / 100)))
    return _selected(rules, limits, current, least=min, most=max)


def _scale_down_limit(current: int, rules: Object, history: History, now: float) -> int:
    """Return how many replicas there must be at least now."""
    limits = []
    for policy in _policies(rules):
        start = current - _changed(history, policy["periodSeconds"], now)
        if policy["type"] == "Pods":
            limits.append(start - policy["value"])
        else:
            limits.append(int(start * (1 - policy["value"] / 100)))
    return _selected(rules, limits, current, least=max, most=min)


def _selected(rules: Object, limits: list[int], current: int, *, least: Any, most: Any) -> int:
    """Return the limit that ``selectPolicy`` chooses: of the least change, or the most."""
    policy = rules.get("selectPolicy") or "Max"
    if policy == "Disabled" or not limits:
        return current
    limit: int = least(limits) if policy == "Min" else most(limits)
    return limit


def _policies(rules: Object) -> list[Object]:
    found: list[Object] = rules.get("policies") or []
    return found


def _changed(history: History, seconds: int, now: float) -> int:
    """Return by how much the number of replicas has changed in the last *seconds*."""
    return sum(change.number for change in history.changes if change.time > now - seconds)
