"""Events that may wait: of each object the last one is told, in time, or when somebody looks."""

import asyncio
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.client.errors import GoneError, UnavailableError
from berth.kube.informer.identity import identity_of
from berth.kube.informer.reflector import DUE_SECONDS, MOST_PUT_OFF, Reflector, Told
from berth.kube.informer.watch_event import WatchEvent, decode_watch_event
from berth.runtime.clock import FakeClock
from tests.kube.informer.conftest import Rig, Start, decode
from tests.kube.informer.scripted import (
    OPEN,
    Object,
    Recorder,
    ScriptedApi,
    Step,
    added,
    deleted,
    initial_end,
    modified,
)


def may_wait(event: WatchEvent[Any]) -> tuple[str, str, float] | None:
    """Let a change of an object wait for as long as its field ``waits`` says."""
    obj = decode(event.object)
    seconds = 0 if event.type not in ("ADDED", "MODIFIED") else obj.get("waits", 0)
    if not seconds:
        return None
    key, version, _ = identity_of(obj)
    return key, version, seconds


async def rig_after(start: Start, *events: bytes) -> Rig:
    rig = start(ScriptedApi(watches=[[initial_end(1), *events, OPEN]]), may_wait=may_wait)
    await rig.settle()
    return rig


@pytest.mark.parametrize(
    ("events", "at_once", "later"),
    [
        pytest.param(
            [added("a", 2, waits=1), modified("a", 3, waits=1), added("b", 4, waits=1)],
            [],
            ["add a@3", "add b@4"],
            id="of each object, the last version",
        ),
        pytest.param(
            [added("a", 2, waits=1), added("b", 3)],
            ["add b@3"],
            ["add a@2"],
            id="others are told at once",
        ),
        pytest.param(
            [added("a", 2, waits=1), modified("a", 3)],
            ["add a@2", "update a@2>3"],
            [],
            id="a change that may not wait comes after those that did",
        ),
        pytest.param(
            [added("a", 2, waits=1), deleted("a", 3, waits=1)],
            ["add a@2", "delete a@3"],
            [],
            id="a deletion does not wait",
        ),
        pytest.param(
            [added("a", 2), modified("a", 3, waits=1), modified("a", 4, waits=1)],
            ["add a@2"],
            ["update a@2>4"],
            id="a change of what is known",
        ),
        pytest.param(
            [added("a", 2), added("a", 3, uid="a2", waits=1)],
            ["add a@2"],
            ["delete a@2", "add a@3"],
            id="a successor of the same name",
        ),
        pytest.param(
            [added("b", 5), added("a", 4, waits=1)],
            ["add b@5", "add a@4"],
            [],
            id="what comes out of order does not wait",
        ),
        pytest.param(
            [added("a", 2, waits=1, bad="x"), added("b", 3, waits=1)],
            [],
            ["add b@3"],
            id="what cannot be read is passed over",
        ),
    ],
)
async def test_what_may_wait_is_told_when_it_is_due(
    start: Start, events: list[bytes], at_once: list[str], later: list[str]
) -> None:
    rig = await rig_after(start, *events)
    assert rig.handler.calls == at_once
    await rig.pass_time(DUE_SECONDS)
    assert rig.handler.calls == at_once
    await rig.pass_time(DUE_SECONDS)
    assert rig.handler.calls == [*at_once, *later]


@pytest.mark.parametrize(("first", "second"), [(1, 9), (9, 1)])
async def test_a_change_waits_no_longer_than_an_earlier_one(
    start: Start, first: int, second: int
) -> None:
    events = [added("a", 2, waits=first), modified("a", 3, waits=second), added("b", 4, waits=2)]
    rig = await rig_after(start, *events)
    for _ in range(2):
        await rig.pass_time(DUE_SECONDS)
    assert rig.handler.calls == ["add a@3"]


async def test_who_looks_at_the_store_sees_what_was_put_off(start: Start) -> None:
    rig = await rig_after(start, added("a", 2, waits=1))
    assert [*Told(rig.reflector)] == ["ns/a"]
    assert rig.handler.calls == ["add a@2"]


async def test_of_too_many_the_first_do_not_wait(start: Start) -> None:
    events = [added(f"p{n}", n + 2, waits=1) for n in range(MOST_PUT_OFF + 1)]
    rig = await rig_after(start, *events)
    assert rig.handler.calls[:2] == ["add p0@2", "add p1@3"]
    assert 0 < len(rig.handler.calls) < 1000
    rig.reflector.catch_up()
    assert len(rig.handler.calls) == len(events)


async def test_the_next_watch_goes_on_after_what_was_put_off(start: Start) -> None:
    broken = UnavailableError("gone", sent=True)
    first: list[Step] = [initial_end(1), added("a", 2, waits=1), broken]
    rig = start(ScriptedApi(watches=[first, [OPEN]]), may_wait=may_wait)
    await rig.settle()
    await rig.pass_time(10)
    assert rig.api.asked[1]["resourceVersion"] == "2"
    assert rig.handler.calls == ["add a@2"]


async def test_a_list_comes_after_what_was_put_off(start: Start) -> None:
    ended = asyncio.Event()
    expired = GoneError(410, "Expired", "too old")
    first: list[Step] = [initial_end(1), ended, added("a", 2, waits=1), expired]
    second: list[Step] = [added("b", 5), initial_end(5), OPEN]
    rig = start(ScriptedApi(watches=[[initial_end(1)], first, second]), may_wait=may_wait)
    await rig.settle()
    await rig.pass_time(10)
    ended.set()
    await rig.settle()
    assert rig.handler.calls == ["add a@2", "add b@5", "delete a@2"]


changes = st.lists(
    st.tuples(
        st.sampled_from(["ADDED", "MODIFIED", "DELETED", "look", "tell"]),
        st.sampled_from("abc"),
        st.booleans(),
        st.sampled_from(["u1", "u2"]),
    ),
    max_size=30,
)


@given(changes)
def test_whatever_waits_the_store_ends_the_same(changes: list[tuple[str, str, bool, str]]) -> None:
    def reflector(*, waits: bool) -> tuple[Reflector[Object], Recorder]:
        handler = Recorder()
        made: Reflector[Object] = Reflector(
            ScriptedApi(watches=[]),
            "/things",
            decode=decode,
            handler=handler,
            clock=FakeClock(),
            rng=random.Random(1),
            on_malformed=lambda _key, _raw, exc: pytest.fail(str(exc)),
            may_wait=may_wait if waits else None,
        )
        return made, handler

    (one, told), (other, _) = reflector(waits=True), reflector(waits=False)
    one._version = other._version = "0"
    for version, (kind, name, waits, uid) in enumerate(changes, 1):
        if kind == "look":
            assert one.store == other.store
        elif kind == "tell":
            one.catch_up()
        else:
            metadata = {"name": name, "resourceVersion": f"{version}", "uid": uid}
            obj = {"metadata": metadata, "waits": int(waits)}
            line = msgspec.json.encode({"type": kind, "object": obj})
            for each in (one, other):
                event = decode_watch_event(line)
                if not each._puts_off(event):
                    each._apply(event)
    assert one.store == other.store
    known = set[str]()
    for call in told.calls:
        verb, what = call.split()
        name = what.partition("@")[0]
        assert (name in known) is (verb != "add"), call
        (known.discard if verb == "delete" else known.add)(name)
