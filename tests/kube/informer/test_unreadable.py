"""What a reflector does with objects that do not decode."""

from typing import Final

import pytest

from berth.kube.client.errors import ApiError
from berth.kube.informer.reflector import Unreadable
from tests.kube.informer.conftest import Start, decode
from tests.kube.informer.scripted import (
    OPEN,
    Object,
    ScriptedApi,
    added,
    deleted,
    encode,
    error,
    initial_end,
    modified,
    obj,
)


def without_bad(raw: bytes, last: Object | None) -> tuple[Object, list[str]]:
    """Read what is not bad, with what was known before; nothing at all of what is worse."""
    read = decode(raw)
    if read.get("bad") == "all":
        raise ValueError("all of it")
    bad = read.pop("bad")
    return {**(last or {}), **read}, ["bad"] * bool(bad)


async def test_what_can_be_read_of_an_object_counts_until_all_can(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    api = ScriptedApi(
        watches=[
            [
                added("a", 1, known=1),
                added("b", 2, bad="x"),
                initial_end(5),
                modified("a", 6, bad="y"),
                modified("a", 7, bad="y"),
                modified("b", 8),
            ],
            [modified("a", 9), OPEN],
        ]
    )
    rig = start(api, decode_partly=without_bad)

    await rig.settle()

    assert rig.handler.calls == [
        *("add a@1", "add b@2"),
        *("update a@1>6", "update a@6>7", "update b@2>8", "update a@7>9"),
    ]
    assert rig.reflector.malformed == 3
    assert rig.reflector.unreadable == {}
    assert rig.malformed == []
    told = [vars(record)["object"] for record in caplog.records if "parts" in record.message]
    assert told == ["ns/b", "ns/a"], "once each, though one changes"


async def test_unreadable_objects_are_known_while_they_are_there(start: Start) -> None:
    first = [added("a", 1, bad="x"), added("b", 2, bad="all"), added("c", 3, bad="x")]
    rig = start(
        ScriptedApi(
            watches=[
                [*first, initial_end(5), deleted("c", 6, bad="x"), error(410)],
                [added("b", 2, bad="all"), initial_end(8), deleted("b", 9, bad="all"), OPEN],
            ]
        ),
        decode_partly=without_bad,
    )

    await rig.settle()

    assert rig.reflector.unreadable == {
        "ns/a": Unreadable(("bad",), counts=True),
        "ns/b": Unreadable(("all of it",), counts=False),
    }
    assert rig.versions() == {"ns/a": "1"}

    await rig.pass_time(2)

    assert rig.reflector.unreadable == {}
    assert rig.versions() == {}


async def test_nothing_is_left_out_of_what_can_be_read_after_all(start: Start) -> None:
    rig = start(
        ScriptedApi(watches=[[added("a", 1, bad=""), initial_end(5), OPEN]]),
        decode_partly=without_bad,
    )

    await rig.settle()

    assert rig.versions() == {"ns/a": "1"}
    assert (rig.reflector.malformed, rig.reflector.unreadable) == (0, {})


DEEP: Final = b'{"metadata":{"namespace":"ns","name":"d","uid":"d","resourceVersion":"%d"},"x":%s}'
NESTED: Final = b"[" * 100_000 + b"]" * 100_000
"""Too deep for the decoder on every Python: 3.11 stops at 1,000 levels, 3.14 as its stack ends."""


async def test_an_object_nested_too_deeply_does_not_stop_the_watch(start: Start) -> None:
    deep = b'{"type":"MODIFIED","object":%s}' % (DEEP % (6, NESTED))
    rig = start(
        ScriptedApi(watches=[[added("d", 1), initial_end(5), deep, modified("a", 7), OPEN]])
    )

    await rig.settle()

    assert rig.handler.calls == ["add d@1", "add a@7"]
    assert [said.partition(":")[0] for said in rig.malformed] == ["ns/d"]


async def test_an_object_nested_too_deeply_does_not_spoil_a_list(start: Start) -> None:
    items = b",".join([encode(obj("a", 1)), DEEP % (2, NESTED), encode(obj("c", 3))])
    listed = b'{"metadata":{"resourceVersion":"5"},"items":[%s]}' % items
    rig = start(ScriptedApi(watches=[[ApiError(400, "BadRequest", "")], [OPEN]], lists=[listed]))

    await rig.settle()

    assert rig.versions() == {"ns/a": "1", "ns/c": "3"}
    assert [said.partition(":")[0] for said in rig.malformed] == ["ns/d"]


async def test_a_watch_that_makes_no_sense_is_opened_again(start: Start) -> None:
    rig = start(ScriptedApi(watches=[[initial_end(5), NESTED], [b"{"], [added("a", 6), OPEN]]))

    await rig.settle()
    for _ in range(2):
        await rig.pass_time(4)

    assert rig.handler.calls == ["add a@6"]
