"""Notices that somebody else binds pods of our schedulers: most likely a second active instance.

Nothing stops two instances that do not share a Lease, and each may give room away that the other
has just given. So whoever sees it says so.
"""

import logging
from collections.abc import Callable
from typing import Final

from berth.kube.objects.pod import Pod
from berth.runtime.clock import Clock

log = logging.getLogger(__name__)

SETTLING: Final = 30.0
"""Seconds after which the binds of a former leader have been seen by its successor."""

PERIOD: Final = 600.0
"""Seconds between two lines about it in the log."""


class ForeignBinds:
    """Counts binds that are not ours, while :meth:`begin` was called and *is_leading* says so.

    *count* is called for each.
    """

    def __init__(self, *, clock: Clock, count: Callable[[], None]) -> None:
        self.is_leading: Callable[[], bool] = lambda: True
        """Whether nobody else may bind. To be set before :meth:`begin`."""
        self._clock = clock
        self._count = count
        self._began_at: float | None = None
        self._told_at = float("-inf")
        self._untold = 0

    def begin(self) -> None:
        """Scheduling begins now."""
        self._began_at = self._clock.monotonic()

    def saw(self, pod: Pod, *, ours: str | None) -> None:
        """Take note of *pod*, one of our schedulers', which got a node that we did not send it to.

        *ours* is the node that we are binding it to, if we are.
        """
        now = self._clock.monotonic()
        if self._began_at is None or now - self._began_at < SETTLING or not self.is_leading():
            return
        self._count()
        self._untold += 1
        if now - self._told_at < PERIOD:
            return
        log.warning(
            "somebody else binds pods of this scheduler: is a second instance active?",
            extra={
                "pod": pod.key,
                "node": pod.spec.node_name,
                "our_node": ours or "none",
                "scheduler_name": pod.spec.scheduler_name,
                "since_last_told": self._untold,
            },
        )
        self._told_at, self._untold = now, 0
