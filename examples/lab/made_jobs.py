"""Writes a CSV of made jobs, in one of two formats: a stand-in for a trace of your own.

::

    python examples/lab/made_jobs.py durations 200 > examples/lab/durations.csv
    python examples/lab/made_jobs.py gangs 60 > examples/lab/gangs.csv
"""

import csv
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from math import cos, pi
from random import Random

DAY = 86_400.0
FIRST = datetime(2026, 1, 5, tzinfo=UTC)


def moments(random: Random, every: float) -> Iterator[float]:
    """Yield times in seconds, twice as many at noon as on average, and few at midnight."""
    now = 0.0
    while True:
        now += random.expovariate(1) * every / (1 - 0.9 * cos(2 * pi * now / DAY))
        yield now


def durations(number: int) -> Iterator[list[object]]:
    """Jobs of one pod, most of them short, of a few users and many of one of them."""
    random = Random(1)
    yield ["submitted", "run_minutes", "cores", "memory_gb", "user", "queue"]
    for now, _ in zip(moments(random, 20), range(number), strict=False):
        cores = random.choices([1, 2, 4, 8, 16], [40, 25, 20, 10, 5])[0]
        minutes = min(random.lognormvariate(3, 1.4), 2880)
        user = f"user-{min(int(random.expovariate(0.4)), 9)}"
        queue = random.choices(["batch", "interactive"], [3, 1])[0]
        yield [round(now), f"{minutes:.1f}", cores, cores * random.choice([2, 4, 8]), user, queue]


def gangs(number: int) -> Iterator[list[object]]:
    """Training jobs, some of several workers that can only work together."""
    random = Random(2)
    yield ["job", "created", "finished", "workers", "gpus", "priority", "team"]
    for job, now in zip(range(number), moments(random, 600), strict=False):
        workers = random.choices([1, 2, 4, 8], [60, 20, 12, 8])[0]
        created = FIRST + timedelta(seconds=round(now))
        finished = created + timedelta(minutes=round(min(random.lognormvariate(4, 1), 1440)))
        gpus = random.choice([1, 2, 4]) if workers == 1 else 4
        team = random.choice(["speech", "vision"])
        priority = random.choice([0, 0, 0, 100])
        yield [
            f"train-{job}",
            created.isoformat(),
            finished.isoformat(),
            workers,
            gpus,
            priority,
            team,
        ]


if __name__ == "__main__":
    kind, number = sys.argv[1:]
    rows = {"durations": durations, "gangs": gangs}[kind](int(number))
    csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
