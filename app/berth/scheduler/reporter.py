"""Where the scheduler's words about pods go."""

from collections.abc import Mapping
from typing import Any, Protocol

from berth.objects.meta import Condition
from berth.objects.pod import Pod


class Reporter(Protocol):
    """Takes what is to be told; nothing here waits."""

    def event(
        self,
        pod: Pod,
        *,
        profile: str,
        type: str,
        reason: str,
        action: str,
        note: str,
    ) -> None:
        """Record an event on *pod*, in the name of *profile*."""

    def status(
        self, pod: Pod, *, condition: Condition | None, nominated_node_name: str | None
    ) -> None:
        """Have the pod's status say so; None leaves that part alone."""


class UrgentReporter(Reporter, Protocol):
    """Can also say whether now is the time for what can wait."""

    @property
    def is_binding(self) -> bool:
        """Whether bindings are being written."""

    @property
    def is_behind(self) -> bool:
        """Whether so much waits to be written that more should be told later."""


class BindingReporter(Reporter, Protocol):
    """Can also say something that a binding waits for, and how many of these there may be.

    Whoever decides far ahead of what is written decides on a cluster that others, such as a second
    scheduler, have changed by the time they hear of it.
    """

    @property
    def has_room(self) -> bool:
        """Whether one more binding would be written soon."""

    async def until_room(self) -> None:
        """Return when there is room."""

    async def patch_pod_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """Write fields of the status of *pod*; raises ApiError."""

    async def bound_node(self, pod: Pod) -> str | None:
        """Return the node *pod* is on, "" if on none, None if it is gone; waits for an answer."""
