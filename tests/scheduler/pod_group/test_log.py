"""A gated group is silent in the API; the log says it once (spec G4.1)."""

import logging

import pytest

from tests.builders import node
from tests.scheduler.pod_group.building import group, group_harness, members


async def test_what_gates_a_group_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "berth_plugins.gang_scheduling")
    harness = group_harness()
    harness.put(node("n"), group("g", min_count=4), *members("a", "b", "c"))
    harness.put(*members("d", "e", of="h"))
    await harness.pass_time(5)

    assert [(vars(record)["pod_group"], vars(record)["why"]) for record in caplog.records] == [
        ("default/g", "waiting for minCount pods from a gang to appear in scheduling queue"),
        ("default/h", 'waiting for pods\'s pod group "h" to appear in scheduling queue'),
    ]
