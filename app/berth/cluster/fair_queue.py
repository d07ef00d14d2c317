"""A queue in which every flow comes next as often, and in a flow every user."""

from collections import OrderedDict, deque
from typing import Final, Generic, TypeVar

T = TypeVar("T")

MOST_WAITING: Final = 50
"""Of one flow: the queue length limit of the API server's priority levels."""


class QueueFullError(Exception):
    """As many of the flow wait as may."""


class FairQueue(Generic[T]):
    """Items by flow and user; first in, first out for each user."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        """*most* may wait of each flow."""
        self._most = most
        self._flows: OrderedDict[str, OrderedDict[str, deque[T]]] = OrderedDict()
        self._counts: dict[str, int] = {}

    def push(self, flow: str, user: str, item: T) -> None:
        """Add an item; raises QueueFullError."""
        count = self._counts.get(flow, 0)
        if count >= self._most:
            raise QueueFullError(f"{count} requests of {flow} are waiting")
        self._counts[flow] = count + 1
        self._flows.setdefault(flow, OrderedDict()).setdefault(user, deque()).append(item)

    def pop(self) -> T | None:
        """Return the item whose turn it is, and take it out; None: there is none."""
        if not self._flows:
            return None
        flow, users = self._flows.popitem(last=False)
        user, items = users.popitem(last=False)
        item = items.popleft()
        self._counts[flow] -= 1
        if items:
            users[user] = items
        if users:
            self._flows[flow] = users
        else:
            del self._counts[flow]
        return item

    def has(self, flow: str) -> bool:
        """Tell whether one of *flow* waits."""
        return flow in self._flows
