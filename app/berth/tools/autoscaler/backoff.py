"""Groups that have failed and rest, each time longer: cluster-autoscaler's exponential back-off."""

from dataclasses import dataclass

from berth.tools.autoscaler.options import AutoscalingOptions


@dataclass(frozen=True, slots=True)
class Backoff:
    """The rest of a group, and what it is for. Times are in seconds, monotonic."""

    duration: float
    until: float
    since: float
    code: str
    message: str


class Backoffs:
    """By group."""

    def __init__(self, options: AutoscalingOptions) -> None:
        self._initial = options.initial_node_group_backoff_duration.seconds
        self._longest = options.max_node_group_backoff_duration.seconds
        self._reset = options.node_group_backoff_reset_timeout.seconds
        self._backoffs: dict[str, Backoff] = {}

    def fail(self, group: str, *, code: str, message: str, now: float) -> None:
        """Let *group* rest from now on."""
        known = self._backoffs.get(group)
        duration = self._initial
        if known is not None and known.until + self._reset > now:
            # A failure that comes during the rest is of the attempt before it.
            resting = known.until > now
            duration = known.duration if resting else min(2 * known.duration, self._longest)
        self._backoffs[group] = Backoff(duration, now + duration, now, code, message)

    def succeed(self, group: str) -> None:
        """Forget the failures of *group*."""
        self._backoffs.pop(group, None)

    def of(self, group: str, *, now: float) -> Backoff | None:
        """Return the rest that *group* takes now."""
        backoff = self._backoffs.get(group)
        return backoff if backoff is not None and backoff.until > now else None
