"""What is kept of a store, when it is, and what is there after a restart."""

import asyncio
import tempfile
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.cluster.storage.journal import JournalError
from berth.cluster.storage.log import ChangeType, ExpiredError
from berth.cluster.storage.store import AlreadyExistsError, NotFoundError, Store
from tests.cluster.storage.keeping import Kept, obj

LARGE = "x" * 100_000


async def settled(waiting: Awaitable[object]) -> "asyncio.Future[object]":
    """Return what *waiting* has come to after everyone had some turns."""
    task = asyncio.ensure_future(waiting)
    for _ in range(10):
        await asyncio.sleep(0)
    return task


def contents(store: Store, resource: str = "pods") -> dict[str, tuple[int, object]]:
    return {each.name: (each.version, each.decode()["spec"]) for each in store.list(resource)}


async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    async with Kept(tmp_path) as kept:
        kept.store.create("pods", obj("a"))
        kept.store.create("pods", obj("b"))
        kept.store.update("pods", obj("b", replicas=3))
        kept.store.create("nodes", obj("n", ""))
        kept.store.delete("pods", "default", "a")
        before = contents(kept.store)
    async with Kept(tmp_path) as kept:
        kept.store.check_invariants()
        assert contents(kept.store) == before == {"b": (4, {"replicas": 3})}
        assert kept.store.get("pods", "default", "b").uid == "u-b"
        assert kept.store.version == kept.store.durable_version == 6
        assert kept.store.create("pods", obj("c")).version == 7


async def test_labels_are_there_after_a_restart(tmp_path: Path) -> None:
    labelled = obj("a")
    labelled["metadata"]["labels"] = {"app": "web"}
    async with Kept(tmp_path, kept_changes=1) as kept:
        kept.store.create("pods", labelled)
        await kept.store.durable()
        kept.store.create("nodes", labelled)
    async with Kept(tmp_path) as kept:
        for resource in ("pods", "nodes"):
            assert kept.store.get(resource, "default", "a").labels == {"app": "web"}


async def test_a_write_is_durable_when_the_disk_has_it(tmp_path: Path) -> None:
    async with Kept(tmp_path) as kept:
        kept.database.stop()
        kept.store.create("pods", obj("a"))
        waiting = await settled(kept.store.durable())
        assert not waiting.done()
        assert (kept.store.version, kept.store.durable_version) == (2, 1)
        kept.database.go_on()
        await waiting
        assert kept.store.durable_version == 2


async def test_who_waits_does_not_wait_for_later_writes(tmp_path: Path) -> None:
    async with Kept(tmp_path) as kept:
        kept.store.create("pods", obj("a"))
        first = await settled(kept.store.durable())
        kept.database.stop()
        kept.store.create("pods", obj("b"))
        await first
        second = await settled(kept.store.durable())
        assert not second.done()
        kept.database.go_on()
        await second


async def test_writes_gather_while_the_disk_is_busy(tmp_path: Path) -> None:
    async with Kept(tmp_path) as kept:
        kept.database.stop()
        for number in range(3):
            kept.store.create("pods", obj(f"first-{number}"))
        await settled(asyncio.sleep(0))
        for number in range(100):
            kept.store.create("pods", obj(f"p{number}"))
        kept.database.go_on()
        await kept.store.durable()
        assert kept.database.groups == [3, 100]


async def test_watchers_are_told_of_durable_changes_only(tmp_path: Path) -> None:
    async with Kept(tmp_path) as kept:
        store = kept.store
        kept.database.stop()
        cursor = store.watch("pods", store.version)
        store.create("pods", obj("a"))
        late = store.watch("pods", store.version)
        waiting = await settled(cursor.wait())
        assert (waiting.done(), cursor.take(10)) == (False, [])
        assert [each.name for each in store.list("pods")] == ["a"]
        assert [object_.name for object_ in store.listing("pods", version=1).objects] == []
        kept.database.go_on()
        await waiting
        assert [each.stored.name for each in cursor.take(10)] == ["a"]
        assert late.take(10) == []


async def test_a_watch_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with Kept(tmp_path) as kept:
        first = kept.store.create("pods", obj("a"))
        kept.store.update("pods", obj("a", replicas=2))
        kept.store.delete("pods", "default", "a")
    async with Kept(tmp_path) as kept:
        found = kept.store.watch("pods", first.version).take(10)
        assert [(each.type, each.stored.version) for each in found] == [
            (ChangeType.MODIFIED, 3),
            (ChangeType.DELETED, 4),
        ]
        assert found[0].old is not None
        assert found[0].old.body == first.body


async def test_a_watch_from_before_the_compaction_has_expired(tmp_path: Path) -> None:
    async with Kept(tmp_path, kept_changes=2) as kept:
        for number in range(3):
            kept.store.create("pods", obj(f"p{number}"))
            await kept.store.durable()
        kept.store.create("pods", obj("last"))
    async with Kept(tmp_path) as kept:
        assert kept.journal.compacted == 3
        # Also of kinds that nothing was kept of.
        for resource in ("pods", "nodes"):
            with pytest.raises(ExpiredError, match="too old resource version: 2"):
                kept.store.watch(resource, 2)
            with pytest.raises(ExpiredError, match="yet to come"):
                kept.store.watch(resource, 6)
        assert [each.stored.name for each in kept.store.watch("pods", 3).take(10)] == ["p2", "last"]
        assert kept.store.watch("nodes", 3).take(10) == []


async def test_a_full_disk_ends_it_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.store.create("pods", obj("safe"))
    await kept.store.durable()
    running = asyncio.create_task(kept.journal.run())
    kept.database.fill_up()
    cursor = kept.store.watch("pods", kept.store.version)
    kept.store.create("pods", obj("lost", text=LARGE))
    for name in ("lost-too", "lost-as-well"):
        with pytest.raises(JournalError, match=r"berth\.db: database or disk is full"):
            await kept.store.durable()
        kept.store.create("pods", obj(name))
    with pytest.raises(JournalError):
        await running
    assert cursor.take(10) == []
    await kept.journal.close()
    async with Kept(tmp_path) as again:
        assert list(contents(again.store)) == ["safe"]


steps = st.lists(
    st.tuples(st.sampled_from("cud"), st.sampled_from(["a", "b", "c"]), st.booleans()), max_size=40
)


@settings(max_examples=30, deadline=None)
@given(steps, st.integers(1, 8), st.integers(0, 40))
async def test_a_crash_takes_back_only_what_was_not_durable(
    steps: list[tuple[str, str, bool]], kept_changes: int, crash_after: int
) -> None:
    """The disk stops at some write: what comes after it never reaches the file."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Kept(Path(folder), kept_changes=kept_changes)
        store, states = kept.store, {}
        for number, (step, name, waits) in enumerate(steps):
            if number == crash_after:
                await store.durable()
                kept.database.fail()
            try:
                match step:
                    case "c":
                        store.create("pods", obj(name, number=number))
                    case "u":
                        store.update("pods", obj(name, number=number))
                    case _:
                        store.delete("pods", "default", name)
            except (AlreadyExistsError, NotFoundError):
                continue
            states[store.version] = contents(store)
            if waits and number < crash_after:
                await store.durable()
        if len(steps) <= crash_after:
            await store.durable()
        durable = store.durable_version
        with suppress(JournalError):
            await store.durable()
        await kept.journal.close()

        async with Kept(Path(folder), kept_changes=kept_changes) as again:
            again.store.check_invariants()
            assert again.store.version == durable
            assert contents(again.store) == states.get(durable, {})
            for version in range(max(1, again.journal.compacted), durable):
                found = [
                    each.stored.version for each in again.store.watch("pods", version).take(99)
                ]
                assert found == list(range(version + 1, durable + 1))
