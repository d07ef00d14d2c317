"""The results of a lab, as tables."""

from collections.abc import Iterator, Sequence
from typing import Final

from berth.runtime.tables import Stack, Table
from berth.tools.lab.paired import Difference
from berth.tools.lab.summary import PolicySummary, Spread, columns

MOST_REASONS: Final = 5


def tables(summaries: Sequence[PolicySummary], *, bins: Sequence[int]) -> Stack:
    """Return a table of each measure, policies by bins, and one of what became of pods."""
    return Stack(_parts(summaries, columns(summaries, bins)))


def _parts(summaries: Sequence[PolicySummary], bins: Sequence[int]) -> Iterator[Table | str]:
    names = dict.fromkeys(name for summary in summaries for name in summary.measured)
    yield f"mean ± sample standard deviation; columns: {summaries[0].axis if summaries else ''}"
    for name in names:
        table = Table(name, *map(str, bins), right=range(1, len(bins) + 1))
        for summary in summaries:
            curve = summary.measured.get(name, {})
            table.add_row(summary.policy, *(_shown(curve.get(bin_)) for bin_ in bins))
        yield ""
        yield table
    table = Table(
        "pods", "all", "unplaced", "preempted", "waited p50 s", "p99 s", right=range(1, 6)
    )
    for summary in summaries:
        waited = (
            [_shown(summary.waited[0]), _shown(summary.waited[2])] if summary.waited else ["", ""]
        )
        table.add_row(
            summary.policy,
            _shown(summary.pods),
            _shown(summary.unplaced),
            _shown(summary.preempted),
            *waited,
        )
    yield ""
    yield table
    names = dict.fromkeys(name for summary in summaries for name in summary.totals)
    if names:
        table = Table(
            "whole runs",
            *(summary.policy for summary in summaries),
            right=range(1, len(summaries) + 1),
        )
        for name in names:
            table.add_row(name, *(_shown(summary.totals.get(name)) for summary in summaries))
        yield ""
        yield table
    others = [summary for summary in summaries if summary.differences]
    if others:
        table = Table(
            f"more than {summaries[0].policy} [95%]",
            *(summary.policy for summary in others),
            right=range(1, len(others) + 1),
        )
        for name in names:
            table.add_row(name, *(shown_difference(s.differences.get(name)) for s in others))
        yield ""
        yield table
    if not any(summary.unplaced_by_reason for summary in summaries):
        return
    table = Table("unplaced because of", "policy", "pods", right=(2,))
    for summary in summaries:
        for reason, number in list(summary.unplaced_by_reason.items())[:MOST_REASONS]:
            table.add_row(reason, summary.policy, f"{number:.1f}")
    yield ""
    yield table


def _shown(spread: Spread | None) -> str:
    return "" if spread is None else f"{spread.mean:.2f} ± {spread.deviation:.2f}"


def shown_difference(difference: Difference | None) -> str:
    """Return a mean with its interval."""
    if difference is None:
        return ""
    return f"{difference.mean:+.2f} [{difference.low:+.2f}, {difference.high:+.2f}]"
