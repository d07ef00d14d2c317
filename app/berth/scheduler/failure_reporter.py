"""Reports why pods were not scheduled: first the event, then the condition (spec §2.10)."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, NamedTuple

from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock
from berth.scheduler.profile.profile import Profile
from berth.scheduler.queue.scheduling_queue import SchedulingQueue
from berth.scheduler.reporter import UrgentReporter

PATIENCE: Final = 2.0
"""Seconds for which deferred reports give way to attempts and bindings."""
PAUSE: Final = 0.02
"""Seconds until it is checked again whether there is time."""
BATCH: Final = 16
TRICKLE: Final = 4
"""So many failures are reported at once, when nothing is urgent and when something is."""


class Failure(NamedTuple):
    key: str
    profile: Profile
    message: str
    since: float
    """When the pod failed, in monotonic seconds."""


class FailureReporter:
    """Reports failures at once, or later if many pods fail without an attempt.

    A deferred report is dropped when the pod fails anew before it was written: the newer counts.
    """

    def __init__(
        self,
        *,
        queue: SchedulingQueue,
        pods: Mapping[str, Pod],
        reporter: UrgentReporter,
        clock: Clock,
    ) -> None:
        """*pods* is the informer's store, by namespace/name: what the API says now."""
        self._queue = queue
        self._pods = pods
        self._reporter = reporter
        self._clock = clock
        self._deferred: OrderedDict[str, Failure] = OrderedDict()
        # no dict: it walks to its oldest entry over the gaps of those before it
        self._some = asyncio.Event()

    def record_event(self, pod: Pod, profile: Profile, note: str) -> None:
        """Write the event that says why *pod* was not scheduled.

        kube-scheduler passes *note* through a printf-style formatter, which mangles each ``%``.
        """
        self._reporter.event(
            pod,
            profile=profile.name,
            type="Warning",
            reason="FailedScheduling",
            action="Scheduling",
            note=note,
        )

    def update_condition(
        self, pod: Pod, reason: str, message: str, *, nominated_node_name: str | None
    ) -> None:
        """Set the PodScheduled condition of *pod* to False."""
        condition = Condition(
            type="PodScheduled",
            status="False",
            reason=reason,
            message=message,
            observed_generation=pod.metadata.generation,
        )
        self._reporter.status(pod, condition=condition, nominated_node_name=nominated_node_name)

    def report_later(self, pod: Pod, profile: Profile, message: str) -> None:
        """Report that *pod* is unschedulable when there is time; :meth:`run` sees to that."""
        uid = pod.metadata.uid
        self._deferred.pop(uid, None)
        self._deferred[uid] = Failure(pod.key, profile, message, self._clock.monotonic())
        self._some.set()

    def drop(self, uid: str) -> None:
        """Drop what is deferred for a pod: it is tried again, and that will be reported."""
        if self._deferred:
            self._deferred.pop(uid, None)

    def report_next(self) -> bool:
        """Report what was deferred for longest; False if there is nothing."""
        if not self._deferred:
            self._some.clear()
            return False
        uid, failure = self._deferred.popitem(last=False)
        pod = self._pods.get(failure.key)
        if pod is not None and pod.metadata.uid == uid and not pod.spec.node_name:
            self.record_event(pod, failure.profile, failure.message)
            self.update_condition(pod, "Unschedulable", failure.message, nominated_node_name=None)
        return True

    def __len__(self) -> int:
        """How many failures are deferred."""
        return len(self._deferred)

    async def run(self) -> None:
        """Report what was deferred, for ever.

        It waits for attempts and bindings, but not for long, and for its own earlier writes, so
        that no write is dropped because too many are pending.
        """
        while True:
            await self._some.wait()
            urgent = self._is_urgent()
            if self._reporter.is_behind or (urgent and self._waited() < PATIENCE):
                await self._clock.sleep(PAUSE)
                continue
            for _ in range(TRICKLE if urgent else BATCH):
                self.report_next()
            await self._clock.sleep(PAUSE if urgent else 0)

    def _is_urgent(self) -> bool:
        return self._reporter.is_binding or self._queue.has_active

    def _waited(self) -> float:
        """Return for how many seconds the oldest failure was deferred."""
        oldest = next(iter(self._deferred.values()), None)
        return 0.0 if oldest is None else self._clock.monotonic() - oldest.since
