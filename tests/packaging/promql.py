"""Which metrics and labels a PromQL expression uses, as Prometheus' own grammar reads it."""

from dataclasses import dataclass, field
from typing import Final

from promql_parser import AggregateExpr, BinaryExpr, Expr, VectorSelector, parse, walk

RATE_INTERVAL: Final = "$__rate_interval"
"""Filled in by Grafana; no duration to a parser."""


class PromQLError(Exception):
    """An expression that is not understood."""


@dataclass(frozen=True)
class Used:
    """What an expression uses."""

    selectors: dict[str, set[str]] = field(default_factory=dict)
    """Metric to the labels it is selected by."""
    grouped_by: set[str] = field(default_factory=set)
    """Labels that are named outside of selectors."""


def used(expression: str) -> Used:
    """Return what *expression* uses. Raises PromQLError."""
    try:
        parsed = parse(expression.replace(RATE_INTERVAL, "5m"))
    except ValueError as exc:
        raise PromQLError(f"{expression!r}: {exc}") from exc
    found = Used()

    def note(part: Expr) -> None:
        match part:
            case VectorSelector(name=str(name), matchers=matchers):
                every = [
                    *matchers.matchers,
                    *(m for any_of in matchers.or_matchers for m in any_of),
                ]
                found.selectors.setdefault(name, set()).update(m.name for m in every)
            case AggregateExpr(modifier=modifier) if modifier is not None:
                found.grouped_by.update(modifier.labels)
            case BinaryExpr(modifier=modifier) if modifier is not None:
                if modifier.matching is not None:
                    found.grouped_by.update(modifier.matching.labels)
                found.grouped_by.update(modifier.group_labels or ())

    walk(parsed, note)
    if not found.selectors:
        raise PromQLError(f"{expression!r} selects no metric by its name")
    return found
