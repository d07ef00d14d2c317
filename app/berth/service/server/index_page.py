"""The page ``/``: what is served, as links."""

from collections.abc import Iterable
from html import escape
from typing import Final

from berth.runtime.media_types import accepted

HTML: Final = "text/html"

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept",
    "X-Content-Type-Options": "nosniff",
}

DOCUMENT: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<h1>{title}</h1>
{about}
<h2>Endpoints</h2>
<ul>
{links}
</ul>
<p>Paths with names in them are in <a href="openapi.json">openapi.json</a>.</p>
"""

PAGE: Final = '<p><a href="ui/">The page</a> shows the scheduler in the browser.</p>'
NO_PAGE: Final = """<p>The page, which shows the scheduler in the browser, is not served here.
<code>berth ui</code> serves it on your machine, <code>berth run --serve-ui</code> here.</p>
"""


def is_for_people(accept: str) -> bool:
    """Whether a client that sends this ``Accept`` header is a browser that shows the answer.

    Programs ask for everything, or for JSON.
    """
    return any(media.type == HTML and media.quality > 0 for media in accepted(accept))


def index_page(title: str, paths: Iterable[str], *, about: str) -> str:
    """Return a document with relative links to *paths*: there may be a prefix in front of them.

    *about* is HTML.
    """
    links = "\n".join(
        f'<li><a href="{escape(path.removeprefix("/"))}">{escape(path)}</a></li>' for path in paths
    )
    return DOCUMENT.format(title=escape(title), about=about, links=links)
