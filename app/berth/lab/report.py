"""What came of a Lab, as tables."""

from collections.abc import Iterator, Sequence
from typing import Final

from berth.lab.summary import PolicySummary, Spread, columns
from berth.tables import Stack, Table

MOST_REASONS: Final = 5


def tables(summaries: Sequence[PolicySummary], *, bins: Sequence[int]) -> Stack:
    """Return a table of each measure, policies by bins, and one of what became of pods."""
    return Stack(_parts(summaries, columns(summaries, bins)))


def _parts(summaries: Sequence[PolicySummary], bins: Sequence[int]) -> Iterator[Table | str]:
    names = dict.fromkeys(name for each in summaries for name in each.measured)
    yield f"mean ± sample standard deviation; columns: {summaries[0].axis if summaries else ''}"
    for name in names:
        table = Table(name, *map(str, bins), right=range(1, len(bins) + 1))
        for each in summaries:
            curve = each.measured.get(name, {})
            table.add_row(each.policy, *(_shown(curve.get(bin_)) for bin_ in bins))
        yield ""
        yield table
    table = Table(
        "pods", "all", "unplaced", "preempted", "waited p50 s", "p99 s", right=range(1, 6)
    )
    for each in summaries:
        waited = [_shown(each.waited[0]), _shown(each.waited[2])] if each.waited else ["", ""]
        table.add_row(
            each.policy, _shown(each.pods), _shown(each.unplaced), _shown(each.preempted), *waited
        )
    yield ""
    yield table
    if not any(each.unplaced_by_reason for each in summaries):
        return
    table = Table("unplaced because of", "policy", "pods", right=(2,))
    for each in summaries:
        for reason, number in list(each.unplaced_by_reason.items())[:MOST_REASONS]:
            table.add_row(reason, each.policy, f"{number:.1f}")
    yield ""
    yield table


def _shown(spread: Spread | None) -> str:
    return "" if spread is None else f"{spread.mean:.2f} ± {spread.deviation:.2f}"
