"""The result of a search, as tables."""

import json
from collections.abc import Iterator

from berth.runtime.tables import Stack, Table
from berth.tools.lab.paired import Difference
from berth.tools.lab.report import shown_difference
from berth.tools.tune.tune import Tuned


def tables(tuned: Tuned) -> Stack:
    """Return what was found, what it changes, and what it costs elsewhere."""
    return Stack(_parts(tuned))


def _parts(tuned: Tuned) -> Iterator[Table | str]:
    yield f"objective: {tuned.objective}"
    yield f"tried: {tuned.candidates} configurations, in {tuned.runs} runs"
    yield _verdict(tuned)
    if tuned.changes:
        table = Table("change", "value")
        for name, value in tuned.changes.items():
            table.add_row(name, json.dumps(value))
        yield ""
        yield table
    table = Table("held-out parts", "baseline", "best", "more [95%]", right=(1, 2, 3))
    table.add_row("objective", *_cells(tuned.baseline, tuned.tuned, tuned.difference))
    same = []
    for name, measure in tuned.measures.items():
        if measure.difference.is_sure:
            table.add_row(name, *_cells(measure.baseline, measure.tuned, measure.difference))
        else:
            same.append(name)
    yield ""
    yield table
    if same:
        yield ""
        yield f"no difference beyond noise: {', '.join(same)}"


def _verdict(tuned: Tuned) -> str:
    if not tuned.changes:
        return "nothing is better than the baseline on the parts that were searched"
    if tuned.is_better:
        return "better than the baseline beyond noise, on parts that the search has not seen"
    if tuned.out_of_bounds:
        names = ", ".join(f"{name} by {over:.2f}" for name, over in tuned.out_of_bounds.items())
        return f"nothing was found within bounds on parts that the search has not seen: {names}"
    return "nothing is better than the baseline beyond noise, on parts that the search has not seen"


def _cells(before: float, after: float, difference: Difference) -> Iterator[str]:
    yield f"{before:.2f}"
    yield f"{after:.2f}"
    yield shown_difference(difference)
