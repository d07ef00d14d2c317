"""The attempts that are still remembered."""

from dataclasses import dataclass

from berth.insight.explain.explainer import Explainer
from berth.scheduler.decisions import DecisionRecord, Decisions, Result
from berth.service.server.scheduler.debug.models import PastDecisions
from berth.service.server.scheduler.debug.pagination import ordered


@dataclass(frozen=True, slots=True)
class DecisionFilter:
    """Which attempts are asked for; what is empty does not matter."""

    pod: str = ""
    """As in namespace/name."""
    name: str = ""
    """A part of that."""
    node: str = ""
    """Where the pod was to go."""
    result: Result | None = None
    plugin: str = ""
    """One that rejected the pod."""
    profile: str = ""

    def matches(self, record: DecisionRecord) -> bool:
        return (
            self.pod in ("", record.pod)
            and self.name in record.pod
            and self.node in ("", record.node)
            and self.result in (None, record.result)
            and (not self.plugin or self.plugin in record.plugins)
            and self.profile in ("", record.profile)
        )


def past_decisions(
    decisions: Decisions,
    explainer: Explainer,
    wanted: DecisionFilter,
    *,
    after: int | None,
    limit: int,
) -> PastDecisions:
    """Return the attempts that *wanted* describes, those before number *after*, newest first."""
    older = (
        record
        for record in reversed(decisions.all())
        if (after is None or record.number < after) and wanted.matches(record)
    )
    found, token = ordered(older, key=lambda record: record.number, limit=limit)
    return PastDecisions(items=tuple(map(explainer.past_decision, found)), continue_=token)
