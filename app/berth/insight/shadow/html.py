"""A report as one HTML file: no script, nothing from elsewhere, light and dark."""

from collections.abc import Iterator
from html import escape
from typing import Final

from berth.insight.explain.comparison import Agreement
from berth.insight.shadow.comparisons import Shadowed
from berth.insight.shadow.report import Difference, Report

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8886; --good: #1a7f37; --bad: #b35900; }
@media (prefers-color-scheme: dark) { :root { --good: #4ac26b; --bad: #f0a05a; } }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .8rem .3rem 0; text-align: left;
  vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.agrees { color: var(--good); } .differs { color: var(--bad); }
.share { font-size: 1.25rem; }
"""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def page(report: Report) -> str:
    """Return the whole file. Everything that comes from a cluster is escaped."""
    return "\n".join(_page(report)) + "\n"


def _page(report: Report) -> Iterator[str]:
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield f"<title>Shadow report</title><style>{_STYLE}</style></head><body>"
    yield "<h1>Shadow report</h1>"
    yield f'<p class="share">{escape(report.words)}</p>'
    yield from _results(report)
    if report.differences:
        yield "<h2>Differences</h2>"
        yield from _differences(report)
    for difference in report.differences:
        yield from _section(difference)
    if report.notes:
        yield "<h2>Notes</h2><ul>"
        yield from (f"<li>{escape(note)}</li>" for note in report.notes)
        yield "</ul>"
    yield "</body></html>"


def _results(report: Report) -> Iterator[str]:
    yield '<table><tr><th>Result</th><th class="number">Pods</th></tr>'
    for result in Agreement:
        mark = "agrees" if result.is_agreement else "differs"
        number = report.summary.results.get(result, 0)
        yield f'<tr><td class="{mark}">{result}</td><td class="number">{number}</td></tr>'
    yield "</table>"


def _differences(report: Report) -> Iterator[str]:
    yield "<table><tr><th>Result</th><th>Plugin</th><th>Profile</th>"
    yield '<th class="number">Pods</th><th class="number">Points (median)</th>'
    yield '<th class="number">Equal without it</th></tr>'
    for difference in report.differences:
        points = "" if difference.points is None else f"{difference.points:g}"
        without = "" if difference.without_plugin is None else f"{difference.without_plugin:.0%}"
        yield f"<tr><td>{difference.result}</td><td>{escape(difference.plugin)}</td>"
        yield f'<td>{escape(difference.profile)}</td><td class="number">{difference.pods}</td>'
        yield f'<td class="number">{points}</td><td class="number">{without}</td></tr>'
    yield "</table>"


def _section(difference: Difference) -> Iterator[str]:
    title = f"{difference.result} {difference.plugin}".strip()
    yield f"<h3>{escape(title)}</h3><p>{escape(difference.advice)}</p>"
    for example in difference.examples:
        yield f"<p>{escape(example.words)}</p>"
        yield from _scores(example)


def _scores(shadowed: Shadowed) -> Iterator[str]:
    """Lay the points of both nodes side by side."""
    if shadowed.score is None or shadowed.chosen_score is None or not shadowed.differences:
        return
    best, chosen = shadowed.score, shadowed.chosen_score
    yield f'<table><tr><th>Plugin</th><th class="number">{escape(best.node)}</th>'
    yield f'<th class="number">{escape(chosen.node)}</th><th class="number">Difference</th></tr>'
    for plugin, difference in shadowed.differences.items():
        cells = [
            str(score.plugins[plugin].weighted if plugin in score.plugins else score.extenders)
            for score in (best, chosen)
        ]
        yield f"<tr><td>{escape(plugin)}</td>"
        yield "".join(f'<td class="number">{cell}</td>' for cell in cells)
        yield f'<td class="number">{difference:+}</td></tr>'
    yield f'<tr><th>Total</th><td class="number">{best.total}</td>'
    yield f'<td class="number">{chosen.total}</td>'
    yield f'<td class="number">{best.total - chosen.total:+}</td></tr></table>'
