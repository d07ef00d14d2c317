"""Actions of a scan, as values."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from berth.kube.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """Make a group larger, for the *pods* with these keys."""

    group: str
    current_size: int
    new_size: int
    max_size: int
    pods: Sequence[str]

    @property
    def delta(self) -> int:
        return self.new_size - self.current_size

    def __str__(self) -> str:
        """As in events: ``{general 1->2 (max: 5)}``."""
        return f"{{{self.group} {self.current_size}->{self.new_size} (max: {self.max_size})}}"


@dataclass(frozen=True, slots=True)
class NotTriggered:
    """No group helps a pod."""

    pod: str
    why: str
    """As in events: ``1 max node group size reached, 2 Insufficient cpu``."""


@dataclass(frozen=True, slots=True)
class Utilization:
    """How much of a node its pods request; the larger share counts."""

    cpu: float
    memory: float

    @property
    def resource(self) -> Literal["cpu", "memory"]:
        return "memory" if self.memory > self.cpu else "cpu"

    @property
    def share(self) -> float:
        return max(self.cpu, self.memory)


@dataclass(frozen=True, slots=True)
class RemoveNode:
    """Drain a node and delete it with its machine."""

    node: str
    group: str
    utilization: Utilization
    pods: Sequence[Pod] = field(default=(), repr=False)
    """Those that are to leave; none if it is empty."""
    daemon_pods: Sequence[Pod] = field(default=(), repr=False)
    """Those that are evicted, too, whether that works or not."""

    @property
    def is_empty(self) -> bool:
        return not self.pods


@dataclass(frozen=True, slots=True)
class MarkUnneeded:
    """Have the scheduler prefer other nodes to this one; or not any more."""

    node: str
    unneeded: bool


Action: TypeAlias = ScaleUp | NotTriggered | RemoveNode | MarkUnneeded
