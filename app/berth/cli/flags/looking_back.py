"""Flags of commands that look back at a recording."""

import argparse
from contextlib import suppress
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path


def add_looking_back_flags(where: argparse._ArgumentGroup, *, otherwise: str) -> None:
    """Add which files, as ``recording``, and which moment, as ``at`` in seconds since 1970.

    *otherwise* is the moment by default, in words. See :func:`check_looking_back`.
    """
    where.add_argument(
        "--recording", type=Path, action="append", metavar="FILE",
        help="look back at what `berth run --record` or `berth up --record` wrote to this file;"
        " give the flag once for each file of a process",
    )  # fmt: skip
    where.add_argument(
        "--at", type=_moment, metavar="TIME",
        help="the moment to look at, as in 2026-11-27T10:30:00Z, or in seconds since 1970;"
        f" default: {otherwise}",
    )  # fmt: skip


def check_looking_back(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """End with an error if *given* names a scheduler and a recording, or a time of neither."""
    if given.recording and (given.service or given.server):
        parser.error("--recording cannot be combined with --server and --service")
    if given.at is not None and not given.recording:
        parser.error("--at requires --recording")


def _moment(text: str) -> float:
    """Read a time in RFC 3339, in UTC if it does not say, or in seconds since 1970."""
    with suppress(ValueError):
        seconds = float(text)
        if isfinite(seconds):
            return seconds
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be a time such as 2026-11-27T10:30:00Z, or seconds since 1970"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
