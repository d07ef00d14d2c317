"""The arguments of ``berth health``."""

import argparse
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from berth.addresses import LOOPBACK, RUN_PORT
from berth.terminal import program

READY: Final = f"https://{LOOPBACK}:{RUN_PORT}/readyz"
"""Where `berth run` says whether it is ready, unless --secure-port moves it."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("health"), allow_abbrev=False)
    parser.add_argument(
        "--url", type=_url, default=READY,
        help="URL of the probe; on this machine its certificate is not verified; default:"
        " %(default)s",
    )  # fmt: skip
    return parser.parse_args(argv)


def _url(text: str) -> str:
    """Read the address of a probe."""
    try:
        url = urlsplit(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"{text!r}: {exc}") from exc
    if url.scheme not in ("http", "https") or not url.hostname:
        raise argparse.ArgumentTypeError(f"{text!r} must begin with http:// or https://")
    return text
