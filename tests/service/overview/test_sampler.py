"""What is measured each second, and who is told of it."""

import asyncio
from dataclasses import asdict
from typing import Any

import pytest

from berth.service.overview.sampler import Sampler
from tests.builders import node, pod
from tests.harness import Harness
from tests.service.overview.world import sampler
from tests.service.server.scheduler.debug.world import permitted

GI = 1 << 30


def numbers(of: Sampler, *, lag: float = 0.0) -> dict[str, Any]:
    """Return what is not 0 of a sample taken now."""
    found = asdict(of.take(lag).numbers)
    return {name: value for name, value in found.items() if value}


async def test_pods_nodes_and_attempts() -> None:
    harness = Harness()
    sampling = sampler(harness)
    harness.put(
        node("n1", cpu=4, memory="8Gi"),
        node("n2", cpu=2, memory="4Gi"),
        pod("there", cpu=1, memory="1Gi", node="n1"),
        pod("fits", cpu=2),
        pod("too-large", cpu=64),
        pod("gated", gates=["later"]),
    )
    await harness.until_idle()
    harness.put(pod("new"))
    harness.clock.advance(2)

    assert numbers(sampling, lag=0.05) == {
        "active": 1,
        "unschedulable": 1,
        "gated": 1,
        "bound": 2,
        "scheduled_per_second": 0.5,
        "unschedulable_per_second": 0.5,
        "loop_lag_seconds": 0.05,
        "leading": 1,
        "configuration_generation": 1,
        "nodes": 2,
        "cpu_allocatable": 6000,
        "cpu_requested": 3000,
        "memory_allocatable": 12 * GI,
        "memory_requested": GI,
    }


async def test_the_oldest_pod_is_named_once_the_sampler_has_looked() -> None:
    harness = Harness()
    harness.put(pod("first"))
    sampling = sampler(harness)
    running = asyncio.create_task(sampling.run(), name="sampler")
    await asyncio.sleep(0)
    harness.clock.advance(10)
    sample = await sampling.after(0)
    running.cancel()

    assert sample is not None
    (oldest,) = sample.oldest
    assert (oldest.pod, oldest.age_seconds) == ("default/first", 10)
    assert sample.numbers.oldest_pending_seconds == 10


async def test_pods_that_wait_for_permit_are_told_from_those_that_are_bound() -> None:
    harness, bindings = permitted("a", "b")
    (binding, _) = bindings
    binding.enter_pre_bind(())
    found = numbers(sampler(harness))
    assert (found["waiting"], found["binding"]) == (1, 1)


async def test_a_reset_of_the_metrics_makes_no_negative_rate() -> None:
    harness = Harness()
    harness.put(node("n1"), pod("a"), pod("b"))
    await harness.until_idle()
    sampling = sampler(harness)
    harness.metrics.reset()
    harness.put(pod("c"))
    await harness.until_idle()
    harness.clock.advance(1)
    assert numbers(sampling)["scheduled_per_second"] == 1


async def test_a_sample_right_after_another_has_the_same_rates() -> None:
    harness = Harness()
    sampling = sampler(harness)
    harness.put(node("n1"), pod("a"), pod("b"))
    await harness.until_idle()
    harness.clock.advance(1.98)
    late = numbers(sampling)["scheduled_per_second"]
    harness.put(pod("c"))
    await harness.until_idle()
    harness.clock.advance(0.02)
    soon = numbers(sampling)["scheduled_per_second"]
    harness.clock.advance(1)
    assert late == soon == pytest.approx(2 / 1.98)
    assert numbers(sampling)["scheduled_per_second"] == pytest.approx(1 / 1.02)


async def test_errors_are_a_problem_for_a_minute() -> None:
    harness = Harness()
    sampling = sampler(harness)
    harness.metrics.failed("default-scheduler", "error", seconds=0.1, plugins=())
    messages = []
    for _ in range(61):
        harness.clock.advance(1)
        messages.append([problem.message for problem in sampling.take(0.0).problems])
    told = ["1 attempt failed with an error within the last minute"]
    assert messages == [told] * 60 + [[]]


async def test_a_standby_says_who_leads() -> None:
    sample = sampler(Harness(), is_leading=lambda: False, leader=lambda: "other").take(0.0)
    assert sample.leader == "other"
    assert [problem.message for problem in sample.problems] == ["Not leading: standby. other leads"]


async def test_a_slow_reader_gets_the_newest_sample() -> None:
    sampling = sampler(Harness())
    first = sampling.take(0.0)
    waiting = asyncio.create_task(sampling.after(first.number), name="reader")
    await asyncio.sleep(0)
    assert not waiting.done()
    sampling.take(0.0)
    sampling.take(0.0)

    newest = await waiting
    assert newest is not None
    assert newest.number == 3


@pytest.mark.parametrize("cancelled", [False, True], ids=["told to end", "cancelled"])
async def test_who_waits_is_told_that_none_will_come(cancelled: bool) -> None:
    harness = Harness()
    sampling = sampler(harness)
    running = asyncio.create_task(sampling.run(), name="sampler")
    waiting = asyncio.create_task(sampling.after(0), name="reader")
    await asyncio.sleep(0)
    if cancelled:
        running.cancel()
    else:
        sampling.end()
    assert await waiting is None
    running.cancel()
