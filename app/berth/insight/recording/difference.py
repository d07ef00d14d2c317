"""Differences between what a replay decides and what was decided."""

from dataclasses import dataclass
from typing import Any, Final

from msgspec import to_builtins

from berth.insight.explain.comparison import Agreement, Comparison
from berth.insight.recording.lines import Decision

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
    comparison: Comparison | None = None
    """Of what all nodes come to now with what was chosen then; None where that is not the point."""

    @property
    def pod(self) -> str:
        decision = self.recorded or self.now
        assert decision is not None
        return decision.pod

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that differ."""
        return fields_that_differ(self.recorded, self.now)

    @property
    def kind(self) -> str:
        """How the decisions differ: an :class:`~berth.insight.explain.comparison.Agreement`, or
        ``preemption``, ``reasons`` (the same becomes of the pod) or ``other``.
        """
        recorded, now = self.recorded, self.now
        if recorded is None or now is None:
            return "other"
        if has_same_outcome(recorded, now):
            return "reasons"
        if recorded.node == now.node and recorded.refused == now.refused:
            return "preemption" if recorded.victims != now.victims else "other"
        return self.comparison.result.value if self.comparison is not None else "other"

    @property
    def is_tie(self) -> bool:
        """Whether chance alone makes the difference."""
        return self.kind == Agreement.TIE

    @property
    def words(self) -> str:
        """Why they differ, in a sentence."""
        if self.comparison is not None:
            return self.comparison.words
        return self.why or f"differs in {', '.join(self.fields)}"

    def told(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        comparison = self.comparison
        return {
            "attempt": self.attempt,
            "time": self.t,
            "pod": self.pod,
            "kind": self.kind,
            "recorded": to_builtins(self.recorded),
            "now": to_builtins(self.now),
            "fields": self.fields,
            "plugin": comparison.plugin if comparison is not None else "",
            "differences": comparison.differences if comparison is not None else {},
            "words": self.words,
        }


def fields_that_differ(recorded: Decision | None, now: Decision | None) -> tuple[str, ...]:
    if recorded is None or now is None:
        return () if recorded is now else OUTCOME
    return tuple(
        name for name in Decision.__struct_fields__ if getattr(recorded, name) != getattr(now, name)
    )


def has_same_outcome(recorded: Decision | None, now: Decision | None) -> bool:
    """Whether the same becomes of the pod, for whatever reasons."""
    return not set(fields_that_differ(recorded, now)) & set(OUTCOME)
