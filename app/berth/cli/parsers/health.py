"""The arguments of ``berth health``."""

import argparse
from collections.abc import Sequence
from typing import Final

from berth.runtime.addresses import LOOPBACK, RUN_PORT
from berth.runtime.terminal import http_url, program

READY: Final = f"https://{LOOPBACK}:{RUN_PORT}/readyz"
"""Where `berth run` says whether it is ready, unless --secure-port moves it."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("health"), allow_abbrev=False)
    parser.add_argument(
        "--url", type=http_url, default=READY,
        help="URL of the probe; on this machine its certificate is not verified; default:"
        " %(default)s",
    )  # fmt: skip
    return parser.parse_args(argv)
