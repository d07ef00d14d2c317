"""A report as tables for a terminal."""

from collections.abc import Iterator

from berth.shadow.report import Report
from berth.tables import Content, Stack, Table


def render(report: Report) -> Content:
    """Lay *report* out: what differs, then examples and what to do about each."""
    return Stack(_parts(report))


def _parts(report: Report) -> Iterator[Content]:
    if report.differences:
        table = Table("result", "plugin", "pods", "points", "without it", right=[2, 3, 4])
        for each in report.differences:
            table.add_row(
                each.result,
                each.plugin,
                str(each.pods),
                "" if each.points is None else f"{each.points:g}",
                "" if each.without_plugin is None else f"{each.without_plugin:.0%}",
            )
        yield ""
        yield table
    for each in report.differences:
        yield ""
        yield f"{each.result} {each.plugin}".strip()
        yield f"  {each.advice}"
        for example in each.examples:
            yield f"  {example.words}"
    if report.notes:
        yield ""
    yield from report.notes
