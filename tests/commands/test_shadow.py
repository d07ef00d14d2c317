"""``berth shadow report`` in its three forms."""

import json

import pytest

from berth import cli
from berth.clock import FakeClock
from berth.commands import shadow
from berth.explain.comparison import Agreement
from berth.scheduler_client import RunningScheduler
from berth.shadow.comparisons import Comparisons, Order
from berth.shadow.report import Found
from tests.shadow.test_report import compared

WORDS = "0% agreement on 1 pod since 2001-09-09T01:46:40Z"


@pytest.mark.parametrize("output", ["table", "json", "html"])
def test_reports(
    output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def answer(scheduler: RunningScheduler) -> Found:
        asked.append(scheduler.url)
        kept = Comparisons(FakeClock())
        kept.add(compared(Agreement.REFUSED, "a\x1b[31mb", plugin="NodePorts"), order=Order.WATCH)
        return Found(summary=kept.summary(), items=tuple(kept.newest_first()))

    monkeypatch.setattr(shadow, "ask_shadow", answer)

    assert cli.run(["shadow", "report", "--output", output]) == 0

    printed = capsys.readouterr().out
    assert asked == ["https://127.0.0.1:10259"]
    assert WORDS in printed
    assert "\x1b[31m" not in printed
    if output == "json":
        assert json.loads(printed)["differences"][0]["plugin"] == "NodePorts"
    assert printed.startswith("<!doctype html>\n") == (output == "html")
