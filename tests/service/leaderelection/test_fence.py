"""No write after loss: a leader that stood still finds that it may not, before it knows why."""

import asyncio
import ssl
from datetime import UTC, datetime

import msgspec
import pytest
from aiohttp import web

from berth.kube.client.connect import Endpoint, client_of
from berth.kube.client.errors import FencedError
from berth.runtime.certificates import self_signed, server_context
from berth.runtime.clock import FakeClock
from berth.service.leaderelection.elector import LeadershipLostError
from tests.kube.client.serving import serving
from tests.service.leaderelection.conftest import Run
from tests.service.leaderelection.lease_api import (
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
    await advance(clock, 2)  # nobody took the lease, as the next renewal shows
    assert elector.may_write()
    assert not running.done()


async def test_a_leader_that_stood_still_while_another_took_the_lease(run: Run) -> None:
    """Not even if that one has given it back: nothing that was decided before holds any more."""
    for holder, duration in (("other", 15), ("", 1)):
        clock = FakeClock()
        api = LeaseApi(clock)
        elector = make_elector(api, clock)
        running = run(elector)
        await settle()
        api.put(holderIdentity=holder, leaseDurationSeconds=duration)

        clock.advance(30)
        assert not elector.may_write()
        error = await ended(running)
        assert not elector.may_write()
        assert isinstance(error, LeadershipLostError)
        assert str(error).endswith(f"{holder or 'nobody'} holds it")


async def test_work_that_fails_when_the_lease_is_lost_is_not_the_reason(run: Run) -> None:
    clock = FakeClock()
    api = LeaseApi(clock)
    elector = make_elector(api, clock)

    async def fail_when_refused() -> None:
        try:
            await lead_for_ever()
        finally:
            if not elector.may_write():
                raise FencedError("not sent")

    running = run(elector, fail_when_refused)
    await settle()
    api.put(holderIdentity="other", leaseDurationSeconds=15)
    clock.advance(3)

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


class Proxy:
    """An HTTP proxy that is slow to connect: it lets nobody through before it is told to."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.opens = asyncio.Event()
        self.written = b""
        """What came from the client once the connection was there."""
        self.url = ""

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"CONNECT ")
        self.asked.set()
        await self.opens.wait()
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await writer.start_tls(server_context(PAIR))
        try:
            while b"\r\n\r\n{}" not in self.written and (more := await reader.read(65536)):
                self.written += more
            if self.written:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        finally:
            writer.close()


PAIR = self_signed(["api.example"], now=datetime.now(UTC), name="api.example")


@pytest.mark.wall
@pytest.mark.parametrize("still_leads", [True, False])
async def test_behind_a_proxy_the_fence_is_asked_when_the_connection_is_there(
    *, still_leads: bool
) -> None:
    proxy, allowed = Proxy(), True
    endpoint = Endpoint(
        "https://api.example:6443",
        tls=ssl.create_default_context(cadata=PAIR.certificate.decode()),
    )
    async with await proxy.start():
        client = client_of(
            msgspec.structs.replace(endpoint, proxy=proxy.url),
            qps=0,
            burst=1,
            user_agent="test",
            clock=FakeClock(),
        )
        bind = client.fenced(lambda: allowed).request("POST", "/binding", body=b"{}")
        writing = asyncio.create_task(bind, name="bind")
        await proxy.asked.wait()
        allowed = still_leads  # the lease may end while the proxy connects
        proxy.opens.set()
        if still_leads:
            assert await writing == b"{}"
        else:
            with pytest.raises(FencedError, match="POST /binding: not sent"):
                await writing
        await client.close()

    assert proxy.written.startswith(b"POST /binding ") is still_leads
    assert bool(proxy.written) is still_leads


@pytest.mark.wall
async def test_reading_behind_a_proxy_needs_no_lease() -> None:
    async def handle(_request: web.BaseRequest) -> web.Response:
        return web.Response(body=b"{}")

    async with serving(handle) as proxy:
        endpoint = Endpoint("http://api.example", proxy=proxy.url)
        client = client_of(endpoint, qps=0, burst=1, user_agent="test", clock=FakeClock())
        assert await client.fenced(lambda: False).request("GET", "/pod") == b"{}"
        assert await client.request("POST", "/review", body=b"{}") == b"{}"
        await client.close()
