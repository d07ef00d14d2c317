"""Results of a search for devices, other than None."""

import msgspec

from berth.kube.objects.quantity import Quantities
from berth_plugins.dynamic_resources.pools import PoolDevice
from berth_plugins.dynamic_resources.requests import Request


class SearchTimeoutError(Exception):
    """The time for a node, or for the attempt, is over: nothing is known of the node."""


class InvalidPoolsError(Exception):
    """Nothing was found, and some pools that contradict themselves were not searched."""


class Pick(msgspec.Struct, frozen=True, eq=False):
    """A device found for a request. ``share`` is what it gets of a device that others share."""

    request: Request
    found: PoolDevice
    share: Quantities | None = None


class ClaimPicks(msgspec.Struct, frozen=True, eq=False):
    """What was found for one claim, in order, and which alternative of each request it is for."""

    picks: tuple[Pick, ...]
    chosen: tuple[int, ...]
