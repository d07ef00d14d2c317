"""Results of replays, as tables and as JSON."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from berth.insight.recording.difference import Difference
from berth.insight.recording.lines import Decision
from berth.insight.recording.replay import Replay
from berth.insight.recording.runs import RecordedRun
from berth.runtime.tables import Content, Stack, Table


@dataclass(slots=True)
class Report:
    """The sum of some replays."""

    decisions: int = 0
    differences: list[Difference] = field(default_factory=list)
    versions: set[str] = field(default_factory=set)
    """Of berth, as recorded."""
    warnings: list[str] = field(default_factory=list)
    """Why a recording may not be whole, or its decisions differ."""
    _is_strict: bool = True

    def add(self, run: RecordedRun, replay: Replay) -> None:
        """Take in what *replay* came to."""
        self.decisions += replay.following.decisions
        self.differences += replay.following.differences
        self.versions.add(run.header.version)
        self._is_strict = replay.following.is_strict
        self.warnings += run.warnings()

    @property
    def num_differing(self) -> int:
        """How many decisions differ by more than chance; all, if nothing may differ."""
        if self._is_strict:
            return len(self.differences)
        return sum(not difference.is_tie for difference in self.differences)

    def kinds(self) -> dict[str, int]:
        """Return how many decisions differ in each way, the most frequent first."""
        return dict(Counter(difference.kind for difference in self.differences).most_common())

    def told(self) -> dict[str, Any]:
        """Return the summary as JSON has it."""
        return {
            "decisions": self.decisions,
            "same": self.decisions - len(self.differences),
            "differ": self.kinds(),
            "recordedBy": sorted(self.versions),
            "warnings": self.warnings,
        }

    def tables(self, *, limit: int) -> Content:
        """Return the summary, and the first *limit* decisions that differ."""
        return Stack(self._parts(limit))

    def _parts(self, limit: int) -> Iterator[Content]:
        yield Table.of_facts(self._facts())
        if not self.differences:
            return
        yield ""
        table = Table("attempt", "pod", "recorded", "now", "kind", "why", right=(0,))
        for difference in self.differences[:limit]:
            table.add_row(
                str(difference.attempt),
                difference.pod,
                _placed(difference.recorded),
                _placed(difference.now),
                difference.kind,
                difference.words,
            )
        yield table
        if len(self.differences) > limit:
            yield f"and {len(self.differences) - limit} more (--limit, or -o json for all)"

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "decisions", str(self.decisions)
        yield "the same", str(self.decisions - len(self.differences))
        for kind, number in self.kinds().items():
            yield kind, str(number)
        for warning in self.warnings:
            yield "warning", warning


def _placed(decision: Decision | None) -> str:
    if decision is None:
        return "not tried"
    if decision.node or decision.refused:
        return decision.node or f"{decision.refused}, refused"
    if decision.victims:
        return f"{decision.result}; preempts {len(decision.victims)} on {decision.nominated}"
    return decision.result
