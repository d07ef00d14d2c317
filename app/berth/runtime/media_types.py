"""The ``Accept`` header (RFC 9110, section 12.5.1)."""

from collections.abc import Mapping
from typing import NamedTuple


class MediaRange(NamedTuple):
    """One of the media types that a client accepts."""

    type: str
    """In lower case; perhaps with ``*`` for parts of it."""
    parameters: Mapping[str, str]
    """With ``q``, if it is given."""

    @property
    def quality(self) -> float:
        """How much the client prefers it, from 0 to 1."""
        try:
            return float(self.parameters.get("q", "1"))
        except ValueError:
            return 0.0


def accepted(header: str) -> list[MediaRange]:
    """Return what an ``Accept`` header lists, in its order."""
    return [_media_range(part) for part in header.split(",")]


def _media_range(text: str) -> MediaRange:
    media_type, *rest = text.split(";")
    pairs = (part.partition("=") for part in rest)
    parameters = {key.strip(): value.strip() for key, _, value in pairs}
    return MediaRange(media_type.strip().lower(), parameters)
