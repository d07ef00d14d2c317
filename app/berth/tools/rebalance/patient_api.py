"""An API that bears with a server that is away or busy for a while."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final

import msgspec

from berth.kube.client.api import Api
from berth.kube.client.errors import ApiError
from berth.runtime.clock import Clock
from berth.runtime.terminal import CommandError

POLL_SECONDS: Final = 0.5
MERGE: Final = "application/merge-patch+json"
_PASSING: Final = frozenset({0, 429, 502, 503, 504})
"""Statuses after which the same request may succeed; 0 is no answer, 429 is also what a
PodDisruptionBudget answers."""

Object = dict[str, Any]


class RebalanceStoppedError(CommandError):
    """The goal is not reached, and trying on is of no use; the message says why."""


class PatientApi:
    """Sends a request again until there is an answer, for *timeout* seconds.

    All that is sent through it may be sent twice: it only reads, patches, and evicts by UID.
    """

    def __init__(self, client: Api, *, clock: Clock, timeout: float) -> None:
        self._client = client
        self._clock = clock
        self._timeout = timeout

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> bytes:
        """Send one request. Raises ApiError, and RebalanceStoppedError when the time is over."""
        deadline = self._clock.monotonic() + self._timeout
        while True:
            try:
                return await self._client.request(
                    method,
                    path,
                    params=params,
                    body=body,
                    content_type=content_type,
                    timeout=timeout,
                )
            except ApiError as exc:
                # An eviction that several budgets forbid is answered with 500.
                if exc.status not in _PASSING and (exc.status != 500 or method == "POST"):
                    raise
                if self._clock.monotonic() >= deadline:
                    raise RebalanceStoppedError(f"after {self._timeout:g} seconds: {exc}") from exc
            await self._clock.sleep(POLL_SECONDS)

    def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        return self._client.watch(path, params)

    async def ask(self, method: str, path: str, body: Object | None = None) -> Any:
        """Send JSON, a merge patch if *method* is PATCH, and return the answer decoded."""
        answer = await self.request(
            method,
            path,
            body=None if body is None else msgspec.json.encode(body),
            content_type=MERGE if method == "PATCH" else "application/json",
        )
        return msgspec.json.decode(answer)
