"""The interface for writes about pods, as far as the scheduler's parts need it."""

from collections.abc import Mapping
from typing import Any, Protocol

from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.kube.objects.pod_group import PodGroup, PodGroupCondition


class Reporter(Protocol):
    """Takes events and statuses, which are written later."""

    def event(
        self,
        pod: Pod,
        *,
        profile: str = "",
        type: str,
        reason: str,
        action: str,
        note: str,
        related: PodGroup | None = None,
    ) -> None:
        """Record an event on *pod*, in the name of *profile*: by default that of the pod.

        *related* has caused it.
        """

    def status(
        self, pod: Pod, *, condition: Condition | None, nominated_node_name: str | None
    ) -> None:
        """Write to the status of *pod*; None leaves that part alone."""


class PodGroupReporter(Protocol):
    """Takes conditions of PodGroups, which are written later."""

    def pod_group_condition(self, group: PodGroup, condition: PodGroupCondition) -> None:
        """Set a condition of *group*."""


class UrgentReporter(Reporter, Protocol):
    """Also says whether less urgent writes should wait."""

    @property
    def is_binding(self) -> bool:
        """Whether bindings are being written."""

    @property
    def is_behind(self) -> bool:
        """Whether so many writes are pending that more should wait."""


class BindingReporter(Reporter, Protocol):
    """Also makes the writes that a binding waits for, and limits how many bindings there are.

    Decisions made far ahead of the writes are made on a state of the cluster that others, such as
    a second scheduler, have changed by then.
    """

    @property
    def has_room(self) -> bool:
        """Whether one more binding would be written soon."""

    async def until_room(self) -> None:
        """Return when there is room."""

    async def patch_pod_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """Write fields of the status of *pod*; raises ApiError."""

    async def bound_node(self, pod: Pod) -> str | None:
        """Return the node of *pod*, "" if it has none, None if the pod is gone; retries."""
