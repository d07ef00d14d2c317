"""How a reflector gets the initial state, and the state after a gap."""

from typing import Any

import pytest

from berth.kube.client.errors import ApiError, GoneError, InvalidError, UnavailableError
from tests.kube.informer.conftest import Start
from tests.kube.informer.scripted import (
    OPEN,
    ScriptedApi,
    added,
    bookmark,
    deleted,
    error,
    initial_end,
    modified,
    obj,
    page,
)

NO_STREAM = InvalidError(422, "Invalid", "sendInitialEvents is forbidden for watch")
EXPIRED = error(410, "Expired", "too old resource version: 5 (9)")


async def test_the_initial_state_is_streamed_by_the_watch_that_goes_on(start: Start) -> None:
    api = ScriptedApi(
        watches=[[added("a", 1), added("b", 2), initial_end(5), modified("a", 6), OPEN]]
    )
    rig = start(api)

    await rig.settle()

    assert rig.handler.calls == ["add a@1", "add b@2", "update a@1>6"]
    assert rig.reflector.synced.is_set()
    asked = dict(api.asked[0])
    assert 300 <= int(asked.pop("timeoutSeconds")) < 600
    assert asked == {
        "fieldSelector": "f",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }


async def test_nothing_is_told_before_the_initial_state_is_complete(start: Start) -> None:
    rig = start(ScriptedApi(watches=[[added("a", 1), bookmark(1), OPEN]]))

    await rig.settle()

    assert rig.handler.calls == []
    assert not rig.reflector.synced.is_set()


async def test_changes_within_the_initial_state_are_folded_into_it(start: Start) -> None:
    first = [added("a", 1), added("b", 2), modified("a", 3), deleted("b", 4), initial_end(4), OPEN]
    rig = start(ScriptedApi(watches=[first]))

    await rig.settle()

    assert rig.handler.calls == ["add a@3"]


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param([NO_STREAM], id="a server before 1.27 refuses the parameters as invalid"),
        pytest.param([ApiError(400, "BadRequest", "")], id="a proxy calls them a bad request"),
        pytest.param([added("a", 1)], id="a server ignores them and ends without the bookmark"),
    ],
)
async def test_a_server_that_does_not_stream_lists_is_listed_in_pages(
    start: Start, refusal: list[bytes | Exception]
) -> None:
    api = ScriptedApi(
        watches=[refusal, [modified("a", 9), OPEN]],
        lists=[
            page(obj("a", 1), obj("b", 2), version=7, more="next"),
            page(obj("c", 3), version=7),
        ],
    )
    rig = start(api)

    await rig.settle()

    assert rig.handler.calls == ["add a@1", "add b@2", "add c@3", "update a@1>9"]
    assert api.asked[1:3] == [
        {"fieldSelector": "f", "limit": "2"},
        {"fieldSelector": "f", "limit": "2", "continue": "next"},
    ]
    assert api.asked[3]["resourceVersion"] == "7"
    assert "sendInitialEvents" not in api.asked[3]


async def test_a_list_whose_continue_token_expired_starts_anew(start: Start) -> None:
    api = ScriptedApi(
        watches=[[NO_STREAM]],
        lists=[
            page(obj("a", 1), version=7, more="next"),
            GoneError(410, "Expired", "continue token"),
            page(obj("b", 2), version=9),
        ],
    )
    rig = start(api)
    await rig.settle()
    assert rig.handler.calls == []

    await rig.pass_time(2)

    assert rig.handler.calls == ["add b@2"]


async def test_an_expired_version_leads_to_a_list_and_the_handler_hears_the_difference(
    start: Start,
) -> None:
    api = ScriptedApi(
        watches=[
            [added("same", 1), added("changed", 2), added("gone", 3), initial_end(5), EXPIRED],
            [added("same", 1), added("changed", 8), added("new", 9), initial_end(9), OPEN],
        ]
    )
    rig = start(api)
    await rig.settle()
    assert rig.handler.taken() == ["add same@1", "add changed@2", "add gone@3"]

    await rig.pass_time(2)

    assert rig.handler.taken() == ["update changed@2>8", "add new@9", "delete gone@3"]
    assert rig.versions() == {"ns/same": "1", "ns/changed": "8", "ns/new": "9"}
    assert rig.reflector.lists == 2


async def test_an_object_recreated_in_a_gap_is_a_deletion_and_an_addition(start: Start) -> None:
    api = ScriptedApi(
        watches=[
            [added("a", 1, uid="first"), initial_end(1), EXPIRED],
            [added("a", 7, uid="second"), initial_end(7), OPEN],
        ]
    )
    rig = start(api)
    await rig.settle()

    await rig.pass_time(2)

    assert rig.handler.calls == ["add a@1", "delete a@1", "add a@7"]


async def test_a_restored_backup_is_believed_although_its_versions_are_older(start: Start) -> None:
    api = ScriptedApi(
        watches=[
            [added("a", 90), initial_end(90), UnavailableError("reset", sent=True)],
            [ApiError(504, "Timeout", "Too large resource version: 90, current: 20")],
            [added("a", 10), initial_end(20), OPEN],
        ]
    )
    rig = start(api)
    await rig.settle()

    for _ in range(3):
        await rig.pass_time(4)

    assert rig.handler.calls == ["add a@90", "update a@90>10"]


async def test_a_connection_lost_within_the_initial_state_streams_it_again(start: Start) -> None:
    api = ScriptedApi(
        watches=[
            [added("a", 1), UnavailableError("reset", sent=True)],
            [added("b", 2), initial_end(3), OPEN],
        ]
    )
    rig = start(api)
    await rig.settle()

    await rig.pass_time(2)

    assert rig.handler.calls == ["add b@2"]
    assert [asked.get("sendInitialEvents") for asked in api.asked] == ["true", "true"]


async def test_the_handler_can_tell_a_list_from_a_change(start: Start) -> None:
    """What comes from a list has no order."""
    api = ScriptedApi(
        watches=[
            [initial_end(5), added("first", 6), EXPIRED],
            [added("first", 6), added("missed", 7), initial_end(8), added("last", 9), OPEN],
        ]
    )
    rig = start(api)
    told: dict[str, bool] = {}

    def on_add(obj: dict[str, Any]) -> None:
        told[obj["metadata"]["name"]] = rig.reflector.is_replacing

    rig.handler.on_add = on_add  # type: ignore[method-assign] # one that looks at the reflector
    await rig.settle()
    await rig.pass_time(2)

    assert told == {"first": False, "missed": True, "last": False}


async def test_what_metrics_say_of_a_list_and_of_changes(start: Start) -> None:
    """1.37 spec N5.5: what is queued, how often something was processed, how far the store is."""
    api = ScriptedApi(
        watches=[[added("a", 1), added("b", 2), initial_end(5), added("c", 6), bookmark(9), OPEN]]
    )
    rig = start(api)
    queued: list[int] = []

    def on_add(obj: dict[str, Any]) -> None:
        queued.append(rig.reflector.queued)

    rig.handler.on_add = on_add  # type: ignore[method-assign] # one that looks at the reflector
    assert rig.reflector.version == ""
    await rig.settle()

    assert queued == [2, 1, 0]
    assert sum(rig.reflector.processing.counts) == 3
    assert rig.reflector.version == "9"
