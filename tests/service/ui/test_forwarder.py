"""What passes between the page and a scheduler elsewhere, and what does not."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from berth.kube.client.connect import Endpoint
from berth.service.ui import forwarder as forwarding
from berth.service.ui.forwarder import LARGEST_BODY, forwarder
from berth.service.ui.local_page import Page

URL = "https://scheduler.example:10259"


async def bearer() -> str:
    return "Bearer of-the-kubeconfig"


class Upstream:
    """A scheduler that gives one answer, and remembers what it was asked."""

    def __init__(self, answer: Response | None = None) -> None:
        self._answer = answer or JSONResponse({"items": []})
        self.asked: list[Scope] = []
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked.append(scope)
        self.bodies.append(await Request(scope, receive).body())
        await self._answer(scope, receive, send)

    @property
    def headers(self) -> Mapping[str, str]:
        (scope,) = self.asked
        return {name.decode(): value.decode() for name, value in scope["headers"]}


async def ask(
    upstream: Upstream | httpx.AsyncBaseTransport,
    path: str,
    method: str = "GET",
    *,
    url: str = URL,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
) -> httpx.Response:
    transport = httpx.ASGITransport(upstream) if isinstance(upstream, Upstream) else upstream
    endpoint = Endpoint(url, authorization=bearer)
    async with (
        forwarder(endpoint, transport=transport) as forwards,
        httpx.AsyncClient(
            transport=httpx.ASGITransport(Page(forwards)), base_url="http://127.0.0.1:1"
        ) as browser,
    ):
        return await browser.request(method, path, headers=headers, content=content)


async def test_the_scheduler_gets_the_credentials_and_nothing_of_the_browser() -> None:
    upstream = Upstream()
    sent = {
        "Accept": "application/json",
        "Authorization": "Bearer of-the-browser",
        "Cookie": "berth-1=session",
        "If-None-Match": '"7"',
        "Last-Event-ID": "41",
        "Origin": "http://127.0.0.1:1",
        "Connection": "keep-alive, authorization",
        "X-Remote-User": "admin",
        "X-Forwarded-For": "10.0.0.1",
        "Impersonate-User": "admin",
        "Transfer-Encoding": "identity",
    }
    assert (await ask(upstream, "/debug/queue", headers=sent)).json() == {"items": []}
    got = dict(upstream.headers)
    assert got.pop("user-agent").startswith("berth/")
    assert got == {
        "accept": "application/json",
        "accept-encoding": "gzip, deflate",
        "authorization": "Bearer of-the-kubeconfig",
        "connection": "keep-alive",
        "host": "scheduler.example:10259",
        "if-none-match": '"7"',
        "last-event-id": "41",
    }


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        pytest.param("https://scheduler.example", True, id="over TLS"),
        pytest.param("http://127.0.0.1:10259", True, id="on this machine"),
        pytest.param("http://scheduler.example", False, id="in the clear, elsewhere"),
    ],
)
async def test_credentials_are_not_sent_in_the_clear(url: str, sent: bool) -> None:
    upstream = Upstream()
    await ask(upstream, "/debug/queue", url=url)
    assert ("authorization" in upstream.headers) is sent


async def test_the_browser_gets_an_answer_but_no_cookies() -> None:
    headers = {
        "Access-Control-Allow-Origin": "*",
        "Cache-Control": "no-cache, private",
        "Clear-Site-Data": '"*"',
        "ETag": '"7"',
        "Location": "https://evil.example/",
        "Refresh": "0; url=https://evil.example/",
        "Server": "x",
        "Set-Cookie": "berth-1=mine; Path=/",
        "WWW-Authenticate": "Basic",
    }
    answer = await ask(Upstream(JSONResponse([1], 404, headers=headers)), "/debug/queue")
    assert (answer.status_code, answer.json()) == (404, [1])
    assert dict(answer.headers) == {
        "cache-control": "no-cache, private",
        "content-length": "3",
        "content-type": "application/json",
        "etag": '"7"',
    }


@pytest.mark.parametrize(
    ("asked", "path", "query"),
    [
        pytest.param("/debug/queue", "/p/debug/queue", b"", id="a prefix comes before"),
        pytest.param("/debug/queue?a=1&b=c%26d", "/p/debug/queue", b"a=1&b=c%26d", id="a query"),
        pytest.param(
            "/explain/pods/a/b%20c", "/p/explain/pods/a/b c", b"", id="what has to be encoded"
        ),
        pytest.param("/explain/pods/a/%3Fx=1", "/p/explain/pods/a/?x=1", b"", id="no query"),
        pytest.param("/debug/queue?a=%0d%0aX:+y", "/p/debug/queue", b"a=%0d%0aX:+y", id="lines"),
        pytest.param("/metrics", "/p/metrics", b"", id="metrics"),
    ],
)
async def test_what_is_asked_arrives_as_it_is(asked: str, path: str, query: bytes) -> None:
    upstream = Upstream()
    await ask(upstream, asked, url=f"{URL}/p/")
    (scope,) = upstream.asked
    assert (scope["path"], scope["query_string"]) == (path, query)


def nothing_more() -> Receive:
    """Return what receives a request without a body, and then nothing."""
    messages: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        if not messages:
            await asyncio.Event().wait()
        return messages.pop()

    return receive


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("GET", "/", 404, id="the root"),
        pytest.param("GET", "/api/v1/secrets", 404, id="another path"),
        pytest.param("GET", "/debugger", 404, id="a path that begins alike"),
        pytest.param("GET", "/debug/../api/v1/secrets", 404, id="out of the prefix"),
        pytest.param("GET", "/debug/%2e%2e/api", 404, id="out of the prefix, encoded"),
        pytest.param("GET", "/debug/%2e%2e%2f%2e%2e%2fapi", 404, id="the slashes, too"),
        pytest.param("GET", "/debug/..%5c..%5capi", 404, id="with backslashes"),
        pytest.param("GET", "/debug//api", 404, id="an empty segment"),
        pytest.param("GET", "//evil.example/debug", 404, id="another host"),
        pytest.param("GET", "/debug/./queue", 404, id="a segment that means nothing"),
        pytest.param("DELETE", "/metrics", 405, id="resetting metrics"),
        pytest.param("PUT", "/debug/flags/v", 405, id="the log level"),
        pytest.param("POST", "/simulate/", 405, id="posting beside"),
    ],
)
async def test_nothing_else_is_forwarded(method: str, path: str, status: int) -> None:
    upstream, sent = Upstream(), list[Message]()

    async def send(message: Message) -> None:
        sent.append(message)

    transport = httpx.ASGITransport(upstream)
    async with forwarder(Endpoint(URL), transport=transport) as forwards:
        scope = {
            "type": "http",
            "method": method,
            "path": unquote(path),
            "query_string": b"",
            "headers": [],
        }
        await Page(forwards)(scope, nothing_more(), send)
    assert sent[0]["status"] == status
    assert upstream.asked == []


async def test_a_question_is_posted() -> None:
    upstream = Upstream()
    question = json.dumps({"a": 1}).encode()
    await ask(
        upstream, "/simulate", "POST",
        headers={"Content-Type": "application/json"}, content=question,
    )  # fmt: skip
    assert upstream.bodies == [question]
    assert upstream.headers["content-type"] == "application/json"
    assert upstream.headers["content-length"] == str(len(question))


async def test_a_question_has_an_end() -> None:
    upstream = Upstream()
    answer = await ask(upstream, "/simulate", "POST", content=b"x" * (LARGEST_BODY + 1))
    assert (answer.status_code, upstream.asked) == (413, [])


@pytest.mark.parametrize("path", ["/debug/" + "x" * 100_000, "/debug/queue?" + "%ff" * 40_000])
async def test_an_address_has_an_end(path: str) -> None:
    upstream = Upstream()
    async with forwarder(Endpoint(URL), transport=httpx.ASGITransport(upstream)) as forwards:
        sent = list[Message]()

        async def send(message: Message) -> None:
            sent.append(message)

        target, _, query = path.partition("?")
        scope = {
            "type": "http", "method": "GET", "path": target, "query_string": query.encode(),
            "headers": [],
        }  # fmt: skip
        await forwards(scope, nothing_more(), send)
    assert (sent[0]["status"], upstream.asked) == (414, [])


def status_answer(code: int, message: str) -> Response:
    return JSONResponse({"kind": "Status", "message": message}, code)


@pytest.mark.parametrize(
    ("given", "status", "why"),
    [
        pytest.param(
            status_answer(401, "Unauthorized"), 502,
            f"{URL} does not accept these credentials (401): name a kubeconfig that it accepts,"
            " with --kubeconfig or $KUBECONFIG",
            id="of whom the scheduler knows nothing",
        ),
        pytest.param(
            status_answer(403, 'forbidden: User "jane" cannot get path "/debug/queue"'), 403,
            f'{URL}: forbidden: User "jane" cannot get path "/debug/queue" (403); a ClusterRole is'
            " needed with nonResourceURLs: [/debug/queue]",
            id="of whom may not",
        ),
        pytest.param(
            PlainTextResponse("x" * 1_000_000, 403), 403,
            f"{URL}: forbidden (403); a ClusterRole is needed with nonResourceURLs: [/debug/queue]",
            id="at length",
        ),
    ],
)  # fmt: skip
async def test_refusals_tell_what_is_missing(given: Response, status: int, why: str) -> None:
    answer = await ask(Upstream(given), "/debug/queue")
    assert (answer.status_code, answer.json()) == (status, {"detail": why})


@pytest.mark.parametrize(
    ("error", "why"),
    [
        pytest.param(httpx.ConnectError("refused"), "refused", id="nobody listens"),
        pytest.param(httpx.ConnectTimeout(""), "ConnectTimeout", id="nobody answers"),
        pytest.param(httpx.RemoteProtocolError("not HTTP"), "not HTTP", id="it is no scheduler"),
    ],
)
async def test_a_scheduler_that_is_not_there(error: Exception, why: str) -> None:
    def fail(_request: httpx.Request) -> httpx.Response:
        raise error

    answer = await ask(httpx.MockTransport(fail), "/debug/queue")
    assert (answer.status_code, answer.json()) == (
        502,
        {"detail": f"no scheduler answers at {URL}: {why}"},
    )


async def test_a_scheduler_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(_request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(forwarding, "ANSWER_SECONDS", 0)
    answer = await ask(httpx.MockTransport(silent), "/debug/queue")
    assert (answer.status_code, answer.json()) == (
        504,
        {"detail": f"{URL} has not answered within 0 s"},
    )


Headers = Sequence[tuple[bytes, bytes]]


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([(b"accept", b"a\r\nX-Remote-User: admin")], id="a line in a value"),
        pytest.param([(b"accept\r\nx", b"a")], id="a line in a name"),
        pytest.param([(b"if-none-match", b"\x00")], id="a null byte"),
        pytest.param([(b"last-event-id", b"\xff\xfe")], id="bytes that are no text"),
        pytest.param([(b"content-length", b"5"), (b"transfer-encoding", b"chunked")], id="lengths"),
    ],
)
async def test_no_header_smuggles_another_one(headers: Headers) -> None:
    """Our server lets none of these through; here it is asked what the next one does."""
    upstream, sent = Upstream(), list[dict[str, Any]]()

    async def send(message: Message) -> None:
        sent.append(dict(message))

    scope = {
        "type": "http", "method": "GET", "path": "/debug/queue", "query_string": b"",
        "headers": headers,
    }  # fmt: skip
    async with forwarder(Endpoint(URL), transport=httpx.ASGITransport(upstream)) as forwards:
        await forwards(scope, nothing_more(), send)
    for asked in upstream.asked:
        names = {name for name, _ in asked["headers"]}
        assert names <= {
            b"accept", b"accept-encoding", b"connection", b"host", b"if-none-match",
            b"last-event-id", b"user-agent",
        }  # fmt: skip


async def test_a_question_ends_when_the_browser_gives_up() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    class Silent(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return httpx.Response(httpx.codes.OK)

    received: asyncio.Queue[Message] = asyncio.Queue()
    received.put_nowait({"type": "http.request", "body": b"{}", "more_body": False})
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/simulate"}
    scope |= {"headers": [], "query_string": b"", "http_version": "1.1", "scheme": "http"}
    async with forwarder(Endpoint(URL, authorization=bearer), transport=Silent()) as forwards:
        answering = asyncio.create_task(forwards(scope, received.get, send))
        await begun.wait()
        assert not ended.is_set()
        received.put_nowait({"type": "http.disconnect"})
        await answering
    assert ended.is_set()
    assert sent[0]["status"] == httpx.codes.BAD_REQUEST
