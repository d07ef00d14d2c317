"""Keeps the Authorization header fresh while tokens expire and rotate."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from app.clock import Clock

log = logging.getLogger(__name__)

REFRESH_INTERVAL: Final = 60.0
"""Seconds between looks at where the token comes from; what client-go uses for token files."""


class Credentials:
    """Returns the header's value when called, and has it reloaded at most once a minute.

    *reload* looks at the source again (a token file, an exec plugin whose token expires) and
    *token* reads what it found, with its scheme (``Bearer ...``). While one request reloads, others
    go on with the old token. A reload that fails is logged and the old token kept: it may still be
    good, and if it is not, the server says so.
    """

    def __init__(
        self, reload: Callable[[], Awaitable[object]], token: Callable[[], str], *, clock: Clock
    ) -> None:
        self._reload = reload
        self._token = token
        self._clock = clock
        self._due = clock.monotonic() + REFRESH_INTERVAL

    async def __call__(self) -> str:
        if self._clock.monotonic() >= self._due:
            self._due = self._clock.monotonic() + REFRESH_INTERVAL
            try:
                await self._reload()
            except Exception as exc:  # noqa: BLE001 - plugins fail in any way; logged, tried again
                log.warning("credentials were not refreshed", extra={"error": str(exc)})
        return self._token().strip()
