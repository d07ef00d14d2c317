"""Schedules: their syntax, and the next time, as robfig/cron has it."""

import math
import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.cron import Schedule


def next_of(schedule: str, after: str, zone: str = "UTC") -> str | None:
    place = ZoneInfo(zone)
    time = Schedule.parse(schedule).after(datetime.fromisoformat(after).timestamp(), place)
    return None if time is None else datetime.fromtimestamp(time, place).isoformat()


@pytest.mark.parametrize(
    ("schedule", "after", "want"),
    [
        pytest.param("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01", id="every minute"),
        pytest.param("*/15 * * * *", "2026-07-09T14:59:59Z", "2026-07-09T15:00", id="quarters"),
        pytest.param("5/20 * * * *", "2026-07-09T14:26:00Z", "2026-07-09T14:45", id="from five on"),
        pytest.param("0 0 1 * *", "2026-12-01T00:00:00Z", "2027-01-01T00:00", id="each month"),
        pytest.param("@weekly", "2026-11-22T10:00:00Z", "2026-11-29T00:00", id="on Sundays"),
        pytest.param("0 9 * * MON-fri", "2026-11-20T10:00:00Z", "2026-11-23T09:00", id="by name"),
        pytest.param("0 0 13 * 5", "2026-11-01T00:00:00Z", "2026-11-06T00:00", id="either day"),
        pytest.param("0 0 */2 * 5", "2026-11-01T00:00:00Z", "2026-11-03T00:00", id="with steps"),
        pytest.param("0 0 29 2 ?", "2026-11-01T00:00:00Z", "2028-02-29T00:00", id="leap years"),
        pytest.param("@every 90s", "2026-01-01T00:00:10Z", "2026-01-01T00:01:40", id="intervals"),
        pytest.param("@every 1ms", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01", id="short ones"),
    ],
)
def test_the_next_time(schedule: str, after: str, want: str) -> None:
    found = next_of(schedule, after)
    assert found is not None
    assert found.startswith(want)


class Looks(tzinfo):
    """UTC, which counts how often somebody asks what time it is there."""

    def __init__(self) -> None:
        self.count = 0

    def fromutc(self, moment: datetime) -> datetime:
        self.count += 1
        return moment

    def utcoffset(self, _moment: datetime | None) -> timedelta:
        return timedelta()

    def dst(self, _moment: datetime | None) -> timedelta:
        return timedelta()

    def tzname(self, _moment: datetime | None) -> str:
        return "UTC"


NEVER = ("0 0 30 2 *", "0 0 31 2,4,6,9,11 *", ", * * * *", "* , * * *", "* * , * ,", "* * * , *")


@pytest.mark.parametrize("schedule", NEVER)
def test_a_day_that_never_comes(schedule: str) -> None:
    assert next_of(schedule, "2026-01-01T00:00:00Z") is None
    looks = Looks()
    assert Schedule.parse(schedule).after(1e9, looks) is None
    assert Schedule.parse(schedule).latest(0, 1e9, looks) is None
    assert looks.count == 0


def subsets(first: int, last: int) -> st.SearchStrategy[str]:
    some = st.sets(st.integers(first, last), min_size=1, max_size=4)
    return st.just("*") | some.map(lambda values: ",".join(map(str, values)))


schedules = st.tuples(
    subsets(0, 59), subsets(0, 23), subsets(1, 31), subsets(1, 12), subsets(0, 6)
).map(" ".join)


@given(schedules, st.integers(0, 2**31))
def test_a_walk_is_short_whatever_the_schedule(schedule: str, now: int) -> None:
    looks = Looks()
    parsed = Schedule.parse(schedule)
    parsed.after(now, looks)
    assert looks.count <= 400
    looks.count = 0
    parsed.latest(now - 10**8, now, looks)
    assert looks.count <= 23 * 400


@given(schedules, st.integers(0, 2**31), st.integers(60, 10**6))
def test_the_latest_is_the_last_of_all(schedule: str, start: int, seconds: int) -> None:
    parsed = Schedule.parse(schedule)
    found = parsed.latest(start, start + seconds)
    first = parsed.after(start)
    if first is None or first > start + seconds:
        assert found is None
        return
    assert found is not None
    assert start < found <= start + seconds
    assert parsed.after(found - 1) == found
    following = parsed.after(found)
    assert following is None or following > start + seconds


@given(
    schedules, st.integers(0, 2**31), st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu"])
)
def test_no_minute_in_between_fits(schedule: str, start: int, zone: str) -> None:
    parsed, place = Schedule.parse(schedule), ZoneInfo(zone)
    found = parsed.after(start, place)
    until = min(found or math.inf, start + 3 * 86_400)
    for time in range((start // 60 + 1) * 60, int(until), 60 * 7):
        local = datetime.fromtimestamp(time, place)
        day, weekday = local.day in parsed.days, local.isoweekday() % 7 in parsed.weekdays
        assert not (
            local.minute in parsed.minutes
            and local.hour in parsed.hours
            and local.month in parsed.months
            and (day and weekday if parsed.any_day else day or weekday)
        )


@pytest.mark.parametrize(
    ("schedule", "after", "want"),
    [
        pytest.param(
            "30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-30T02:30:00+02:00", id="it is left out"
        ),
        pytest.param(
            "30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-25T02:30:00+01:00", id="it comes twice"
        ),
        pytest.param(
            "0 0 * * *", "2026-03-28T12:00:00Z", "2026-03-29T00:00:00+01:00", id="another hour"
        ),
    ],
)
def test_where_the_clock_changes(schedule: str, after: str, want: str) -> None:
    assert next_of(schedule, after, "Europe/Berlin") == want


@given(
    st.sampled_from(["*/7 3-5 * * *", "0 0 1,15 * 2", "59 23 31 12 *", "* * * * 0"]),
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001
)
def test_it_is_later_and_never_misses_one(schedule: str, moment: datetime) -> None:
    parsed = Schedule.parse(schedule)
    time = moment.replace(tzinfo=UTC).timestamp()
    first = parsed.after(time)
    assert first is not None
    assert first > time
    assert parsed.after((time + first) / 2) == first or (time + first) / 2 >= first


@pytest.mark.parametrize(
    ("schedule", "after", "want"),
    [
        pytest.param("* * * * *", "2026-01-01T00:00:00Z", "2026-06-01T12:00", id="every minute"),
        pytest.param("* * * * *", "2026-06-01T12:00:00Z", None, id="it was the last"),
        pytest.param("0 9 * * *", "2026-01-01T00:00:00Z", "2026-06-01T09:00", id="this morning"),
        pytest.param("0 0 29 2 *", "2023-01-01T00:00:00Z", "2024-02-29T00:00", id="long ago"),
        pytest.param("0 0 29 2 *", "2025-01-01T00:00:00Z", None, id="too long ago"),
        pytest.param("@every 7m", "2026-06-01T11:40:00Z", "2026-06-01T11:54", id="intervals"),
        pytest.param("@every 1h", "2026-06-01T11:40:00Z", None, id="a longer one"),
    ],
)
def test_the_latest_time(schedule: str, after: str, want: str | None) -> None:
    until = datetime.fromisoformat("2026-06-01T12:00:30Z").timestamp()
    found = Schedule.parse(schedule).latest(datetime.fromisoformat(after).timestamp(), until)
    shown = None if found is None else datetime.fromtimestamp(found, UTC).isoformat()
    assert (shown is None) == (want is None)
    assert shown is None or shown.startswith(str(want))


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        pytest.param("", "empty spec string", id="nothing"),
        pytest.param("1 2 3", "expected exactly 5 fields, found 3: [1 2 3]", id="three fields"),
        pytest.param("60 * * * *", "end of range (60) above maximum (59): 60", id="too large"),
        pytest.param("* * 0 * *", "beginning of range (0) below minimum (1): 0", id="too small"),
        pytest.param("* * * * 7", "end of range (7) above maximum (6): 7", id="Sunday is 0"),
        pytest.param(
            "9-5 * * * *", "beginning of range (9) beyond end of range (5): 9-5", id="backwards"
        ),
        pytest.param("1-2-3 * * * *", "too many hyphens: 1-2-3", id="hyphens"),
        pytest.param("1/2/3 * * * *", "too many slashes: 1/2/3", id="slashes"),
        pytest.param("*/0 * * * *", "step of range should be a positive number: */0", id="no step"),
        pytest.param(
            "x * * * *",
            'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax',
            id="a letter",
        ),
        pytest.param("@lunch", "unrecognized descriptor: @lunch", id="a word"),
        pytest.param(
            "@every lunch",
            'failed to parse duration @every lunch: time: invalid duration "lunch"',
            id="no duration",
        ),
    ],
)
def test_what_is_no_schedule(schedule: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Schedule.parse(schedule)
