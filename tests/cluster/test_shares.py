"""Large requests and long answers leave the loop to others."""

import asyncio
import re
from collections.abc import Iterator
from typing import TypeVar

import msgspec
import pytest

from berth.cluster.access.users import ADMIN, KUBELETS, SCHEDULER, User, service_account
from berth.cluster.fair_queue import MOST_WAITING, QueueFullError
from berth.cluster.http.chunks import CHUNK_BYTES, CHUNK_SECONDS, chunks, taking_turns
from berth.cluster.http.requests import BODY_LIMIT
from berth.cluster.shares import BURST, REMEMBERED, Shares, Step
from berth.cluster.storage.log import ExpiredError
from berth.cluster.storage.store import FullError, Store, TooLargeError
from berth.runtime.clock import FakeClock
from tests.cluster.serving import NOW, Serving, pod
from tests.loop_turns import watched_loop

T = TypeVar("T")

PODS = "/api/v1/namespaces/default/pods"
EVE, ALICE = User("eve"), User("alice")


async def served_in_order(
    shares: Shares, clock: FakeClock, asked: list[User], *, seconds: float = 2.0
) -> list[tuple[str, float]]:
    """Return who was served, and when, of those who ask at once for steps of so many seconds."""
    served = []

    async def ask(user: User) -> None:
        await shares.turn(user)
        served.append((user.name, clock.now()))
        shares.took(user, seconds)

    asking = [asyncio.create_task(ask(user)) for user in asked]
    while not all(task.done() for task in asking):
        for _ in range(10):
            await asyncio.sleep(0)
        clock.advance(1.0)
    return served


async def test_who_took_long_waits_as_long() -> None:
    clock = FakeClock()
    shares = Shares(clock)
    shares.took(EVE, 2.0)
    await shares.turn(ALICE)
    start = clock.now()
    served = await served_in_order(shares, clock, [EVE] * 3)
    assert served == [("eve", start + 2), ("eve", start + 4), ("eve", start + 6)]


async def test_many_short_steps_are_as_good_as_a_long_one() -> None:
    clock = FakeClock()
    shares = Shares(clock)
    for _ in range(100):
        shares.took(EVE, 0.01)
    (_, time), *_ = await served_in_order(shares, clock, [EVE])
    assert time > FakeClock().now()
    clock.advance(10)
    await asyncio.wait_for(shares.turn(EVE), 60)  # it is forgotten


async def test_service_accounts_of_a_namespace_share_and_namespaces_take_turns() -> None:
    clock = FakeClock()
    shares = Shares(clock)
    greedy = [service_account("greedy", f"a{number}") for number in range(30)]
    modest = service_account("modest", "a")
    for user in (greedy[0], modest):
        shares.took(user, 60.0)
    await asyncio.wait_for(shares.turn(ALICE), 60)
    served = await served_in_order(shares, clock, [*greedy, modest, modest])
    names = [name for name, _ in served]
    assert names[:4] == [greedy[0].name, modest.name, greedy[1].name, modest.name]
    assert names[4:] == [user.name for user in greedy[2:]]


async def test_in_a_namespace_users_take_turns() -> None:
    clock = FakeClock()
    shares = Shares(clock)
    first, second = service_account("n", "first"), service_account("n", "second")
    shares.took(first, 60.0)
    served = await served_in_order(shares, clock, [first, first, first, second])
    assert [name for name, _ in served] == [first.name, second.name, first.name, first.name]


async def test_only_so_many_of_a_flow_wait() -> None:
    shares = Shares(FakeClock())
    shares.took(EVE, 60.0)
    # One of them has left the queue, and is next.
    waiting = [asyncio.create_task(shares.turn(EVE)) for _ in range(MOST_WAITING + 1)]
    for _ in range(4):
        await asyncio.sleep(0)
        waiting.append(asyncio.create_task(shares.turn(EVE)))
    await asyncio.sleep(0)
    refused = [task for task in waiting if task.done()]
    assert len(waiting) - len(refused) == MOST_WAITING + 1
    assert all(isinstance(task.exception(), QueueFullError) for task in refused)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_who_gives_up_does_not_keep_others() -> None:
    clock = FakeClock()
    shares = Shares(clock)
    shares.took(EVE, 2.0)
    gone = asyncio.create_task(shares.turn(EVE))
    await asyncio.sleep(0)
    gone.cancel()
    assert len(await served_in_order(shares, clock, [EVE])) == 1


async def test_waiting_for_others_does_not_count() -> None:
    clock = FakeClock()
    taken: list[float] = []

    async def work() -> str:
        clock.advance(1.0)
        await clock.sleep(60.0)
        clock.advance(0.5)
        return "done"

    task = asyncio.ensure_future(_result_of(Step(work(), clock, taken.append)))
    await asyncio.sleep(0)
    assert taken == [1.0]  # told at once, not only at its end
    clock.advance(60.0)
    assert (await task, taken) == ("done", [1.0, 0.5])


async def test_who_waits_can_be_cancelled() -> None:
    ended = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    step = Step(work(), FakeClock(), lambda _: None)
    task = asyncio.ensure_future(_result_of(step))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]


async def _result_of(step: Step[T]) -> T:
    return await step


@pytest.mark.parametrize(
    ("user", "seconds"),
    [(ADMIN, 60.0), (SCHEDULER, 60.0), (KUBELETS, 60.0), (EVE, BURST / 2)],
    ids=["master", "scheduler", "kubelet", "quick"],
)
async def test_who_never_waits(user: User, seconds: float) -> None:
    shares = Shares(FakeClock())
    shares.took(user, seconds)
    await asyncio.wait_for(shares.turn(user), 60)


async def test_use_that_is_over_is_forgotten() -> None:
    clock = FakeClock()
    shares = Shares(clock)
    for number in range(3 * REMEMBERED):
        shares.took(User(str(number)), 1.0)
        clock.advance(1.0)
    assert len(shares._used) <= REMEMBERED


@pytest.mark.parametrize("size", [1, 100, CHUNK_BYTES // 3, 2 * CHUNK_BYTES])
def test_chunks(size: int) -> None:
    pieces = [bytes([number % 256]) * size for number in range(12 if size > 100 else 1_200)]
    found = list(chunks(iter(pieces), FakeClock()))
    assert b"".join(found) == b"".join(pieces)
    assert max(map(len, found)) < CHUNK_BYTES + size
    assert len(found) <= 1 + len(pieces) * size // CHUNK_BYTES


async def test_a_chunk_is_cut_when_it_takes_long_to_make() -> None:
    clock = FakeClock()

    def slow() -> Iterator[bytes]:
        for piece in (b"a", b"b", b"", b"", b"c"):
            clock.advance(CHUNK_SECONDS / 2)
            yield piece

    made = chunks(slow(), clock)
    assert [chunk async for chunk in taking_turns(made)] == [b"ab", b"c"]


class Ticking(FakeClock):
    """Goes on whenever it is read."""

    def monotonic(self) -> float:
        self.advance(CHUNK_SECONDS / 10)
        return super().monotonic()


@pytest.mark.parametrize(
    "accept",
    [
        "application/json",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "application/vnd.kubernetes.protobuf",
    ],
)
async def test_a_long_list_is_served_in_turns(accept: str) -> None:
    serving = Serving(clock=Ticking(NOW))
    names = [f"p{number:04}" for number in range(100)]
    await serving.pods(*names)
    async with watched_loop() as one:
        await serving.http.get(f"{PODS}?limit=1", headers={"accept": accept})
    async with watched_loop() as turns:
        answered = await serving.http.get(PODS, headers={"accept": accept})
    assert answered.status_code == 200
    shown = re.findall(rb"[^a-z](p[0-9]{4})", answered.content)
    assert [*dict.fromkeys(shown)] == [name.encode() for name in names]
    assert turns.count >= one.count + 3


async def test_a_collection_is_deleted_in_turns() -> None:
    serving = Serving()
    await serving.pods(*(f"p{number}" for number in range(350)))
    async with watched_loop() as turns:
        code, answer = await serving.request("DELETE", PODS)
    assert (code, len(answer["items"]), turns.count >= 4) == (200, 350, True)
    assert (await serving.get(PODS))["items"] == []


def config_map(name: str, size: int) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"x": "x" * size}}


def test_the_log_is_bounded_by_what_it_holds() -> None:
    store = Store(log_bytes=100_000)
    store.create("configmaps", config_map("a", 10))
    for _ in range(100):
        store.update("configmaps", config_map("a", 10_000))
    log = store._collections["configmaps"].log
    assert sum(len(change.stored.body) for change in log._changes) <= 110_000
    assert log.end == 101
    store.check_invariants()


def test_all_logs_are_bounded_together() -> None:
    store = Store(log_bytes=100_000, logs_bytes=150_000)
    kinds = [f"kind-{number}" for number in range(10)]
    for kind in kinds:
        store.create(kind, config_map("a", 10))
    for number in range(200):
        store.update(kinds[number % 10], config_map("a", 5_000))
        assert store._logs_size <= 150_000 + 5_100
        store.check_invariants()
    for kind in kinds:
        assert store.watch(kind, store.version).is_at_end
        with pytest.raises(ExpiredError):
            store.watch(kind, 1)


def test_the_store_fills() -> None:
    store = Store(limit=100_000)
    store.create("configmaps", config_map("a", 90_000))
    with pytest.raises(FullError):
        store.create("configmaps", config_map("b", 20_000))
    store.update("configmaps", config_map("a", 105_000))  # a reserve is kept for changes
    with pytest.raises(FullError):
        store.update("configmaps", config_map("a", 120_000))
    store.update("configmaps", config_map("a", 50_000))
    store.create("configmaps", config_map("b", 20_000))
    store.delete("configmaps", "default", "a")
    with pytest.raises(TooLargeError):
        Store().create("configmaps", config_map("c", BODY_LIMIT))
    store.check_invariants()


async def test_an_object_that_grows_beyond_what_anybody_can_send() -> None:
    serving = Serving()
    await serving.post(PODS, pod("p") | {"spec": {**pod("p")["spec"], "hostname": "x" * 2_000_000}})
    patch = msgspec.json.encode({"spec": {"subdomain": "x" * 2_000_000}})
    kind = {"content_type": "application/merge-patch+json"}
    code, answer = await serving.request("PATCH", f"{PODS}/p", patch, **kind)
    assert (code, answer["reason"]) == (413, "RequestEntityTooLarge")


async def test_selectors_leave_no_more_than_the_fields_there_are() -> None:
    serving = Serving()
    await serving.pods("p")
    fields = ["spec.nodeName!=x", "metadata.name!=x", "metadata.namespace!=x"]
    for order in (fields, fields[::-1], fields[1:], fields * 3):
        await serving.get(f"{PODS}?fieldSelector={','.join(order)}")
    (stored,) = serving.store.list("pods")
    assert stored.fields == ("v1", {"spec.nodeName": ""})
