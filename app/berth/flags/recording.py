"""Flags of commands whose scheduler can be recorded."""

import argparse
from pathlib import Path

from berth.terminal import positive


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add ``--record`` and ``--record-max-size``."""
    parser.add_argument(
        "--record", type=Path, metavar="FILE",
        help="Record every step of the scheduler in this file, for `berth replay`. Recordings of"
        " earlier processes are kept as FILE.1, FILE.2 and so on, up to five of them.",
    )  # fmt: skip
    parser.add_argument(
        "--record-max-size", type=positive, default=1024, metavar="MIB",
        help="Size of the compressed file in MiB at which a recording ends; default: %(default)s.",
    )  # fmt: skip
