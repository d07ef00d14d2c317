"""SIGUSR2: what the scheduler believes, in the log."""

import logging
from dataclasses import replace
from typing import Any

import pytest

from berth.service.dump import dump
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

    dump(replace(harness.view, pods=pods), nodes=[n1])

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


async def test_groups_that_wait(caplog: pytest.LogCaptureFixture) -> None:
    harness = group_harness()
    harness.put(node("n1"), group(min_count=3), *members("a", "b", cpu="1"))
    harness.put(group("h"), *members("c", of="h", cpu="1"))
    await harness.until_idle()
    caplog.set_level(logging.INFO, "berth.service.dump")

    dump(harness.view, nodes=())

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
    dump(harness.view, nodes=())
    [told] = [extra for message, extra in said(caplog) if message == "waiting pod group"]
    assert (told["pod_group"], told["composite_pod_group"], told["gated"]) == (
        "default/g",
        "default/top",
        1,
    )
