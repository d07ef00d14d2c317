"""No write after loss: a leader that stood still finds that it may not, before it knows why."""

import asyncio

import pytest
from aiohttp import web

from app.client.errors import FencedError
from app.clock import FakeClock
from app.leaderelection.elector import LeadershipLostError
from tests.client.serving import serving
from tests.leaderelection.conftest import Run
from tests.leaderelection.lease_api import (
    LEASE,
    NO_TROUBLE,
    LeaseApi,
    Trouble,
    advance,
    ended,
    lead_for_ever,
    make_elector,
    settle,
)


@pytest.mark.parametrize(
    ("stood_still", "may"),
    [
        pytest.param(9.99, True, id="shorter than the renew deadline"),
        pytest.param(10.0, False, id="as long as the renew deadline"),
        pytest.param(30.0, False, id="much longer"),
    ],
)
async def test_a_leader_that_stood_still(stood_still: float, *, may: bool, run: Run) -> None:
    clock = FakeClock()
    api = LeaseApi(clock)
    elector = make_elector(api, clock)
    running = run(elector)
    await settle()
    assert elector.may_write()

    clock.advance(stood_still)  # nobody had a turn since

    assert elector.is_overdue() is not may
    assert elector.may_write() is may
    clock.advance(-stood_still)  # refused once, refused for good, whatever the clock says then
    assert elector.may_write() is may
    if not may:
        error = await ended(running)
        assert isinstance(error, LeadershipLostError)
        assert f"not renewed for {stood_still} s, more than 10.0 s" in str(error)


async def test_a_refused_write_ends_the_work_at_once(run: Run) -> None:
    clock = FakeClock()
    elector = make_elector(LeaseApi(clock), clock)
    refused = asyncio.Event()

    async def write_when_woken() -> None:
        await clock.sleep(30)
        if not elector.may_write():
            refused.set()
        await lead_for_ever()

    running = run(elector, write_when_woken)
    await settle()
    clock.advance(30)

    assert isinstance(await ended(running), LeadershipLostError)
    assert refused.is_set()


async def test_work_that_fails_because_of_a_refusal_is_not_the_reason(run: Run) -> None:
    clock = FakeClock()
    elector = make_elector(LeaseApi(clock), clock)

    async def fail_when_refused() -> None:
        await clock.sleep(30)
        if not elector.may_write():
            raise FencedError("not sent")

    running = run(elector, fail_when_refused)
    await settle()
    clock.advance(30)

    error = await ended(running)
    assert isinstance(error, LeadershipLostError)
    assert isinstance(error.__cause__, FencedError)


async def test_nobody_writes_who_does_not_lead(run: Run) -> None:
    clock = FakeClock()
    api = LeaseApi(clock)
    api.put(holderIdentity="other", leaseDurationSeconds=15)
    elector = make_elector(api, clock)
    assert not elector.may_write()
    run(elector)
    await settle()
    assert not elector.may_write()


@pytest.mark.parametrize(
    "standing_still",
    [
        pytest.param(Trouble(until_answered=4.0), id="the answer is read late"),
        pytest.param(Trouble(until_applied=4.0), id="the request is handled late"),
    ],
)
async def test_a_renewal_counts_from_when_it_was_sent(standing_still: Trouble, run: Run) -> None:
    clock = FakeClock()
    api = LeaseApi(clock)
    elector = make_elector(api, clock)
    running = run(elector)
    await advance(clock, 2)
    api.trouble = lambda method, _path: standing_still if method == "PUT" else NO_TROUBLE
    await advance(clock, 3)  # at 4 s a renewal was sent, at 8 s its answer is read
    api.trouble = lambda _method, path: Trouble(until_applied=1e9) if path == LEASE else NO_TROUBLE
    await advance(clock, 8.75)
    assert elector.may_write()
    await advance(clock, 0.25)
    assert not elector.may_write()

    await advance(clock, 20)
    assert isinstance(await ended(running), LeadershipLostError)


async def test_old_news_of_a_lease_do_not_make_a_leader(run: Run) -> None:
    clock = FakeClock()
    api = LeaseApi(clock)
    elector = make_elector(api, clock)
    led = asyncio.Event()

    async def lead() -> None:
        led.set()
        await lead_for_ever()

    api.trouble = lambda method, _path: (
        Trouble(until_answered=4.9) if method == "POST" else NO_TROUBLE
    )
    run(elector, lead)
    await settle()  # the Lease is created, the answer is on its way
    clock.advance(30)  # and is read half a minute later
    assert api.spec["holderIdentity"] == "me"
    api.put(holderIdentity="other", leaseDurationSeconds=15)
    await advance(clock, 10)

    assert not led.is_set()
    assert not elector.may_write()


@pytest.mark.wall
async def test_the_fence_is_asked_at_the_last_moment() -> None:
    arrived: list[str] = []

    async def handle(request: web.BaseRequest) -> web.Response:
        arrived.append(request.method)
        return web.Response(body=b"{}")

    allowed = True
    async with serving(handle) as client:
        client.limiter._tokens = 0.0  # the next request waits for the rate limit
        writing = asyncio.create_task(
            client.fenced(lambda: allowed).request("POST", "/binding", body=b"{}"), name="bind"
        )
        await asyncio.sleep(0)
        allowed = False
        with pytest.raises(FencedError, match="POST /binding: not sent"):
            await writing
        await client.fenced(lambda: allowed).request("GET", "/pod")
        await client.request("POST", "/review", body=b"{}")
        allowed = True
        await client.fenced(lambda: allowed).request("PATCH", "/status", body=b"{}")

    assert arrived == ["GET", "POST", "PATCH"]
