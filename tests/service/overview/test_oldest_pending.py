"""The pods that have been pending for longest."""

import pytest

from berth.service.overview import oldest_pending
from berth.service.overview.oldest_pending import OldestPending
from tests.builders import pod
from tests.harness import Harness


def watcher(harness: Harness) -> OldestPending:
    return OldestPending(harness.queue.sub_queues, clock=harness.clock)


def names(found: OldestPending) -> list[str]:
    return [each.pod.removeprefix("default/") for each in found.oldest()]


async def test_oldest_first_and_gated_ones_left_out() -> None:
    harness = Harness()
    for name in ("a", "b", "c"):
        harness.put(pod(name, gates=["later"] if name == "b" else []))
        harness.clock.advance(100)
    oldest = watcher(harness)
    await oldest.look()

    assert names(oldest) == ["a", "c"]
    assert [each.age_seconds for each in oldest.oldest()] == [300, 100]
    assert oldest.long_pending == 0

    harness.clock.advance(1)
    await oldest.look()
    assert oldest.long_pending == 1


async def test_ten_of_many_and_of_the_same_age_by_name() -> None:
    harness = Harness()
    for age in range(15):
        harness.put(pod(f"{age:02}z"), pod(f"{age:02}a"), pod(f"{age:02}m"))
        harness.clock.advance(1)
    oldest = watcher(harness)
    await oldest.look()

    assert names(oldest) == [f"{age:02}{last}" for age in range(4) for last in "amz"][:10]


async def test_a_pod_that_waits_no_more_is_not_told() -> None:
    harness = Harness()
    harness.put(pod("a"), pod("b"))
    oldest = watcher(harness)
    await oldest.look()
    harness.delete(pod("a"))

    assert names(oldest) == ["b"]


async def test_many_pods_are_looked_at_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oldest_pending, "PIECE", 10)
    harness = Harness()
    harness.put(*(pod(f"p{i:02}") for i in range(30)))
    oldest = watcher(harness)
    await oldest.look()
    first = harness.queue.pop()
    assert first is not None
    gone = first.pod.metadata.name
    harness.put(pod("late"))

    seen = []
    for _ in range(4):
        seen.append(len(oldest.oldest()))
        harness.clock.advance(1)
        await oldest.look()
    assert gone not in names(oldest)
    assert seen == [9, 9, 9, 10], "the next look is 3 s after the first"
