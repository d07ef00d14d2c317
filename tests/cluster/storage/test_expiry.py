"""Objects with a time to live."""

import pytest

from berth.cluster.storage.expiry import BATCH, Expiry
from berth.cluster.storage.store import Store
from berth.runtime.clock import FakeClock

SECONDS = 3600.0


class World:
    """A store whose events live for an hour."""

    def __init__(self, *before: str, log_capacity: int = 20_000) -> None:
        self.clock = FakeClock()
        self.store = Store(log_capacity=log_capacity)
        self.create(*before)
        self.expiry = Expiry(self.store, "events", seconds=SECONDS, clock=self.clock)

    def create(self, *names: str) -> None:
        for name in names:
            self.store.create("events", {"metadata": {"name": name, "namespace": "default"}})

    def left_after(self, seconds: float) -> list[str]:
        self.expiry.sweep()
        self.clock.advance(seconds)
        self.expiry.sweep()
        self.store.check_invariants()
        return [stored.name for stored in self.store.list("events")]


def test_what_nobody_writes_goes_after_its_time() -> None:
    world = World("before")
    world.create("a")
    assert world.left_after(SECONDS - 1) == ["a", "before"]
    world.create("b")
    assert world.left_after(1) == ["b"]


def test_every_write_gives_it_its_time_again() -> None:
    world = World("a", "b")
    assert world.left_after(SECONDS - 1) == ["a", "b"]
    world.store.update("events", {"metadata": {"name": "a", "namespace": "default"}, "count": 2})
    assert world.left_after(1) == ["a"]
    assert world.left_after(SECONDS) == []


def test_what_is_gone_already_and_came_again_is_another() -> None:
    world = World("a")
    world.left_after(SECONDS - 1)
    world.store.delete("events", "default", "a")
    world.create("a")
    assert world.left_after(1) == ["a"]


def test_other_kinds_stay() -> None:
    world = World()
    world.store.create("pods", {"metadata": {"name": "p", "namespace": "default"}})
    world.left_after(2 * SECONDS)
    assert world.store.get("pods", "default", "p").name == "p"


@pytest.mark.parametrize("count", [BATCH + 1, 5 * BATCH])
def test_more_than_the_log_remembers_goes_too_in_portions(count: int) -> None:
    world = World(log_capacity=100)
    world.create(*(f"e{number}" for number in range(count)))
    assert len(world.left_after(SECONDS)) == count - BATCH
    for _ in range(count // BATCH):
        world.expiry.sweep()
    assert world.left_after(0) == []
