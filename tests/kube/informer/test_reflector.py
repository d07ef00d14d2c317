"""How a reflector follows what happens: reconnecting, bad objects, repeated events."""

import asyncio
import logging
from typing import Any

import pytest

from berth.kube.client.contact import QUIET
from berth.kube.client.errors import (
    ForbiddenError,
    GoneError,
    ServerError,
    TooManyRequestsError,
    UnavailableError,
)
from berth.kube.informer.reflector import BATCH, FIRST_PAUSE, REMEMBERED_DELETIONS, RESET_AFTER
from berth.runtime.tasks import TURN_SECONDS
from tests.kube.informer.conftest import Start
from tests.kube.informer.scripted import (
    OPEN,
    ScriptedApi,
    Step,
    added,
    bookmark,
    deleted,
    error,
    initial_end,
    line,
    modified,
    obj,
)


async def test_a_watch_that_ends_is_followed_by_one_from_the_last_version(start: Start) -> None:
    api = ScriptedApi(
        watches=[
            [added("a", 1), initial_end(5), modified("a", 6)],
            [deleted("a", 7), bookmark(20)],
            [OPEN],
        ]
    )
    rig = start(api)

    await rig.settle()

    assert rig.handler.calls == ["add a@1", "update a@1>6", "delete a@7"]
    assert [asked.get("resourceVersion") for asked in api.asked] == [None, "6", "20"]


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(UnavailableError("reset", sent=True), id="connection reset"),
        pytest.param(ServerError(503, "ServiceUnavailable", "later"), id="server starting"),
        pytest.param(TooManyRequestsError(429, "TooManyRequests", "busy"), id="server busy"),
        pytest.param(ForbiddenError(403, "Forbidden", "no"), id="rights taken away for a while"),
        pytest.param(error(500, "InternalError", "oops"), id="an ERROR event"),
        pytest.param(b"<html>", id="something that is not JSON"),
        pytest.param(b'{"type":"ADDED"}', id="an event without an object"),
    ],
)
async def test_after_a_failure_the_watch_goes_on_from_the_last_version(
    start: Start, failure: Step
) -> None:
    api = ScriptedApi(
        watches=[[added("a", 1), initial_end(5), bookmark(6), failure], [modified("a", 7), OPEN]]
    )
    rig = start(api)
    await rig.settle()
    assert len(api.asked) == 1

    await rig.pass_time(2)

    assert rig.handler.calls == ["add a@1", "update a@1>7"]
    assert api.asked[1]["resourceVersion"] == "6"


async def test_pauses_between_failures_double_up_to_half_a_minute_and_restart(
    start: Start,
) -> None:
    refused, quiet = UnavailableError("refused", sent=False), asyncio.Event()
    api = ScriptedApi(
        watches=[
            [added("a", 1), initial_end(5)],
            *[[refused]] * 9,
            [modified("a", 6), refused],
            [refused],
            [quiet, refused],
        ]
    )
    rig = start(api)
    await rig.settle()
    pauses = []
    for _ in range(11):
        before, seconds = len(api.asked), 0.0
        while len(api.asked) == before:
            await rig.pass_time(0.25)
            seconds += 0.25
        pauses.append(seconds)

    for number, seconds in enumerate(pauses):
        shortest = min(FIRST_PAUSE * 2**number, 30)
        assert shortest <= seconds <= 2 * shortest + 0.25, "an event in between changes nothing"
    before = len(api.asked)
    await rig.pass_time(RESET_AFTER)
    quiet.set()
    await rig.settle()
    await rig.pass_time(2 * FIRST_PAUSE)
    assert len(api.asked) == before + 1, "after a quiet time a failure is a first one"


async def test_a_server_that_ends_watches_at_once_is_not_hammered(start: Start) -> None:
    api = ScriptedApi(watches=[[initial_end(5)], *[[]] * 50])
    rig = start(api)

    for _ in range(30):
        await rig.pass_time(0.1)

    assert 2 <= len(api.asked) <= 4


async def test_a_quiet_watch_that_ends_in_its_time_is_renewed_at_once(start: Start) -> None:
    ended = asyncio.Event()
    api = ScriptedApi(watches=[[initial_end(5)], [ended], [OPEN]])
    rig = start(api)
    await rig.settle()
    rig.clock.advance(400)
    assert len(api.asked) == 2

    ended.set()
    await rig.settle()

    assert [asked.get("resourceVersion") for asked in api.asked] == [None, "5", "5"]


async def test_repeated_and_outrun_events_change_nothing(start: Start) -> None:
    again = [
        added("a", 6),
        modified("a", 4),
        deleted("b", 7),
        deleted("b", 7),
        added("c", 8),
        modified("c", 8),
    ]
    rig = start(ScriptedApi(watches=[[added("a", 6), added("b", 2), initial_end(6), *again, OPEN]]))

    await rig.settle()

    assert rig.handler.calls == ["add a@6", "add b@2", "delete b@7", "add c@8"]


# The initial state has a@2 and b@2, and is of version 5.
@pytest.mark.parametrize(
    ("events", "calls", "lists_again"),
    [
        pytest.param(
            [modified("a", 9), modified("b", 8)],
            ["update a@2>9", "update b@2>8"],
            True,
            id="changes of two objects, the wrong way round",
        ),
        pytest.param(
            [modified("a", 9), modified("a", 8)],
            ["update a@2>9"],
            False,
            id="changes of one object: the later one counts",
        ),
        pytest.param(
            [modified("a", 9), deleted("b", 8)],
            ["update a@2>9", "delete b@8"],
            True,
            id="a late deletion",
        ),
        pytest.param(
            [modified("a", 9), added("c", 8)],
            ["update a@2>9", "add c@8"],
            True,
            id="a late addition",
        ),
        pytest.param(
            [deleted("b", 9), modified("b", 8)],
            ["delete b@9"],
            False,
            id="what is gone does not come back",
        ),
        pytest.param(
            [deleted("c", 9), added("c", 8)],
            [],
            False,
            id="nor does what was never there",
        ),
        pytest.param(
            [modified("a", 9), added("c", 4), deleted("b", 1)],
            ["update a@2>9"],
            False,
            id="what the list has already",
        ),
        pytest.param(
            [bookmark(9), modified("a", 8)],
            ["update a@2>8"],
            True,
            id="a change that a bookmark has overtaken",
        ),
        pytest.param(
            [modified("a", 9), deleted("b", 7), added("b", 8, uid="b2")],
            ["update a@2>9", "delete b@7", "add b@8"],
            True,
            id="a late deletion and a late successor",
        ),
        pytest.param(
            [modified("a", 9), added("b", 8, uid="b2"), deleted("b", 7)],
            ["update a@2>9", "delete b@2", "add b@8"],
            True,
            id="a late successor before the deletion",
        ),
    ],
)
async def test_a_watch_out_of_order_loses_nothing(
    start: Start, events: list[bytes], calls: list[str], *, lists_again: bool
) -> None:
    """What comes late counts by its version at once; when the watch ends, all is listed."""
    ended = asyncio.Event()
    initial = [added("a", 2), added("b", 2), initial_end(5)]
    rig = start(ScriptedApi(watches=[[*initial, *events, ended], [OPEN]]))
    await rig.settle()
    assert rig.handler.calls == ["add a@2", "add b@2", *calls]

    rig.clock.advance(400)
    ended.set()
    await rig.settle()
    assert ("resourceVersion" not in rig.api.asked[1]) is lists_again


async def test_a_server_that_always_mixes_up_the_order_is_not_hammered(start: Start) -> None:
    refused = UnavailableError("refused", sent=None)
    mixed: list[Step] = [added("a", 2), initial_end(5), added("c", 9), modified("a", 8), refused]
    rig = start(ScriptedApi(watches=[mixed] * 50))
    for _ in range(30):
        await rig.pass_time(0.1)

    assert 2 <= len(rig.api.asked) <= 4


async def test_many_deletions_later_an_event_that_may_be_old_brings_nothing_back(
    start: Start,
) -> None:
    names = [f"o{number}" for number in range(REMEMBERED_DELETIONS + 1)]
    initial = [*(added(name, 1) for name in names), initial_end(1)]
    gone = [deleted(name, number) for number, name in enumerate(names, 10)]
    rig = start(ScriptedApi(watches=[[*initial, *gone, modified("o0", 9), OPEN]]))
    await rig.settle()

    assert rig.reflector.store == {}


async def test_a_change_of_something_unheard_of_is_an_addition(start: Start) -> None:
    rig = start(ScriptedApi(watches=[[initial_end(5), modified("a", 6), OPEN]]))

    await rig.settle()

    assert rig.handler.calls == ["add a@6"]


async def test_an_object_recreated_is_a_deletion_and_an_addition(start: Start) -> None:
    rig = start(
        ScriptedApi(watches=[[added("a", 1), initial_end(5), added("a", 6, uid="u"), OPEN]])
    )

    await rig.settle()

    assert rig.handler.calls == ["add a@1", "delete a@1", "add a@6"]


async def test_an_object_that_does_not_decode_is_reported_and_its_known_state_stays(
    start: Start,
) -> None:
    first = [added("a", 1), added("never", 2, bad="x"), initial_end(5), modified("a", 6, bad="y")]
    api = ScriptedApi(watches=[first, [modified("a", 7), deleted("a", 8, bad="z"), OPEN]])
    rig = start(api)

    await rig.settle()

    assert rig.malformed == ["ns/never: bad: x", "ns/a: bad: y", "ns/a: bad: z"]
    assert rig.handler.calls == ["add a@1", "update a@1>7", "delete a@7"]
    assert api.asked[1]["resourceVersion"] == "6", "the version moves on"
    assert rig.reflector.malformed == 3


async def test_an_object_that_does_not_decode_in_a_list_is_not_taken_for_deleted(
    start: Start,
) -> None:
    api = ScriptedApi(
        watches=[
            [added("a", 1), initial_end(5), error(410)],
            [added("a", 6, bad="x"), initial_end(7), OPEN],
        ]
    )
    rig = start(api)
    await rig.settle()

    await rig.pass_time(2)

    assert rig.handler.calls == ["add a@1"]
    assert rig.versions() == {"ns/a": "1"}


@pytest.mark.parametrize(
    "nonsense",
    [
        pytest.param([], id="a list"),
        pytest.param("text", id="a string"),
        pytest.param({}, id="no metadata"),
        pytest.param({"metadata": None}, id="null metadata"),
        pytest.param({"metadata": {"name": 7, "resourceVersion": "6"}}, id="a number for a name"),
        pytest.param({"metadata": {"namespace": "ns"}}, id="no name"),
        pytest.param(obj("a", 6, bad=True) | {"x": "\ud7ff"}, id="malformed with odd characters"),
    ],
)
async def test_no_object_is_odd_enough_to_stop_the_watch(start: Start, nonsense: Any) -> None:
    events = [
        initial_end(5),
        line("ADDED", nonsense),
        line("DELETED", nonsense),
        added("b", 7),
        OPEN,
    ]
    rig = start(ScriptedApi(watches=[events]))

    await rig.settle()

    assert [call for call in rig.handler.calls if call.startswith("add b")] == ["add b@7"]


async def test_a_handler_that_raises_is_logged_and_told_of_the_next_event(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    rig = start(ScriptedApi(watches=[[initial_end(5), added("a", 6), added("b", 7), OPEN]]))

    def on_add(obj: dict[str, Any]) -> None:
        told.append(obj["metadata"]["name"])
        raise RuntimeError("no")

    told: list[str] = []
    rig.handler.on_add = on_add  # type: ignore[method-assign] # a handler gone wrong
    with caplog.at_level(logging.ERROR):
        await rig.settle()

    assert told == ["a", "b"]
    assert rig.versions() == {"ns/a": "6", "ns/b": "7"}
    assert rig.reflector.handler_failures == 2
    assert [record.message for record in caplog.records] == ["event handler failed"] * 2


async def test_others_get_their_turn_after_a_batch_of_events(start: Start) -> None:
    events = [added(f"n{i}", i + 10) for i in range(3 * BATCH)]
    rig = start(ScriptedApi(watches=[[initial_end(5), *events, OPEN]]))
    heard = []
    while len(rig.handler.calls) < len(events):
        await asyncio.sleep(0)
        heard.append(len(rig.handler.calls))

    # the bookmark that ends the initial state is the first event of the first batch
    assert heard == [BATCH - 1, 2 * BATCH - 1, 3 * BATCH - 1, 3 * BATCH]


async def test_others_get_their_turn_when_an_event_takes_long(start: Start) -> None:
    rig = start(
        ScriptedApi(watches=[[initial_end(5), *(added(f"n{i}", i + 10) for i in range(9)), OPEN]])
    )

    def on_add(obj: dict[str, Any]) -> None:
        told.append(obj["metadata"]["name"])
        rig.clock.advance(0.4 * TURN_SECONDS)

    told: list[str] = []
    rig.handler.on_add = on_add  # type: ignore[method-assign] # one that takes time
    heard = []
    while len(told) < 9:
        await asyncio.sleep(0)
        heard.append(len(told))

    assert heard == [3, 6, 9]


# After an outage.


async def test_the_pause_ends_when_the_server_answers_anybody(start: Start) -> None:
    refused = UnavailableError("refused", sent=False)
    api = ScriptedApi(watches=[[initial_end(5)], *[[refused]] * 8, [modified("a", 6), OPEN]])
    rig = start(api)
    rig.contact.heard()
    for _ in range(500):
        await rig.pass_time(0.5)
        if len(api.asked) == 9:
            break
    rig.contact.missed()
    assert len(api.asked) == 9, "and the next pause is of 30 s or more"

    rig.contact.heard()  # the lease was renewed
    await rig.settle()
    await rig.pass_time(FIRST_PAUSE)

    assert rig.handler.calls == ["add a@6"]


async def test_a_server_that_asks_for_patience_gets_it_whoever_else_is_answered(
    start: Start,
) -> None:
    busy = TooManyRequestsError(429, "TooManyRequests", "busy")
    busy.retry_after = 20.0
    rig = start(ScriptedApi(watches=[[initial_end(5)], [busy], [OPEN]]))
    await rig.settle()
    await rig.pass_time(2)
    rig.contact.missed()
    rig.clock.advance(QUIET)
    rig.contact.heard()
    await rig.settle()
    await rig.pass_time(2)
    assert len(rig.api.asked) == 2

    await rig.pass_time(20)
    assert len(rig.api.asked) == 3


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(error(410, "Expired", "too old resource version"), id="an event"),
        pytest.param(GoneError(410, "Expired", "too old resource version"), id="the answer"),
    ],
)
async def test_an_expired_version_is_listed_anew_without_another_pause(
    start: Start, gone: Step
) -> None:
    refused = UnavailableError("refused", sent=False)
    api = ScriptedApi(
        watches=[[initial_end(5)], *[[refused]] * 6, [gone], [added("a", 9), initial_end(9), OPEN]]
    )
    rig = start(api)
    for _ in range(600):
        if len(api.asked) >= 8:
            break
        await rig.pass_time(0.25)

    assert rig.handler.calls == ["add a@9"]


async def test_a_server_that_lists_what_it_then_calls_expired_is_not_hammered(start: Start) -> None:
    gone = GoneError(410, "Expired", "too old resource version")
    rig = start(ScriptedApi(watches=[[added("a", 9), initial_end(9), gone]] * 50))

    for _ in range(30):
        await rig.pass_time(0.1)

    assert 2 <= len(rig.api.asked) <= 6


async def test_a_watch_is_cut_off_from_its_failure_until_it_is_open_again(start: Start) -> None:
    """Also a quiet one: the empty line says that the server has accepted it."""
    refused = UnavailableError("refused", sent=False)
    api = ScriptedApi(watches=[[initial_end(5), refused], [refused], [b"", OPEN]])
    rig = start(api)
    await rig.settle()
    began = rig.clock.monotonic()
    since = [rig.reflector.cut_off_since]
    for seconds in (1.6, 3.2):
        await rig.pass_time(seconds)
        since.append(rig.reflector.cut_off_since)

    assert len(api.asked) == 3
    assert since == [began, began, None]


async def test_a_watch_whose_version_expired_is_cut_off_until_all_is_listed(start: Start) -> None:
    listing = asyncio.Event()
    gone = error(410, "Expired", "too old resource version")
    rig = start(
        ScriptedApi(
            watches=[
                [initial_end(5)],
                [b"", gone],
                [b"", added("a", 9), listing, initial_end(9), OPEN],
            ]
        )
    )
    await rig.settle()
    assert rig.reflector.cut_off_since is not None

    listing.set()
    await rig.settle()
    assert rig.reflector.cut_off_since is None
