"""A scheduler that is cut off from what happens says so."""

import logging
from dataclasses import dataclass

import pytest

from berth.runtime.clock import FakeClock
from berth.service.staleness import PATIENCE, Staleness


@dataclass
class Watch:
    cut_off_since: float | None = None


def test_a_watch_that_is_cut_off_for_long_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = FakeClock()
    pods, nodes = Watch(), Watch()
    stale = Staleness({"/pods": pods, "/nodes": nodes}, is_leading=lambda: True, clock=clock)
    assert stale() == ""

    pods.cut_off_since = nodes.cut_off_since = clock.monotonic()
    clock.advance(PATIENCE - 1)
    nodes.cut_off_since = None
    stale.look()
    assert (stale(), caplog.records) == ("", [])

    clock.advance(2)
    stale.look()
    stale.look()
    assert stale() == "caches are stale: not watched for 31 s: /pods"
    (told,) = caplog.records
    assert (told.message, told.levelname) == ("caches are stale", "ERROR")
    assert vars(told)["leading"] is True
    caplog.clear()

    pods.cut_off_since = None
    stale.look()
    stale.look()
    assert stale() == ""
    assert [record.message for record in caplog.records] == ["caches are up to date again"]
