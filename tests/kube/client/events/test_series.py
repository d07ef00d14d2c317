"""Series of events: nothing is lost, and little is written."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.kube.client.events.series import (
    IDLE_LIMIT,
    EventSeriesCache,
    Occurrences,
    isomorphic_key,
)
from berth.kube.objects.event import Event, EventMeta, ObjectReference
from berth.runtime.clock import rfc3339_micro

NOW = 1795179979.25


def event(pod: str = "p", **changes: object) -> Event:
    made = Event(
        api_version="events.k8s.io/v1",
        kind="Event",
        metadata=EventMeta(name=f"{pod}.1", namespace="ns"),
        event_time=rfc3339_micro(NOW),
        reporting_controller="c",
        reporting_instance="c-h",
        action="Scheduling",
        reason="FailedScheduling",
        regarding=ObjectReference(kind="Pod", namespace="ns", name=pod, uid=pod),
        note="no room",
        type="Warning",
    )
    return msgspec.structs.replace(made, **changes)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        pytest.param(event(note="still no room"), True, id="the note does not matter"),
        pytest.param(event(event_time="later"), True, id="the time does not matter"),
        pytest.param(event(reason="Scheduled"), False, id="the reason does"),
        pytest.param(event(action="Binding"), False, id="the action does"),
        pytest.param(event(type="Normal"), False, id="the type does"),
        pytest.param(event(reporting_controller="d"), False, id="the controller does"),
        pytest.param(event(reporting_instance="c-i"), False, id="the instance does"),
        pytest.param(event(pod="q"), False, id="the pod does"),
        pytest.param(event(related=ObjectReference(name="q")), False, id="the related pod does"),
    ],
)
def test_isomorphic_key(other: Event, *, same: bool) -> None:
    assert (isomorphic_key(other) == isomorphic_key(event())) is same


def test_a_singleton_is_forgotten_after_six_minutes_without_a_write() -> None:
    cache = EventSeriesCache()
    cache.observe(event(), now=NOW)

    assert cache.sweep(now=NOW + IDLE_LIMIT) == []
    assert len(cache) == 1
    assert cache.sweep(now=NOW + IDLE_LIMIT + 1) == []
    assert len(cache) == 0


def test_beyond_the_capacity_the_oldest_is_forgotten_and_its_series_written() -> None:
    cache = EventSeriesCache(capacity=2)
    series = Occurrences(event("a"), NOW + 1, count=2)
    assert cache.observe(event("a"), now=NOW) == [event("a")]
    assert cache.observe(event("a"), now=NOW + 1) == [series.as_series()]
    assert cache.observe(event("a"), now=NOW + 2) == []
    assert cache.observe(event("b"), now=NOW + 3) == [event("b")]

    written = cache.observe(event("c"), now=NOW + 4)

    assert written == [event("c"), replace(series, count=3, last_at=NOW + 2).as_series()]
    assert len(cache) == 2


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 500)), max_size=40))
def test_every_occurrence_is_in_the_last_count_written(history: list[tuple[str, float]]) -> None:
    cache, now = EventSeriesCache(capacity=2), NOW
    written: list[Event] = []
    for pod, pause in history:
        now += pause
        written += cache.sweep(now=now)
        written += cache.observe(event(pod), now=now)
    written += cache.sweep(now=now + IDLE_LIMIT + 1)

    counts: dict[str, int] = {}
    finished = 0
    for each in written:
        if each.series is None:  # a new event of that pod: the one before is complete
            finished += counts.pop(each.regarding.name, 0)
            counts[each.regarding.name] = 1
        else:
            counts[each.regarding.name] = each.series.count
    assert finished + sum(counts.values()) == len(history)
