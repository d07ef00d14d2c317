"""The state that the views look at."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from berth.kube.informer.reflector import Reflector
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock, rfc3339
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.schedule_one import Scheduler


@dataclass(frozen=True, slots=True)
class SchedulerView:
    """A scheduler, to be looked at on its event loop; *pods* is the informer's store, by key.

    *reflectors* are what keeps it informed, by path.
    """

    scheduler: Scheduler
    pods: Mapping[str, Pod]
    clock: Clock
    reflectors: Mapping[str, Reflector[Any]] = field(default_factory=dict)

    def age(self, monotonic: float) -> float:
        """Return how many seconds ago a time of the scheduler's monotonic clock was."""
        return self.clock.monotonic() - monotonic

    def at(self, monotonic: float) -> str:
        """Return a time of the monotonic clock in UTC."""
        return rfc3339(self.clock.now() - self.age(monotonic))


def leaving(pods: Iterable[PodInfo]) -> tuple[str, ...]:
    """Return the names of those that are being deleted."""
    return tuple(sorted(pod.key for pod in pods if pod.is_terminating))
