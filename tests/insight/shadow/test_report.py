"""Reports: what is summed up, and that nothing in them obeys a name in the cluster."""

from html.parser import HTMLParser

import pytest

from berth.insight.explain.comparison import Agreement, Comparison
from berth.insight.explain.explanation import NodeScore, PluginScore
from berth.insight.shadow.comparisons import Comparisons, Order, Skipped
from berth.insight.shadow.html import page
from berth.insight.shadow.report import Found, Report, report
from berth.insight.shadow.tables import render
from berth.runtime.clock import FakeClock
from berth.runtime.tables import as_text

HOSTILE = '</style><script>alert("x")</script>'


def compared(result: Agreement, name: str = "p", **more: object) -> Comparison:
    said: dict[str, object] = {
        "pod": f"default/{name}", "uid": name, "profile": "default-scheduler", "words": name,
        "chosen": "n2", "num_nodes": 500, "num_feasible": 400,
    }  # fmt: skip
    return Comparison.model_validate({**said, "result": result, **more})


def scored(node: str, **plugins: int) -> NodeScore:
    of_plugins = {
        name: PluginScore(raw=points, normalized=points, weight=1, weighted=points)
        for name, points in plugins.items()
    }
    return NodeScore(node=node, total=sum(plugins.values()), plugins=of_plugins)


def differed(name: str, num_better: int = 3, **ahead: int) -> Comparison:
    """A pod whose best node is ahead of the chosen one by so many points of each plugin."""
    return compared(
        Agreement.DIFFERED,
        name,
        plugin=max(ahead, key=lambda plugin: ahead[plugin]),
        node="n1",
        differences=ahead,
        score=scored("n1", **{plugin: 200 + points for plugin, points in ahead.items()}),
        chosen_score=scored("n2", **dict.fromkeys(ahead, 200)),
        num_better=num_better,
    )


def reported(*comparisons: Comparison, skipped: int = 0) -> Report:
    kept = Comparisons(FakeClock())
    for comparison in comparisons:
        sampled = comparison.result is Agreement.DIFFERED and comparison.num_better == 5
        kept.add(comparison, order=Order.WATCH, may_be_sampled=sampled)
    for _ in range(skipped):
        kept.skip(Skipped.RELISTED)
    items = tuple(kept.newest_first(agreements=False))
    return report(Found(summary=kept.summary(), items=items))


MIXED = reported(
    *[compared(Agreement.AGREED)] * 6,
    compared(Agreement.TIE),
    compared(Agreement.NOWHERE, chosen=""),
    differed("a", Fit=30, Spread=-10),
    differed("b", Fit=30, Spread=10, num_better=5),
    compared(Agreement.REFUSED, plugin="TaintToleration", reasons=["taint"]),
    skipped=2,
)


def test_shares_are_rounded_down() -> None:
    assert MIXED.words == (
        "72.7% agreement on 11 pods since 2001-09-09T01:46:40Z: 6 on the same node, 1 up to a tie,"
        " 1 fit nowhere"
    )
    assert reported().words == "nothing was compared yet"
    almost = reported(*[compared(Agreement.AGREED)] * 4_999, compared(Agreement.NOT_PLACED))
    assert almost.words.startswith("99.9% agreement on 5000 pods")


def test_differences_are_put_together_by_plugin() -> None:
    by_fit, refused = MIXED.differences

    assert (by_fit.result, by_fit.plugin, by_fit.pods) == ("differed", "Fit", 2)
    assert by_fit.points == 30  # 20 and 40
    assert by_fit.without_plugin == 0.5  # of b, Spread prefers the same node
    assert [example.words for example in by_fit.examples] == ["b", "a"]
    assert (refused.result, refused.plugin, refused.pods) == ("refused", "TaintToleration", 1)
    assert refused.points is None


def test_what_may_explain_differences_is_said() -> None:
    sampling, relisted = MIXED.notes

    assert sampling.startswith("For 1 pods a sample may explain the difference: ")
    assert "percentageOfNodesToScore" in sampling
    assert "5 (median) were better" in sampling
    assert relisted == (
        "2 pods were not compared: the watch was interrupted, so the order of what came is not"
        " known."
    )


def test_the_table() -> None:
    text = as_text(render(MIXED), width=100)

    assert text.splitlines()[1:4] == [
        "result    plugin           pods  points  without it",
        "differed  Fit                 2      30         50%",
        "refused   TaintToleration     1",
    ]
    assert "Compare weight and arguments of Fit in both configurations." in text


class Outline(HTMLParser):
    """What a browser would make of a file."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", ["plain", HOSTILE])
def test_html_has_no_script_whatever_things_are_called(name: str) -> None:
    hostile = differed(name, **{name: 30})
    outline = Outline()
    outline.feed(page(reported(hostile, compared(Agreement.REFUSED, name, reasons=[name]))))

    assert name in outline.text
    assert not {"script", "link", "img", "iframe", "a"} & set(outline.tags)
    assert not {attribute for attribute in outline.attributes if attribute.startswith("on")}
    assert outline.tags.count("style") == 1
    assert "+30" in outline.text
