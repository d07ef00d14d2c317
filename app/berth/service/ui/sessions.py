"""Sessions of browsers with a process of this machine: for whoever has seen its link.

A listener on loopback is open to all programs and all users of the machine, so the link that the
process prints has a token. The first browser that opens it gets a session, as a cookie, and the
token is spent: neither the history of that browser nor a copy of the link opens anything later.
"""

import secrets
from collections import deque
from collections.abc import Callable
from html import escape
from typing import Final
from urllib.parse import parse_qs

from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from berth.service.ui.files import ROOT, is_of_page

TOKEN: Final = "token"
"""The parameter of the link."""

MOST_SESSIONS: Final = 64
"""Of one process; the oldest ends when there are more."""

SESSION_SECONDS: Final = 7 * 24 * 3600
"""How long a browser keeps the cookie; the process may end before, and with it all its sessions."""

OWN: Final = frozenset({"none", "same-origin"})
"""``Sec-Fetch-Site`` of what the user or this page asks for."""

REFUSAL: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>berth: no session</title>
<h1>{why}</h1>
<p>Open the last link after <code>page at</code> in the terminal where <code>{program}</code> runs.
A link works once; then the terminal shows another one.</p>
"""


def new_secret() -> str:
    """Return 256 random bits, as a cookie and a URL may contain them."""
    return secrets.token_urlsafe(32)


class Sessions:
    """An ASGI application that lets browsers through to *application* that have a session.

    Files of the page are for everybody, as everybody can have them with berth; the page itself is
    shown to browsers without a session only when they come from a link on another site: they do
    not send the cookie then, but the page's own requests do (``SameSite=Strict``).
    """

    def __init__(
        self,
        application: ASGIApp,
        *,
        program: str,
        renewed: Callable[[], None],
        new_secret: Callable[[], str] = new_secret,
    ) -> None:
        """*program* is what people started. *renewed* is called when there is another token."""
        self._application = application
        self._program = program
        self._renewed = renewed
        self._new_secret = new_secret
        self._sessions: deque[str] = deque(maxlen=MOST_SESSIONS)
        self.token = new_secret()
        """Opens one session."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._answer(HTTPConnection(scope)) if scope["type"] == "http" else None
        await (answer or self._application)(scope, receive, send)

    def _answer(self, request: HTTPConnection) -> Response | None:
        """Return what to answer instead of the application, if anything."""
        scope = request.scope
        path, method = scope["path"], scope["method"]
        site = request.headers.get("sec-fetch-site", "none")
        is_navigation = request.headers.get("sec-fetch-mode", "navigate") == "navigate"
        has_session = self._has_session(request)
        if path == "/" and method == "GET":
            return self._enter(request, has_session=has_session)
        if is_of_page(path) and (path != f"{ROOT}/" or has_session or site not in OWN):
            return None
        if site not in OWN and not (is_navigation and method in ("GET", "HEAD")):
            return PlainTextResponse("403 requests of other sites are refused\n", 403)
        if has_session:
            return None
        if path == f"{ROOT}/":
            return self._refusal("This browser has no session")
        return PlainTextResponse("401 no session: open the page by its link\n", 401)

    def _enter(self, request: HTTPConnection, *, has_session: bool) -> Response:
        """Exchange the token of a link for a session."""
        query = request.scope["query_string"].decode("latin-1")
        token = parse_qs(query).get(TOKEN, [""])[-1]
        if _are_equal(token, self.token):
            session = self._new_secret()
            self._sessions.append(session)
            self.token = self._new_secret()
            self._renewed()
            answer = _to_page()
            answer.set_cookie(
                _cookie(request.scope),
                session,
                max_age=SESSION_SECONDS,
                path="/",
                httponly=True,
                samesite="strict",
            )
            return answer
        if has_session:
            return _to_page()
        if token:
            return self._refusal("This link does not work any more")
        return self._refusal("This browser has no session")

    def _has_session(self, request: HTTPConnection) -> bool:
        given = request.cookies.get(_cookie(request.scope), "")
        # Not any(): how long it takes must not tell which one is like it.
        return sum([_are_equal(given, session) for session in self._sessions]) > 0

    def _refusal(self, why: str) -> Response:
        text = REFUSAL.format(why=escape(why), program=escape(self._program))
        return HTMLResponse(text, 401, headers={"Cache-Control": "no-store"})


def _to_page() -> Response:
    headers = {"Location": f"{ROOT[1:]}/", "Cache-Control": "no-store"}
    return Response(status_code=303, headers=headers)


def _cookie(scope: Scope) -> str:
    """Return the name of the cookie: browsers send those of one port to all ports of a host."""
    return f"berth-{scope['server'][1]}"


def _are_equal(one: str, other: str) -> bool:
    """Compare in a time that does not tell how much of them is equal."""
    return secrets.compare_digest(one.encode(), other.encode())
