"""SIGUSR2: what the scheduler believes, in the log."""

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

import berth.service.dump
from berth.service.dump import Dumps, dump
from tests.builders import node, pod
from tests.harness import Harness
from tests.scheduler.pod_group.building import composite, group, group_harness, members


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    standard = vars(logging.makeLogRecord({})).keys() | {"message", "asctime", "taskName"}
    return [
        (r.message, {k: v for k, v in vars(r).items() if k not in standard})
        for r in caplog.records
        if r.name == "berth.service.dump"
    ]


async def test_dump(caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness()
    n1 = node("n1")
    harness.put(n1, pod("old", node="n1"), pod("gone", node="n2"), pod("big", cpu=99_999))
    await harness.until_idle()
    caplog.set_level(logging.INFO, "berth.service.dump")
    pods = {key: p for key, p in harness.cluster.pods.items() if p.metadata.name != "gone"}

    await dump(replace(harness.view, pods=pods), nodes=[n1])

    assert said(caplog) == [
        ("dump of the cache", {"nodes": 2, "pods": 2, "assumed_pods": 0}),
        ("cached node", {"node": "n1", "known": True, "pods": ["default/old"]}),
        ("cached node", {"node": "n2", "known": False, "pods": ["default/gone"]}),
        ("dump of the queue", {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 0}),
        (
            "waiting pod",
            {
                "queue": "unschedulable",
                "pod": "default/big",
                "attempts": 1,
                "rejected_by": ["NodeResourcesFit"],
            },
        ),
        ("cache mismatch", {"difference": "pods only in the cache: default/gone"}),
        ("cache compared", {"differences": 1}),
    ]


async def test_all_lines_are_of_one_moment_and_others_have_turns_between_them(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(berth.service.dump, "LINES", 10)
    harness = Harness()
    n1 = node("n1")
    harness.put(n1, *(pod(f"p{number}", cpu=99_999) for number in range(30)))
    await harness.until_idle()
    caplog.set_level(logging.INFO, "berth.service.dump")
    dumping = asyncio.create_task(dump(harness.view, nodes=[n1]), name="dump")
    turns = 0
    while not dumping.done():
        await asyncio.sleep(0)
        turns += 1
        if turns == 1:
            harness.delete(*harness.cluster.pods.values())
    told = [extra for message, extra in said(caplog) if message == "waiting pod"]

    assert turns > 3
    assert sorted(extra["pod"] for extra in told) == sorted(
        f"default/p{number}" for number in range(30)
    )
    assert {(extra["queue"], *extra["rejected_by"]) for extra in told} == {
        ("unschedulable", "NodeResourcesFit")
    }
    assert said(caplog)[-1] == ("cache compared", {"differences": 0})


async def test_each_question_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness()
    caplog.set_level(logging.INFO, "berth.service.dump")
    dumps = Dumps(harness.view, nodes={})
    answering = asyncio.create_task(dumps.run(), name="dumps")
    for asked in range(2):
        dumps.ask()
        async with asyncio.timeout(30):
            while [told for told, _ in said(caplog)].count("cache compared") == asked:  # noqa: ASYNC110 - a line sets no event
                await asyncio.sleep(0)
    answering.cancel()


async def test_groups_that_wait(caplog: pytest.LogCaptureFixture) -> None:
    harness = group_harness()
    harness.put(node("n1"), group(min_count=3), *members("a", "b", cpu="1"))
    harness.put(group("h"), *members("c", of="h", cpu="1"))
    await harness.until_idle()
    caplog.set_level(logging.INFO, "berth.service.dump")

    await dump(harness.view, nodes=())

    told = [extra for message, extra in said(caplog) if message == "waiting pod group"]
    assert told == [
        {
            "pod_group": "default/g",
            "exists": True,
            "min_count": 3,
            "pods": 2,
            "scheduled": 0,
            "active": 0,
            "backoff": 0,
            "unschedulable": 0,
            "gated": 2,
            "incomplete": 0,
            "pending": 0,
        }
    ]


async def test_groups_that_wait_for_others(caplog: pytest.LogCaptureFixture) -> None:
    harness = group_harness("TopologyAwareWorkloadScheduling", "CompositePodGroup", release="1.37")
    harness.put(node("n1"), composite("top", min_count=2), group("g", parent="top"))
    harness.put(*members("a", cpu="1"))
    await harness.until_idle()
    caplog.set_level(logging.INFO, "berth.service.dump")
    await dump(harness.view, nodes=())
    [told] = [extra for message, extra in said(caplog) if message == "waiting pod group"]
    assert (told["pod_group"], told["composite_pod_group"], told["gated"]) == (
        "default/g",
        "default/top",
        1,
    )
