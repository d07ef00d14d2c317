"""The token bucket, against its rule."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.client.rate_limit import TokenBucket
from berth.runtime.clock import FakeClock


def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    bucket = TokenBucket(qps=10, burst=3, clock=FakeClock())

    assert [bucket.reserve() for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])


def test_a_bucket_fills_up_to_its_burst() -> None:
    clock = FakeClock()
    bucket = TokenBucket(qps=10, burst=2, clock=clock)
    assert [bucket.reserve() for _ in range(4)] == pytest.approx([0, 0, 0.1, 0.2])

    clock.advance(3600)

    assert [bucket.reserve() for _ in range(3)] == pytest.approx([0, 0, 0.1])


@pytest.mark.parametrize("qps", [0.0, -1.0])
def test_without_a_rate_there_is_no_limit(qps: float) -> None:
    bucket = TokenBucket(qps=qps, burst=1, clock=FakeClock())

    assert [bucket.reserve() for _ in range(100)] == [0.0] * 100


@given(
    st.floats(0.5, 100),
    st.integers(1, 10),
    st.lists(st.floats(0, 2), min_size=1, max_size=50),
)
def test_no_window_has_more_than_the_burst_and_the_rate(
    qps: float, burst: int, pauses: list[float]
) -> None:
    clock = FakeClock(0)
    bucket = TokenBucket(qps=qps, burst=burst, clock=clock)
    leaves = []
    for pause in pauses:
        clock.advance(pause)
        leaves.append(clock.now() + bucket.reserve())

    assert leaves == pytest.approx(sorted(leaves)), "in order of asking"
    for first in range(len(leaves)):
        for last in range(first, len(leaves)):
            window = leaves[last] - leaves[first]
            assert last - first + 1 <= burst + window * qps + 1e-6


async def test_take_waits_and_tells_how_long() -> None:
    clock = FakeClock()
    bucket = TokenBucket(qps=1, burst=1, clock=clock)
    await bucket.take()
    second = asyncio.create_task(bucket.take(), name="second")
    await asyncio.sleep(0)
    assert not second.done()

    clock.advance(1)
    await second

    assert (bucket.waits, bucket.waited_seconds) == (1, 1.0)
