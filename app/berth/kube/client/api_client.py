"""Speaking to one API server: requests and watches in raw bytes."""

import copy
import re
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Final, NamedTuple, Self
from urllib.parse import quote, urlencode, urlsplit

from berth.kube.client.connections import header_lines
from berth.kube.client.contact import Contact
from berth.kube.client.errors import (
    ApiError,
    FencedError,
    TooManyRequestsError,
    UnavailableError,
    from_status,
)
from berth.kube.client.rate_limit import TokenBucket
from berth.kube.client.request_observer import NOBODY, RequestObserver
from berth.kube.client.transport import Headers, Response, Transport
from berth.runtime.clock import Clock

REQUEST_TIMEOUT: Final = 60.0
"""Seconds for a request with its answer; an API server gives up after as many itself."""

WATCH_GRACE: Final = 30.0
"""Seconds a watch may outlive the ``timeoutSeconds`` it asked for. A server ends watches in time;
one that is still open then hangs on a dead connection."""

THROTTLED_RETRIES: Final = 3

OTHER_LEADER: Final = "another replica may lead by now"

_needs_no_quotes: Final = re.compile(r"[A-Za-z0-9/._~-]*").fullmatch
"""Asked before ``quote``, which costs ten times as much and changes hardly any path."""


class Fence(NamedTuple):
    """When writes may leave, and why they do not otherwise."""

    may_write: Callable[[], bool]
    otherwise: str


def check_fences(fences: Iterable[Fence], method: str, path: str) -> None:
    """Raise FencedError if a request may not leave now."""
    if method == "GET":
        return
    for fence in fences:
        if not fence.may_write():
            raise FencedError(f"{method} {path}: not sent, {fence.otherwise}")


Authorization = Callable[[], Awaitable[str]]
"""Returns the value of the Authorization header, refreshed when due; "" for none."""


async def anonymous() -> str:
    """Send no Authorization header: for servers that need none, or a client certificate instead."""
    return ""


def target_of(path: str, params: Mapping[str, str] | None) -> str:
    """Return *path* with *params*, quoted."""
    target = path if _needs_no_quotes(path) else quote(path)
    return f"{target}?{urlencode(params, safe='!', quote_via=quote)}" if params else target


def _named(what: str, error: UnavailableError) -> UnavailableError:
    """Return *error* with words that say that it happened to *what*."""
    return UnavailableError(f"{what}: {error.message}", sent=error.sent)


class LineBuffer:
    """Cuts a byte stream into lines. A line may span any number of chunks; time stays linear."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that *chunk* completes, without their ends."""
        lines = []
        begin, end = 0, chunk.find(b"\n")
        while end >= 0:
            line = chunk[begin:end]
            if self._begun:
                line = b"".join([*self._begun, line])
                self._begun.clear()
            if line:
                lines.append(line)
            begin, end = end + 1, chunk.find(b"\n", end + 1)
        if begin < len(chunk):
            self._begun.append(chunk[begin:])
        return lines


class ApiClient:
    """Speaks to one API server. Made by :func:`berth.kube.client.connect.connect`.

    Owns *transport*. Raises :class:`~berth.kube.client.errors.ApiError` and nothing of the HTTP
    library.
    """

    def __init__(
        self,
        transport: Transport,
        url: str,
        *,
        user_agent: str,
        limiter: TokenBucket,
        clock: Clock,
        authorization: Authorization = anonymous,
        watch_grace: float = WATCH_GRACE,
    ) -> None:
        self.url = url.rstrip("/")
        self.limiter = limiter
        self.observer: RequestObserver = NOBODY
        """Who looks on. To be set before :meth:`fenced` makes another client like this one."""
        self.contact = Contact(clock)
        """Whether the server answers. To be set before :meth:`fenced`, if it is shared."""
        self._host = urlsplit(url).netloc.rpartition("@")[2]
        self._transport = transport
        self._clock = clock
        self._authorization = authorization
        self._watch_grace = watch_grace
        # identity: on a cluster's own network, unpacking costs more than it saves (spec §7.2)
        self._headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": user_agent,
        }
        self._made_headers: dict[str | None, Headers] = {}
        """By content type, the latest."""
        self._fences: tuple[Fence, ...] = ()

    def fenced(self, may_write: Callable[[], bool], *, otherwise: str = OTHER_LEADER) -> Self:
        """Return a client whose writes leave only while *may_write* says so, else FencedError.

        It is asked at the last moment: a request may have waited long before, for the rate limit,
        fresh credentials or a slow loop. The fences that this client has hold there, too. The error
        says *otherwise*. Connections and rate limit are shared; close one of both.
        """
        fenced = copy.copy(self)
        fenced._fences = (*self._fences, Fence(may_write, otherwise))
        return fenced

    def unlimited(self) -> Self:
        """Return a client without a rate limit. Connections are shared; close one of both."""
        unlimited = copy.copy(self)
        unlimited.limiter = TokenBucket(qps=0.0, burst=1, clock=self._clock)
        return unlimited

    def accepting(self, media_type: str) -> Self:
        """Return a client that asks for answers of *media_type*, such as metadata only.

        Connections and rate limit are shared; close one of both.
        """
        accepting = copy.copy(self)
        accepting._headers = {**self._headers, "Accept": media_type}
        accepting._made_headers = {}
        return accepting

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
        retries: int = THROTTLED_RETRIES,
    ) -> bytes:
        """Send one request and return the body of its answer.

        Waits for the rate limiter first. An answer 429 with a Retry-After is obeyed *retries*
        times, whatever the verb: it says that the server did not begin to work on the request.
        Nothing else is tried again here. *timeout* is in seconds, ``REQUEST_TIMEOUT`` when None.
        """
        target = target_of(path, params)
        guard = partial(check_fences, self._fences, method, path)
        while True:
            guard()  # what will not leave takes no turn
            await self._take_turn(method)
            headers = await self._headers_with(None if body is None else content_type)
            started = self._clock.monotonic()
            answer: Response | UnavailableError
            try:
                answer = await self._transport.exchange(
                    method,
                    target,
                    headers=headers,
                    body=body,
                    timeout=REQUEST_TIMEOUT if timeout is None else timeout,
                    guard=guard,
                )
            except UnavailableError as exc:
                answer = exc
            try:
                return self._received(method, path, body, answer, started=started)
            except TooManyRequestsError as exc:
                if exc.retry_after is None or retries == 0:
                    raise
                delay = exc.retry_after
            retries -= 1
            await self._clock.sleep(delay)

    async def post_all(self, posts: Sequence[tuple[str, bytes]]) -> list[bytes | ApiError]:
        """POST bodies to paths, in this order; return the body of each answer, or what it means.

        They share a connection as far as the rate limit lets them leave at once without taking the
        last of what others may send. An answer 429 is treated as :meth:`request` does.
        """
        answers: list[bytes | ApiError] = []
        while len(answers) < len(posts):
            left = posts[len(answers) :]
            try:
                check_fences(self._fences, "POST", left[0][0])
                await self._take_turn("POST")
                count = 1 + self.limiter.take_spare(len(left) - 1)
                for _ in range(count - 1):
                    self.observer.held_back(self._host, "POST", seconds=0.0)
                answers += await self._post(left[:count])
            except ApiError as exc:
                answers += [exc] * len(left)
        await self._post_again(posts, answers)
        return answers

    async def _post(self, posts: Sequence[tuple[str, bytes]]) -> list[bytes | ApiError]:
        """Send requests whose turn it is."""
        headers = await self._headers_with("application/json")
        started = self._clock.monotonic()
        answers: list[bytes | ApiError] = []
        try:
            exchanged: Sequence[Response | UnavailableError] = await self._transport.post_all(
                [(target_of(path, None), body) for path, body in posts],
                headers=headers,
                timeout=REQUEST_TIMEOUT,
                guard=partial(check_fences, self._fences, "POST", posts[0][0]),
            )
        except UnavailableError as exc:
            exchanged = [exc] * len(posts)
        for (path, body), answer in zip(posts, exchanged, strict=True):
            try:
                answers.append(self._received("POST", path, body, answer, started=started))
            except ApiError as exc:
                answers.append(exc)
        return answers

    async def _post_again(
        self, posts: Sequence[tuple[str, bytes]], answers: list[bytes | ApiError]
    ) -> None:
        """Replace what a busy server has to say by its later answers, where it asks for that."""
        delays = {
            n: answer.retry_after
            for n, answer in enumerate(answers)
            if isinstance(answer, TooManyRequestsError) and answer.retry_after is not None
        }
        if delays:
            await self._clock.sleep(max(delays.values()))
        for n in delays:
            path, body = posts[n]
            try:
                answers[n] = await self.request(
                    "POST", path, body=body, retries=THROTTLED_RETRIES - 1
                )
            except ApiError as exc:
                answers[n] = exc

    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        """Yield the JSON lines of a watch until the server ends it.

        *params* are sent as they are plus ``watch=true``. When they carry ``timeoutSeconds``, a
        watch that outlives it by *watch_grace* raises UnavailableError. A last line without an
        end is dropped: it is cut off, and comes again with the next watch. The first line is empty:
        it says that the server has accepted the watch, which may be quiet for long.
        """
        await self._take_turn("GET")
        asked = params.get("timeoutSeconds")
        headers = await self._headers_with(None)
        target, buffer = target_of(path, {**params, "watch": "true"}), LineBuffer()
        with self._missing(f"watch {path}"):
            async with self._transport.stream(
                target, headers=headers, timeout=int(asked) + self._watch_grace if asked else None
            ) as answer:
                self.observer.watching(self._host, answer.status)
                self.contact.answered(answer.status)
                if answer.status != 200:
                    body = b"".join([chunk async for chunk in answer.chunks()])
                    raise from_status(body, status=answer.status, retry_after=answer.retry_after)
                yield b""
                async with aclosing(answer.chunks()) as chunks:
                    async for chunk in chunks:
                        for line in buffer.feed(chunk):
                            yield line

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    def _received(
        self,
        method: str,
        path: str,
        body: bytes | None,
        answer: Response | UnavailableError,
        *,
        started: float,
    ) -> bytes:
        """Take note of what came of a request; return the body of its answer or raise its error."""
        seconds = self._clock.monotonic() - started
        if isinstance(answer, UnavailableError):
            self.observer.unanswered(self._host, method, seconds=seconds)
            self.contact.missed()
            raise _named(f"{method} {path}", answer) from answer
        self.contact.answered(answer.status)
        self.observer.answered(
            self._host,
            method,
            answer.status,
            seconds=seconds,
            sent=0 if body is None else len(body),
            received=len(answer.body),
        )
        if answer.status >= 300:
            raise from_status(answer.body, status=answer.status, retry_after=answer.retry_after)
        return answer.body

    async def _take_turn(self, method: str) -> None:
        """Wait for the rate limiter."""
        self.observer.held_back(self._host, method, seconds=await self.limiter.take())

    @contextmanager
    def _missing(self, what: str) -> Iterator[None]:
        """Take note when there is no answer to *what*."""
        try:
            yield
        except UnavailableError as exc:
            self.contact.missed()
            raise _named(what, exc) from exc

    async def _headers_with(self, content_type: str | None) -> Headers:
        """Return the headers of a request; the same as long as the credentials are."""
        authorization = await self._authorization()
        headers = self._made_headers.get(content_type)
        if headers is None or headers.fields.get("Authorization", "") != authorization:
            fields = self._headers.copy()
            if content_type is not None:
                fields["Content-Type"] = content_type
            if authorization:
                fields["Authorization"] = authorization
            headers = self._made_headers[content_type] = Headers(fields, header_lines(fields))
        return headers
