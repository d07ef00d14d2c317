"""When the API server counts as back: once per outage, whoever notices first."""

import asyncio

import pytest

from berth.kube.client.contact import QUIET, Contact
from berth.runtime.clock import FakeClock


def recoveries(*happenings: tuple[float, str]) -> int:
    """Have each happen so many seconds after the one before; return how often there was news."""
    clock = FakeClock()
    contact = Contact(clock)
    for seconds, what in happenings:
        clock.advance(seconds)
        contact.heard() if what == "heard" else contact.missed()
    return contact.recoveries


@pytest.mark.parametrize(
    ("happenings", "want"),
    [
        pytest.param([(0, "heard"), (60, "heard")], 0, id="a quiet minute is no outage"),
        pytest.param([(0, "heard"), (1, "missed"), (1, "heard")], 0, id="one lost answer"),
        pytest.param([(0, "heard"), (1, "missed"), (QUIET, "heard")], 1, id="an outage"),
        pytest.param(
            [(0, "heard"), (1, "missed"), (QUIET, "heard"), (1, "missed"), (1, "heard")],
            1,
            id="what still fails after it",
        ),
        pytest.param(
            [(0, "heard"), *[(0.5, "missed"), (0.5, "heard")] * 30],
            0,
            id="one thing that never works beside others that do",
        ),
        pytest.param([(0, "missed"), (QUIET, "heard")], 1, id="from the start"),
    ],
)
def test_recoveries(happenings: list[tuple[float, str]], want: int) -> None:
    assert recoveries(*happenings) == want


async def test_all_who_wait_hear_of_it() -> None:
    clock = FakeClock()
    contact = Contact(clock)
    waiting = [asyncio.create_task(contact.recovered(), name="waits") for _ in range(3)]
    contact.missed()
    clock.advance(QUIET)
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)

    contact.heard()
    await asyncio.gather(*waiting)
