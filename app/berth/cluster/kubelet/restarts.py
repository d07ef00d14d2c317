"""Restarts of containers that end, and their backoff.

The rules are those of ``pkg/kubelet/container/helpers.go`` (ShouldContainerBeRestarted, with the
container's own rules of KEP-5307) and of ``flowcontrol.Backoff``.
"""

from dataclasses import dataclass
from typing import Final

from berth.cluster.kubelet.container_plan import Role
from berth.cluster.pods.kubelet import ExitCodes, KubeletContainer

FIRST_SECONDS: Final = 10.0
LONGEST_SECONDS: Final = 300.0
FORGOTTEN_SECONDS: Final = 2 * LONGEST_SECONDS
"""Who ran so long before it ended is restarted at once again."""


def is_restarted(
    container: KubeletContainer, role: Role, *, pod_policy: str, exit_code: int
) -> bool:
    """Say whether *container* is started again after *exit_code*."""
    if role is Role.SIDECAR:
        return True
    for rule in container.restart_policy_rules:
        if rule.action == "Restart" and _matches(rule.exit_codes, exit_code):
            return True
    policy = container.restart_policy or pod_policy
    if policy == "Never":
        return False
    if policy == "Always" and role is Role.MAIN:
        return True
    return exit_code != 0


def _matches(codes: ExitCodes | None, exit_code: int) -> bool:
    if codes is None:
        return False
    return (exit_code in codes.values) is (codes.operator == "In")


@dataclass(slots=True)
class BackOff:
    """The growing pause before each restart: none, 10 s, 20 s, up to 5 minutes."""

    seconds: float = 0.0
    """Of the next pause."""
    updated: float = 0.0
    """Unix time of the end of the last one."""

    def next(self, now: float) -> float:
        """Return how long to wait from *now*, when something has failed again."""
        if self.seconds and now - self.updated > FORGOTTEN_SECONDS:
            self.seconds = 0.0
        pause = self.seconds
        self.seconds = min(max(2 * pause, FIRST_SECONDS), LONGEST_SECONDS)
        self.updated = now + pause
        return pause
