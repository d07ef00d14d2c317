"""A client in another thread, and what it tells the event loop of its process."""

import asyncio
from functools import partial

from berth.kube.client.contact import Contact
from berth.kube.client.request_observer import RequestObserver
from berth.runtime.clock import Clock
from berth.runtime.loop_thread import call_soon


class ContactFromThread(Contact):
    """Tells *contact*, of *loop*, whether the server answers. Nobody waits for this one."""

    def __init__(self, contact: Contact, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        super().__init__(clock)
        self.heard = partial(call_soon, loop, contact.heard)  # type: ignore[method-assign]
        self.missed = partial(call_soon, loop, contact.missed)  # type: ignore[method-assign]


class ObserverFromThread:
    """The :class:`~berth.kube.client.request_observer.RequestObserver` that tells one of *loop*."""

    def __init__(self, observer: RequestObserver, loop: asyncio.AbstractEventLoop) -> None:
        self._observer = observer
        self._loop = loop

    def held_back(self, host: str, method: str, *, seconds: float) -> None:
        call_soon(self._loop, partial(self._observer.held_back, host, method, seconds=seconds))

    def answered(
        self, host: str, method: str, status: int, *, seconds: float, sent: int, received: int
    ) -> None:
        answered = partial(self._observer.answered, seconds=seconds, sent=sent, received=received)
        call_soon(self._loop, answered, host, method, status)

    def unanswered(self, host: str, method: str, *, seconds: float) -> None:
        call_soon(self._loop, partial(self._observer.unanswered, host, method, seconds=seconds))

    def watching(self, host: str, status: int) -> None:
        call_soon(self._loop, self._observer.watching, host, status)
