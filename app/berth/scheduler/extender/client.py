"""One extender's connection: a request, its time limit, and what is said when it fails."""

import asyncio
import os
import re
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Literal, Protocol, TypeVar

import httpx

from berth.runtime.certificates import KeyPair, load_pair
from berth.runtime.clock import Clock
from berth.runtime.errors import UNREADABLE
from berth.runtime.redaction import without_password
from berth.scheduler.config.errors import invalid
from berth.scheduler.config.types import Extender, ExtenderTLSConfig
from berth.scheduler.extender.breaker import CircuitBreaker
from berth.scheduler.extender.errors import ExtenderError

T = TypeVar("T")

Verb = Literal["filter", "prioritize", "preempt", "bind"]
Outcome = Literal["success", "failure", "not_sent"]
"""``not_sent``: the extender is being left alone for a while."""

CONNECTIONS: Final = httpx.Limits(
    max_connections=None, max_keepalive_connections=20, keepalive_expiry=30.0
)
"""Seldom more than one is used at a time, but for binds; none of these is to wait for another."""

MOST_ANSWER_BYTES: Final = 64 << 20
"""Of an answer, decompressed: 5,000 whole nodes of 12 KiB each, and more than any of names only."""

HEADERS: Final = {"Content-Type": "application/json", "Accept-Encoding": "gzip"}


class Observer(Protocol):
    """Told of every call."""

    def called(self, extender: str, verb: Verb, outcome: Outcome, *, seconds: float) -> None: ...


class ExtenderClient:
    """Posts to one extender, over connections that are kept. :meth:`close` it in the end."""

    def __init__(
        self,
        config: Extender,
        *,
        clock: Clock,
        observer: Observer,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """*transport* takes the place of the network, and of TLS.

        Raises OSError, ValueError or ssl.SSLError when the TLS configuration cannot be used.
        """
        self.prefix = config.url_prefix.rstrip("/")
        self.name = without_password(self.prefix)
        """The address as it may be told to people."""
        self.breaker = CircuitBreaker(clock)
        self._last_failure = ""
        self._timeout = config.http_timeout.seconds
        self._clock = clock
        self._observer = observer
        server_name = config.tls_config.server_name if config.tls_config else ""
        self._extensions = {"sni_hostname": server_name} if server_name else {}
        needs_tls = transport is None and self.prefix.startswith("https")
        self._http = httpx.AsyncClient(
            headers=HEADERS,
            verify=client_context(config) if needs_tls else False,
            transport=transport,
            limits=CONNECTIONS,
            timeout=None,
        )

    async def call(self, verb: Verb, path: str, body: bytes, read: Callable[[bytes], T]) -> T:
        """Post *body* to *path* under the prefix; return what *read* makes of the answer.

        Raises ExtenderError. Nothing is tried again.
        """
        started = self._clock.monotonic()
        if not self.breaker.admit():
            self._observer.called(self.name, verb, "not_sent", seconds=0.0)
            # without numbers: events whose texts are equal become one
            raise ExtenderError(
                f"extender at URL {self.name} failed several times in a row and is left alone for a"
                f" while; last: {self._last_failure}",
                may_have_acted=False,
            )
        outcome: Outcome = "failure"
        try:
            answer = await self._post(path, body, read)
            outcome = "success"
        except ExtenderError as exc:
            self.breaker.failed()
            self._last_failure = str(exc)
            raise
        except BaseException:
            self.breaker.abandoned()
            raise
        else:
            self.breaker.succeeded()
            return answer
        finally:
            taken = self._clock.monotonic() - started
            self._observer.called(self.name, verb, outcome, seconds=taken)

    async def _post(self, path: str, body: bytes, read: Callable[[bytes], T]) -> T:
        shown = f"{self.name}/{path}"
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._http.stream(
                    "POST", f"{self.prefix}/{path}", content=body, extensions=self._extensions
                ) as answer,
            ):
                content = await _content(answer, shown)
        except TimeoutError as exc:
            raise ExtenderError(
                f'Post "{shown}": no answer within {self._timeout:g} seconds'
            ) from exc
        except httpx.ConnectError as exc:
            raise ExtenderError(f'Post "{shown}": {cause(exc)}', may_have_acted=False) from exc
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            raise ExtenderError(f'Post "{shown}": {cause(exc)}') from exc
        if answer.status_code != httpx.codes.OK:
            raise ExtenderError(
                f"failed {path} with extender at URL {shown}, code {answer.status_code}"
            )
        try:
            return read(content)
        except UNREADABLE as exc:
            raise ExtenderError(f'Post "{shown}": answer cannot be read: {cause(exc)}') from exc

    async def close(self) -> None:
        await self._http.aclose()


async def _content(answer: httpx.Response, shown: str) -> bytes:
    """Read no more than is allowed, lest one extender fill our memory."""
    parts, size = [], 0
    async for part in answer.aiter_bytes():
        size += len(part)
        if size > MOST_ANSWER_BYTES:
            raise ExtenderError(
                f'Post "{shown}": the answer has more than {MOST_ANSWER_BYTES} bytes'
            )
        parts.append(part)
    return b"".join(parts)


# Causes of failed requests, in words that are the same for the same cause.


_POSITION: Final = re.compile(r" \((?:byte \d+|_ssl\.c:\d+)\)")


def cause(error: BaseException) -> str:
    """Return what *error* comes from: ``connection refused`` rather than that all attempts failed.

    That is the first failure of the operating system, name lookup or TLS behind it, or its own
    words.
    """
    for reason in _behind(error):
        match reason:
            case ssl.SSLCertVerificationError():
                return f"certificate verify failed: {reason.verify_message.rstrip('.')}"
            case ssl.SSLError() if reason.reason:
                return f"TLS: {reason.reason.replace('_', ' ').lower()}"
            case socket.gaierror():
                return f"lookup: {(reason.strerror or 'failed').lower()}"
            case OSError() if reason.errno:
                return os.strerror(reason.errno).lower()
    return _POSITION.sub("", str(error)) or type(error).__name__


def _behind(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):  # attempts at several addresses
            error = error.exceptions[0]
        else:
            error = error.__cause__ or error.__context__  # suppressed or not: httpcore does so


# TLS towards an extender (spec §9.1).


def client_context(config: Extender) -> ssl.SSLContext:
    """Return whom to trust and which certificate to show. Raises OSError, ValueError, SSLError.

    Data wins over files. With enableHTTPS and no authority the extender is not verified, as in
    kube-scheduler.
    """
    tls = config.tls_config or ExtenderTLSConfig()
    has_authority = bool(tls.ca_data or tls.ca_file)
    if tls.insecure and has_authority:
        raise ValueError("insecure: Invalid value: true: there is a CA to verify with")
    if tls.ca_data:
        context = ssl.create_default_context(cadata=tls.ca_data.decode("ascii"))
    else:
        try:
            context = ssl.create_default_context(cafile=tls.ca_file or None)
        except OSError as exc:  # ssl names no file
            raise ValueError(invalid("caFile", tls.ca_file, exc.strerror or str(exc))) from exc
    if tls.insecure or (config.enable_https and not has_authority):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert_data or tls.cert_file:
        certificate = tls.cert_data or Path(tls.cert_file).read_bytes()
        key = tls.key_data or (Path(tls.key_file).read_bytes() if tls.key_file else b"")
        load_pair(context, KeyPair(certificate, key))
    return context
