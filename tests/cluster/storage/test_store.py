"""The store: writes, versions, snapshots and the log."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.resources import Object
from berth.cluster.storage.log import ChangeType, ExpiredError
from berth.cluster.storage.store import AlreadyExistsError, ConflictError, NotFoundError, Store


def obj(name: str, namespace: str = "default", **spec: int) -> Object:
    return {"kind": "Pod", "metadata": {"namespace": namespace, "name": name}, "spec": spec}


def names(store: Store, namespace: str = "") -> list[str]:
    return ["/".join(stored.key) for stored in store.list("pods", namespace)]


def test_lists_are_sorted_by_namespace_and_name() -> None:
    store = Store()
    for namespace, name in (("b", "x"), ("a", "z"), ("a-b", "m"), ("a", "y")):
        store.create("pods", obj(name, namespace))
    assert names(store) == ["a/y", "a/z", "a-b/m", "b/x"]
    assert names(store, "a") == ["a/y", "a/z"]


def test_every_write_has_a_version_of_its_own() -> None:
    store = Store()
    first = store.create("pods", obj("p"))
    node = store.create("nodes", obj("n", ""))
    second = store.update("pods", obj("p", replicas=2), expected=first.version)
    last = store.delete("pods", "default", "p")
    assert [first.version, node.version, second.version, last.version] == [2, 3, 4, 5]
    assert last.decode()["metadata"]["resourceVersion"] == "5"
    assert store.version == 5


def test_what_a_reader_decodes_is_its_own() -> None:
    store = Store()
    store.create("pods", obj("p"))
    store.get("pods", "default", "p").decode()["spec"]["changed"] = 1
    assert store.get("pods", "default", "p").decode()["spec"] == {}


@pytest.mark.parametrize("dry_run", [True, False])
def test_refused_writes_change_nothing(dry_run: bool) -> None:
    store = Store()
    store.create("pods", obj("p"))
    with pytest.raises(AlreadyExistsError):
        store.create("pods", obj("p"), dry_run=dry_run)
    with pytest.raises(NotFoundError):
        store.update("pods", obj("q"), dry_run=dry_run)
    with pytest.raises(ConflictError):
        store.update("pods", obj("p"), expected=7, dry_run=dry_run)
    with pytest.raises(NotFoundError):
        store.delete("pods", "default", "q", dry_run=dry_run)
    assert (names(store), store.version) == (["default/p"], 2)


def test_dry_runs_change_nothing() -> None:
    store = Store()
    store.create("pods", obj("p"))
    created = store.create("pods", obj("q"), dry_run=True)
    updated = store.update("pods", obj("p", replicas=1), dry_run=True)
    store.delete("pods", "default", "p", dry_run=True)
    versions = [each.decode()["metadata"].get("resourceVersion") for each in (created, updated)]
    assert versions == [None, "2"]
    assert (names(store), store.version) == (["default/p"], 2)
    assert store.get("pods", "default", "p").decode()["spec"] == {}


def test_a_cursor_gives_each_change_once() -> None:
    store = Store()
    store.create("pods", obj("p"))
    cursor = store.watch("pods", store.version)
    store.update("pods", obj("p", replicas=1))
    store.delete("pods", "default", "p")
    store.create("nodes", obj("n", ""))
    seen = [(c.type, c.stored.version, c.old and c.old.version) for c in cursor.take(10)]
    assert seen == [(ChangeType.MODIFIED, 3, 2), (ChangeType.DELETED, 4, 3)]
    assert cursor.take(10) == []


def test_a_cursor_starts_after_the_version_it_is_given() -> None:
    store = Store()
    for name in ("a", "b", "c"):
        store.create("pods", obj(name))
    assert [c.stored.name for c in store.watch("pods", 2).take(10)] == ["b", "c"]
    assert [c.stored.name for c in store.watch("pods", 0).take(2)] == ["a", "b"]


def test_the_log_forgets_and_says_so() -> None:
    store = Store(log_capacity=2)
    cursor = store.watch("pods", 1)
    for name in "abcde":
        store.create("pods", obj(name))
    with pytest.raises(ExpiredError):
        cursor.take(10)
    with pytest.raises(ExpiredError):
        store.watch("pods", 2)
    assert [c.stored.name for c in store.watch("pods", 3).take(10)] == ["c", "d", "e"]


def test_a_version_that_is_yet_to_come_cannot_be_watched() -> None:
    with pytest.raises(ExpiredError, match="100 is yet to come"):
        Store().watch("pods", 100)


async def test_a_waiting_cursor_is_woken_by_a_write() -> None:
    store = Store()
    cursor = store.watch("pods", store.version)
    waiting = asyncio.ensure_future(cursor.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    store.create("pods", obj("p"))
    await waiting
    assert [c.stored.name for c in cursor.take(10)] == ["p"]


async def test_a_waiting_cursor_is_woken_when_its_time_has_come() -> None:
    store = Store()
    late, early, never = (store.watch("pods", store.version) for _ in range(3))
    waiting = {
        name: asyncio.ensure_future(wait)
        for name, wait in {
            "late": late.wait(until=20.0),
            "early": early.wait(until=10.0),
            "never": never.wait(),
        }.items()
    }
    done = []
    for now in (9.0, 10.0, 25.0):
        await asyncio.sleep(0)
        store.wake_due(now)
        store.wake_due(now)  # before those who are woken have had their turn
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        done.append([name for name, task in waiting.items() if task.done()])
    assert done == [[], ["early"], ["late", "early"]]
    store.wake()
    await waiting["never"]


async def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    store = Store()
    waiting = asyncio.ensure_future(store.watch("pods", store.version).wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    store.create("pods", obj("p"))


operations = st.lists(st.tuples(st.sampled_from("cud"), st.sampled_from("abc")), max_size=30)


@given(operations)
def test_old_states_can_be_listed(steps: list[tuple[str, str]]) -> None:
    store = Store(log_capacity=100)
    states: dict[int, dict[str, int]] = {store.version: {}}
    for count, (step, name) in enumerate(steps):
        try:
            match step:
                case "c":
                    store.create("pods", obj(name, count=count))
                case "u":
                    store.update("pods", obj(name, count=count))
                case _:
                    store.delete("pods", "default", name)
        except (AlreadyExistsError, NotFoundError):
            continue
        states[store.version] = {s.name: s.version for s in store.list("pods")}
        store.check_invariants()
    for version, state in states.items():
        found = store.listing("pods", version=version)
        assert [(s.name, s.version) for s in found.objects] == sorted(state.items())
        for start in "abcd":
            rest = store.listing("pods", "default", version=version, start=("default", start))
            assert [s.name for s in rest.objects] == sorted(name for name in state if name >= start)
            for most in range(4):
                page = store.listing(
                    "pods", "default", version=version, start=("default", start), most=most
                )
                assert (page.total, page.objects) == (len(rest.objects), rest.objects[:most])
