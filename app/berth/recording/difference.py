"""What a replay decides and what was decided, side by side."""

from dataclasses import dataclass
from typing import Final

from berth.recording.lines import Decision

OUTCOME: Final = ("result", "node", "refused", "victims", "nominated")
"""The fields of a decision that say what becomes of the pod. The others say why."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A pod of which something else is decided now."""

    attempt: int
    """Its number in the recording."""
    t: float
    recorded: Decision | None
    """None: nothing was decided of this pod."""
    now: Decision | None
    """None: nothing is."""
    why: str = ""

    @property
    def pod(self) -> str:
        decision = self.recorded or self.now
        assert decision is not None
        return decision.pod

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that differ."""
        return fields_that_differ(self.recorded, self.now)


def fields_that_differ(recorded: Decision | None, now: Decision | None) -> tuple[str, ...]:
    if recorded is None or now is None:
        return () if recorded is now else OUTCOME
    return tuple(
        name for name in Decision.__struct_fields__ if getattr(recorded, name) != getattr(now, name)
    )


def has_same_outcome(recorded: Decision | None, now: Decision | None) -> bool:
    """Whether the same becomes of the pod, for whatever reasons."""
    return not set(fields_that_differ(recorded, now)) & set(OUTCOME)
