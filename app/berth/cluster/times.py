"""Times as objects have them: RFC 3339, whose letters may be small."""

from datetime import datetime


def seconds_of(text: str) -> float:
    """Return a time that was accepted from a client in unix seconds."""
    return datetime.fromisoformat(text.upper()).timestamp()
