"""The files of the page, below ``/ui/``."""

import hashlib
import re
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from berth.service.ui.headers import SecurityHeaders

ROOT: Final = "/ui"
"""The path that the page is below."""

INDEX: Final = "index.html"
PLAIN: Final = b'<html lang="en">'
OF_RECORDING: Final = b'<html lang="en" data-recording>'
"""In INDEX: has the page show the moment of the recording."""

MEDIA_TYPES: Final = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "json": "application/json",
    "png": "image/png",
    "svg": "image/svg+xml",
}
"""By the ending of a file; files with other endings are not served. Not those of the system, which
differ between machines, and may make a script something that browsers do not run."""

SEGMENT: Final = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
"""What folders and files are called. It has neither ``..`` nor anything that separates folders."""


class Files:
    """An ASGI application that serves *folder* at ROOT; for paths that are :func:`is_of_page`.

    Files are read when they are asked for: while you write the page, reloading it is enough.
    """

    def __init__(self, folder: Traversable | None = None, *, is_recording: bool = False) -> None:
        """*folder* is by default what berth was installed with.

        The page *is_recording* if it shows a recording, of which it may choose the moment.
        """
        self._folder = folder or resources.files("berth.service.ui") / "static"
        self._is_recording = is_recording
        self._guarded: ASGIApp = SecurityHeaders(self._serve)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guarded(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(scope)(scope, receive, send)

    def _answer(self, scope: Scope) -> Response:
        path: str = scope["path"]
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse(
                "405 method not allowed\n", 405, headers={"Allow": "GET, HEAD"}
            )
        if path == ROOT:  # relative: there may be any prefix in front of the path
            return Response(status_code=308, headers={"Location": "ui/"})
        name = path.removeprefix(f"{ROOT}/") or INDEX
        content = self._read(name)
        if content is None:
            return PlainTextResponse("404 page not found\n", 404)
        if self._is_recording and name == INDEX:
            content = content.replace(PLAIN, OF_RECORDING, 1)
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        headers = {"Cache-Control": "no-cache", "ETag": tag}
        if tag in _header(scope, b"if-none-match"):
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=MEDIA_TYPES[_ending(name)])

    def _read(self, name: str) -> bytes | None:
        """Return what is in the file *name* below the folder; None if it is not served."""
        segments = name.split("/")
        if _ending(name) not in MEDIA_TYPES or not all(map(SEGMENT.fullmatch, segments)):
            return None
        try:
            return self._folder.joinpath(*segments).read_bytes()
        except OSError:  # it is a folder, or not there, or no file system takes its name
            return None


def is_of_page(path: str) -> bool:
    """Whether *path* is for Files."""
    return path == ROOT or path.startswith(f"{ROOT}/")


def _ending(name: str) -> str:
    return name.rpartition(".")[2]


def _header(scope: Scope, name: bytes) -> str:
    return b",".join(value for header, value in scope["headers"] if header == name).decode(
        "latin-1"
    )
