"""Candidates of a search: how many devices it wants, and which may be tried."""

from collections.abc import Hashable
from typing import NamedTuple

import msgspec

from berth_plugins.dynamic_resources.pools import Pool, PoolDevice
from berth_plugins.dynamic_resources.requests import Request


class Candidate(NamedTuple):
    pool: Pool
    found: PoolDevice


class Position(NamedTuple):
    """Of a candidate: its pool's among all, and its own in the pool."""

    pool: int = 0
    device: int = 0


class Wanted(msgspec.Struct):
    """How many devices an alternative needs; in mode All, which."""

    request: Request
    count: int
    asked: Hashable
    """The same for requests that the same devices of a pool can serve."""
    all_of: list[Candidate] = msgspec.field(default_factory=list)
