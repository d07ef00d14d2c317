"""``berth health``: asks a probe once; for health checks of containers."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from berth.runtime.addresses import LOOPBACK, RUN_PORT, THIS_MACHINE
from berth.runtime.terminal import CommandError, UsageError, http_url, program, say_lines

if TYPE_CHECKING:
    import httpx


READY: Final = f"https://{LOOPBACK}:{RUN_PORT}/readyz"
"""Where `berth run` says whether it is ready, unless --secure-port moves it."""
TIMEOUT_SECONDS: Final = 3.0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("health"), allow_abbrev=False)
    parser.add_argument(
        "--url", type=http_url, default=READY,
        help="URL of the probe; on this machine its certificate is not verified; default:"
        " %(default)s",
    )  # fmt: skip
    return parser.parse_args(argv)


def run(given: argparse.Namespace) -> int:
    """Return 0 when the probe says 2xx; CommandError with the reason when it does not."""
    say_lines(probe(given.url))
    return 0


def probe(asked: str, *, transport: "httpx.BaseTransport | None" = None) -> str:
    """Return what *asked* answers, *transport* in place of a connection. Raises CommandError."""
    import httpx

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
