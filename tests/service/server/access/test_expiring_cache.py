"""Answers are forgotten in time, and when there are too many."""

from berth.runtime.clock import FakeClock
from berth.service.server.access.expiring_cache import ExpiringCache


def test_an_answer_is_good_until_its_time_is_over() -> None:
    clock = FakeClock()
    cache: ExpiringCache[str, int] = ExpiringCache(capacity=9, monotonic=clock.monotonic)
    cache.put("a", 1, seconds=10)
    clock.advance(9.9)
    assert cache.get("a", 0) == 1
    clock.advance(0.1)
    assert (cache.get("a", 0), len(cache)) == (0, 0)


def test_the_oldest_goes_first() -> None:
    cache: ExpiringCache[str, int] = ExpiringCache(capacity=2, monotonic=FakeClock().monotonic)
    for key in ("a", "b", "a", "c"):
        cache.put(key, 1, seconds=10)
    assert {key: cache.get(key, 0) for key in "abc"} == {"a": 1, "b": 0, "c": 1}


def test_nothing_is_kept_for_no_time() -> None:
    cache: ExpiringCache[str, int] = ExpiringCache(capacity=2, monotonic=FakeClock().monotonic)
    cache.put("a", 1, seconds=10)
    cache.put("a", 2, seconds=0)
    assert len(cache) == 0
