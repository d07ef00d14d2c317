"""From one task that finds work to several that do it."""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class HandOver(Generic[T]):
    """A queue that wakes one taker at a time.

    Where work rarely waits for anything, that taker does all of it, and the others sleep on. An
    :class:`asyncio.Queue` wakes a taker for each item.
    """

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._woken: asyncio.Future[None] | None = None
        """The taker that was woken, and has not looked yet."""

    def put(self, items: Iterable[T]) -> None:
        """Have *items* taken, in this order."""
        self._items.extend(items)
        self._wake_one()

    async def take(self) -> T:
        """Return the next item, once there is one."""
        while not self._items:
            await self._sleep()
        item = self._items.popleft()
        self._wake_one()
        return item

    async def _sleep(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter is self._woken:
                self._woken = None
                self._wake_one()
            else:
                self._idle.remove(waiter)
            raise
        self._woken = None

    def _wake_one(self) -> None:
        if not self._items or self._woken is not None:
            return
        for waiter in self._idle:
            if not waiter.done():  # else it is being cancelled
                self._idle.remove(waiter)
                self._woken = waiter
                waiter.set_result(None)
                return
