"""In front of what this machine may do unasked: not what web pages have a browser of it do.

A listener on loopback that asks nobody who they are trusts all programs of the machine. A browser
is one, and does what pages from anywhere say: it posts forms and plain text to whatever address
they name (CSRF), and takes a host of theirs that resolves to 127.0.0.1 for their own (DNS
rebinding), so that they may read the answers, too.
"""

import ipaddress
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

UNASKED: Final = frozenset(
    {"", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain"}
)
"""Types of content that a page may post elsewhere; of others the browser asks first (CORS)."""


class SameMachine:
    """Passes on requests that are meant for this machine, and that no web page could have sent."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = _refusal(scope) if scope["type"] == "http" else None
        await (refusal or self._application)(scope, receive, send)


def _refusal(scope: Scope) -> PlainTextResponse | None:
    hosts = _values(scope, b"host")
    if len(hosts) != 1 or not _is_this_machine(f"//{hosts[0]}"):
        return PlainTextResponse("421 Host: must be localhost or a loopback address\n", 421)
    if not all(map(_is_this_machine, _values(scope, b"origin"))):
        return PlainTextResponse("403 Origin: must be this machine\n", 403)
    types = [value.partition(";")[0].strip().lower() for value in _values(scope, b"content-type")]
    if scope["method"] == "POST" and not UNASKED.isdisjoint(types or [""]):
        return PlainTextResponse("415 Content-Type: must be application/json\n", 415)
    return None


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for header, value in scope["headers"] if header == name]


@lru_cache(maxsize=64)  # nearly all requests name the same, and this took 6% of a small one
def _is_this_machine(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
