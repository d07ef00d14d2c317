"""Schedules of CronJobs: five fields, or a word such as ``@daily``.

Syntax, errors and the next time are those of robfig/cron v3, which kube-controller-manager uses.

Decision (2026-11): our own parser; because every cron library has a dialect of its own (``L``,
``#``, Sunday as 7, other rules for changes of the clock), and what one would refuse or run
differently is exactly what users try; instead of a library behind a second parser.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final, NamedTuple

YEARS_AHEAD: Final = 5
"""A schedule that has no time within these has none: the 30th of February."""

LONGEST: Final = 4096
"""Bytes of a schedule. All values of all fields, written out, take a tenth of it."""

LOOK_BACK: Final = YEARS_AHEAD * 366 * 86_400.0
"""Seconds in which the latest time is looked for."""

LAST_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
"""Of the months, in leap years."""

MONTHS: Final = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DAYS: Final = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]

DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

EVERY: Final = "@every "
UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}

_AMOUNT: Final = r"(\d{1,18}(?:\.\d{0,18})?)(h|ms|us|µs|ns|m|s)"
_DURATION: Final = re.compile(rf"\+?(?:{_AMOUNT})+", re.ASCII)
_PART: Final = re.compile(_AMOUNT, re.ASCII)


class Bounds(NamedTuple):
    """The values that a field may have, and their names."""

    first: int
    last: int
    names: dict[str, int]


BOUNDS: Final = (
    Bounds(0, 59, {}),
    Bounds(0, 23, {}),
    Bounds(1, 31, {}),
    Bounds(1, 12, {name: number for number, name in enumerate(MONTHS, 1)}),
    Bounds(0, 6, {name: number for number, name in enumerate(DAYS)}),
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """When something is to happen: at certain minutes, or every so many seconds."""

    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    """0 is Sunday."""
    any_day: bool = False
    """Whether days of the month or of the week are a star: then both must fit, else one."""
    every: int = 0
    """Seconds; 0: by the fields."""

    @classmethod
    def parse(cls, text: str) -> "Schedule":
        """Read *text*; raise ValueError for what is no schedule."""
        if not text:
            raise ValueError("empty spec string")
        if text.startswith(EVERY):
            return cls(every=_every(text))
        if text.startswith("@"):
            if text not in DESCRIPTORS:
                raise ValueError(f"unrecognized descriptor: {text}")
            text = DESCRIPTORS[text]
        fields = text.split()
        if len(fields) != len(BOUNDS):
            found = f"found {len(fields)}: [{' '.join(fields)}]"
            raise ValueError(f"expected exactly {len(BOUNDS)} fields, {found}")
        (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = (
            _field(field, bounds) for field, bounds in zip(fields, BOUNDS, strict=True)
        )
        return cls(minutes, hours, days, months, weekdays, any_day=any_day or any_weekday)

    def after(self, seconds: float, zone: tzinfo = UTC) -> float | None:
        """Return the first time later than *seconds* (both unix); None: there is none."""
        if self.every:
            return float(int(seconds) + self.every)
        if not self._comes_at_all():
            return None
        time = (int(seconds) // 60 + 1) * 60
        local = datetime.fromtimestamp(time, zone)
        limit = local.year + YEARS_AHEAD
        while local.year <= limit:
            if not self._has_day(local):
                time = max(_midnight(self._later_day(local), zone), time + 60)
            elif local.hour not in self.hours:
                time += 3600 - local.minute * 60
            elif local.minute not in self.minutes:
                later = [minute for minute in self.minutes if minute > local.minute]
                time += 60 * (min(later, default=60) - local.minute)
            else:
                return float(time)
            local = datetime.fromtimestamp(time, zone)
        return None

    def latest(self, after: float, until: float, zone: tzinfo = UTC) -> float | None:
        """Return the last time later than *after* and up to *until*; None: there is none."""
        if self.every:
            count = int((until - after) // self.every)
            return after + count * self.every if count > 0 else None
        found = self.after(max(after, until - LOOK_BACK), zone)
        if found is None or found > until:
            return None
        none_after = until  # and none between it and until
        while none_after - found >= 60:
            middle = (found + none_after) // 2
            time = self.after(middle, zone)
            if time is None or time > none_after:
                none_after = middle
            else:
                found = time
        return found

    def _comes_at_all(self) -> bool:
        """Tell whether some day of some year fits: the 30th of February and ``,`` do not."""
        if not (self.minutes and self.hours and self.months):
            return False
        in_some_month = any(
            day <= LAST_DAYS[month - 1] for month in self.months for day in self.days
        )
        if self.any_day:
            return in_some_month and bool(self.weekdays)
        return in_some_month or bool(self.weekdays)

    def _later_day(self, local: datetime) -> date:
        """Return the next day that may fit: tomorrow, or the first of the next month that does."""
        tomorrow = local.date() + timedelta(days=1)
        while tomorrow.month not in self.months:
            tomorrow = (tomorrow.replace(day=1) + timedelta(days=31)).replace(day=1)
        return tomorrow

    def _has_day(self, local: datetime) -> bool:
        if local.month not in self.months:
            return False
        in_month = local.day in self.days
        in_week = local.isoweekday() % 7 in self.weekdays
        return in_month and in_week if self.any_day else in_month or in_week


def _midnight(day: date, zone: tzinfo) -> int:
    """Return when *day* begins, in unix seconds."""
    return int(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp())


def _field(text: str, bounds: Bounds) -> tuple[frozenset[int], bool]:
    """Return the values of a field, and whether it is a star."""
    found: set[int] = set()
    star = False
    for item in text.split(","):
        if item:
            values, is_star = _range(item, bounds)
            found.update(values)
            star = star or is_star
    return frozenset(found), star


def _range(text: str, bounds: Bounds) -> tuple[range, bool]:
    """Read ``*``, ``5``, ``mon-fri`` or any of them with ``/2`` behind it."""
    span, *steps = text.split("/")
    ends = span.split("-")
    star = ends[0] in ("*", "?")
    if star:
        first, last = bounds.first, bounds.last
    elif len(ends) <= 2:
        first, last = _number(ends[0], bounds), _number(ends[-1], bounds)
    else:
        raise ValueError(f"too many hyphens: {text}")
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {text}")
    step = _integer(steps[0]) if steps else 1
    if steps and len(ends) == 1:
        last = bounds.last  # 5/15 is from 5 on
    if first < bounds.first:
        raise ValueError(f"beginning of range ({first}) below minimum ({bounds.first}): {text}")
    if last > bounds.last:
        raise ValueError(f"end of range ({last}) above maximum ({bounds.last}): {text}")
    if first > last:
        raise ValueError(f"beginning of range ({first}) beyond end of range ({last}): {text}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {text}")
    return range(first, last + 1, step), star and step == 1


def _number(text: str, bounds: Bounds) -> int:
    named = bounds.names.get(text.lower())
    return _integer(text) if named is None else named


def _integer(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII):
        reason = f'strconv.Atoi: parsing "{text}": invalid syntax'
        raise ValueError(f"failed to parse int from {text}: {reason}")
    if int(text) < 0:
        raise ValueError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


def _every(text: str) -> int:
    """Return the seconds of ``@every 1h30m``; at least one."""
    duration = text.removeprefix(EVERY)
    if not _DURATION.fullmatch(duration):
        reason = f'time: invalid duration "{duration}"'
        raise ValueError(f"failed to parse duration {text}: {reason}")
    seconds = sum(float(amount) * UNITS[unit] for amount, unit in _PART.findall(duration))
    return max(int(min(seconds, 1e10)), 1)
