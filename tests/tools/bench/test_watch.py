"""The benchmark of changes on a small cluster: each kind is measured; how fast is not asserted."""

import asyncio

import pytest

from berth.runtime.clock import RealClock
from berth.tools.bench.size import Settings
from berth.tools.bench.watch import KINDS, measure


@pytest.mark.wall
@pytest.mark.slow
async def test_each_kind_of_changes_is_measured() -> None:
    settings = Settings(nodes=10, pods=30, rate=100, seconds=0.5)
    async with asyncio.timeout(60):
        figures = [each async for each in measure(settings, clock=RealClock())]

    assert [(figure.name, figure.at["kind"]) for figure in figures] == [
        (name, kind)
        for kind in KINDS
        for name in (
            "scheduler CPU per event",
            "scheduler CPU",
            "how late the last event is sent",
        )
    ]
