"""``berth health``: asks a probe once; for health checks of containers."""

import argparse
from collections.abc import Sequence
from typing import Final

import httpx

from berth.addresses import LOOPBACK, THIS_MACHINE
from berth.terminal import CommandError, program, say_lines

READY: Final = f"https://{LOOPBACK}:10259/readyz"
"""Where `berth run` says whether it is ready, unless --secure-port moves it."""

TIMEOUT_SECONDS: Final = 3.0


def main(argv: Sequence[str]) -> int:
    """Return 0 when the probe says 2xx; CommandError with the reason when it does not."""
    parser = argparse.ArgumentParser(prog=program("health"), allow_abbrev=False)
    parser.add_argument(
        "--url", type=_url, default=READY,
        help="URL of the probe; on this machine its certificate is not verified; default:"
        " %(default)s",
    )  # fmt: skip
    given = parser.parse_args(argv)
    say_lines(probe(given.url))
    return 0


def probe(url: httpx.URL, *, transport: httpx.BaseTransport | None = None) -> str:
    """Return what *url* answers, *transport* in place of a connection. Raises CommandError."""
    try:
        with httpx.Client(
            timeout=TIMEOUT_SECONDS,
            verify=url.host not in THIS_MACHINE,
            trust_env=False,  # no proxy stands between a container and itself
            transport=transport,
        ) as client:
            answer = client.get(url)
    except httpx.HTTPError as exc:
        raise CommandError(f"{url}: {str(exc) or type(exc).__name__}") from exc
    if not answer.is_success:
        raise CommandError(f"{url} answers {answer.status_code}: {answer.text.strip()}")
    return answer.text.strip()


def _url(text: str) -> httpx.URL:
    """Read the address of a probe."""
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as exc:
        raise argparse.ArgumentTypeError(f"{text!r}: {exc}") from exc
    if url.scheme not in ("http", "https") or not url.host:
        raise argparse.ArgumentTypeError(f"{text!r} must begin with http:// or https://")
    return url
