"""Limits of requests to the extender port; apart, for those who only want the number."""

from typing import Final

MAX_BODY_BYTES: Final = 32 * 2**20
"""Twice what 5,000 nodes take, whole and uncompressed. Each MiB takes the event loop some ms."""
