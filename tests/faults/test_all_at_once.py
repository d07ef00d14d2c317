"""Faults of all kinds on top of each other, at random but repeatable."""

import random

import pytest

from tests.faults.proxy import Answer, Fault
from tests.faults.world import world

pytestmark = [pytest.mark.wall, pytest.mark.slow]

TARGETS = [
    ("POST", "/binding$"),
    ("POST", "/events$"),
    ("PATCH", "/status$"),
    ("GET", r"/pods/[^/]+$"),
    ("GET", r"/pods\?"),
    ("GET", r"/nodes\?"),
]
STATUSES = [409, 410, 429, 500, 503, 504]
FAULTS = 80


def some_fault(rng: random.Random) -> Fault:
    method, target = rng.choice(TARGETS)
    lines_left = rng.randrange(1, 6)

    def break_off(line: bytes) -> list[bytes] | None:
        nonlocal lines_left
        lines_left -= 1
        return [line] if lines_left else None

    fault = Fault(method, target, forwarded=rng.random() < 0.5, delay=rng.choice([0.0, 0.0, 0.1]))
    match rng.randrange(3):
        case 0:
            fault.reset = True
        case 1:
            fault.answer = Answer(rng.choice(STATUSES), {"Retry-After": "1"})
        case 2:
            fault.forwarded, fault.lines = True, break_off
    return fault


@pytest.mark.parametrize("seed", range(4))
async def test_the_scheduler_gets_over_anything(seed: int) -> None:
    rng = random.Random(seed)
    async with world("n1", "n2", "n3") as cluster:
        cluster.proxy.faults = [some_fault(rng) for _ in range(FAULTS)]
        for step in range(15):
            await cluster.create_pods(*(f"p{step}-{i}" for i in range(rng.randrange(6))))
            if rng.random() < 0.3:
                cluster.proxy.reset_all()
            if rng.random() < 0.2:
                await cluster.create_nodes(f"more-{step}")

        await cluster.check()

        assert sum(fault.hits for fault in cluster.proxy.faults) > FAULTS / 3
