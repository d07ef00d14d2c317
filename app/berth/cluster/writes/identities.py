"""Identities of new objects: uids and generated names."""

import random
import uuid

SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and no look-alikes, as in the API server: no words, no misreading."""
SUFFIX_LENGTH = 5
MAX_NAME = 63
"""Generated names are kept short enough for a host name or label value."""


class Identities:
    """Draws uids and name suffixes from one source of randomness."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def uid(self) -> str:
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def name(self, prefix: str) -> str:
        """Return *prefix*, cut if need be, and a random suffix."""
        suffix = "".join(self._rng.choices(SUFFIX_ALPHABET, k=SUFFIX_LENGTH))
        return prefix[: MAX_NAME - SUFFIX_LENGTH] + suffix
