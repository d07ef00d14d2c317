"""``berth health``: asks a probe once; for health checks of containers."""

import argparse
from typing import Final

import httpx

from berth.runtime.addresses import THIS_MACHINE
from berth.runtime.terminal import CommandError, UsageError, say_lines

TIMEOUT_SECONDS: Final = 3.0


def run(given: argparse.Namespace) -> int:
    """Return 0 when the probe says 2xx; CommandError with the reason when it does not."""
    say_lines(probe(given.url))
    return 0


def probe(asked: str, *, transport: httpx.BaseTransport | None = None) -> str:
    """Return what *asked* answers, *transport* in place of a connection. Raises CommandError."""
    try:
        url = httpx.URL(asked)
    except httpx.InvalidURL as exc:
        raise UsageError(f"--url {asked}: {exc}") from exc
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
