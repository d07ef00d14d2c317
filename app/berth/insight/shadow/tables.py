"""A report as tables for a terminal."""

from collections.abc import Iterator

from berth.insight.shadow.report import Report
from berth.runtime.tables import Content, Stack, Table


def render(report: Report) -> Content:
    """Lay *report* out: what differs, then examples and what to do about each."""
    return Stack(_parts(report))


def _parts(report: Report) -> Iterator[Content]:
    if report.differences:
        table = Table("result", "plugin", "pods", "points", "without it", right=[2, 3, 4])
        for difference in report.differences:
            table.add_row(
                difference.result,
                difference.plugin,
                str(difference.pods),
                "" if difference.points is None else f"{difference.points:g}",
                "" if difference.without_plugin is None else f"{difference.without_plugin:.0%}",
            )
        yield ""
        yield table
    for difference in report.differences:
        yield ""
        yield f"{difference.result} {difference.plugin}".strip()
        yield f"  {difference.advice}"
        for example in difference.examples:
            yield f"  {example.words}"
    if report.notes:
        yield ""
    yield from report.notes
