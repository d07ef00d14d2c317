"""``berth shadow report`` in its three forms."""

import json

import pytest
from tests.insight.shadow.test_report import compared

from berth import cli
from berth.insight.explain.comparison import Agreement
from berth.insight.shadow.comparisons import Comparisons, Order
from berth.insight.shadow.report import Found
from berth.runtime.clock import FakeClock
from berth.service.scheduler_client import RunningScheduler

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

    monkeypatch.setattr("berth.service.scheduler_client.ask_shadow", answer)

    assert cli.main(["shadow", "report", "--output", output]) == 0

    printed = capsys.readouterr().out
    assert asked == ["https://127.0.0.1:10259"]
    assert WORDS in printed
    assert "\x1b[31m" not in printed
    if output == "json":
        assert json.loads(printed)["differences"][0]["plugin"] == "NodePorts"
    assert printed.startswith("<!doctype html>\n") == (output == "html")
