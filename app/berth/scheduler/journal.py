"""The journal of a scheduler: told, step by step, what it does and in which order.

Between two steps the scheduler changes nothing, so that whoever is told all of them, and what
watches told and the API server answered in between, can make the same steps again.
"""

from typing import Final

from berth.scheduler.decisions import DecisionRecord
from berth.scheduler.framework.pod_info import QueuedPodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.outcome import Outcome


class Journal:
    """Is told of each step, before it changes anything unless it says otherwise; keeps nothing."""

    def attempt_begins(self) -> None:
        """A pod is about to be taken from the queue."""

    def popped(self, queued: QueuedPodInfo) -> None:
        """It is *queued*."""

    def decided(self, record: DecisionRecord, outcome: Outcome | None) -> None:
        """The attempt has come to *record*, made from *outcome*; None: from a known failure."""

    def attempt_ended(self) -> None:
        """All that the attempt has changed is changed."""

    def binding_ended(self, uid: str, status: Status | None) -> None:
        """The binding of a pod has ended; nothing that it holds is given back yet."""

    def preemption_begins(self, uid: str) -> None:
        """The victims of a pod or group are about to be evicted."""

    def evictions_ended(self, uid: str) -> None:
        """All of them were answered; the pod or group is not told yet."""

    def flushes(self, *, leftovers: bool) -> None:
        """The queue is about to look for pods that have waited long enough."""


NO_JOURNAL: Final = Journal()
