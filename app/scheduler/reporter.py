"""Where the scheduler's words about pods go."""

from collections.abc import Mapping
from typing import Any, Protocol

from app.objects.meta import Condition
from app.objects.pod import Pod


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
        related: Pod | None = None,
    ) -> None:
        """Record an event on *pod*, caused by *related*, in the name of *profile*."""

    def status(
        self, pod: Pod, *, condition: Condition | None, nominated_node_name: str | None
    ) -> None:
        """Have the pod's status say so; None leaves that part alone."""


class BindingReporter(Reporter, Protocol):
    """Can also say something that a binding waits for."""

    async def patch_pod_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """Write fields of the status of *pod*; raises ApiError."""
