"""Observers of requests."""

from typing import Final, Protocol


class RequestObserver(Protocol):
    """Told of every request. *host* has the port; sizes are those of bodies, in bytes."""

    def held_back(self, host: str, method: str, *, seconds: float) -> None:
        """The rate limit has let a request go, after maybe 0 seconds."""
        ...

    def answered(
        self, host: str, method: str, status: int, *, seconds: float, sent: int, received: int
    ) -> None:
        """A request was answered, if only with an error."""
        ...

    def unanswered(self, host: str, method: str, *, seconds: float) -> None:
        """A request ended without an answer."""
        ...

    def watching(self, host: str, status: int) -> None:
        """A watch was begun, or refused."""
        ...


class _Nobody:
    def held_back(self, host: str, method: str, *, seconds: float) -> None: ...

    def answered(
        self, host: str, method: str, status: int, *, seconds: float, sent: int, received: int
    ) -> None: ...

    def unanswered(self, host: str, method: str, *, seconds: float) -> None: ...

    def watching(self, host: str, status: int) -> None: ...


NOBODY: Final[RequestObserver] = _Nobody()
"""Looks on without noticing anything."""
