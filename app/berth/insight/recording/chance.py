"""Chance that begins anew at each attempt, so that what one draws does not change the next."""

from random import Random


class AttemptChance:
    """Hands out sources of random numbers, which follow from a seed and the number of the attempt.

    A replay with another configuration, in which an attempt draws more or fewer numbers, breaks
    ties of the next one as the recorded scheduler did.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.attempt = 0
        """How many attempts have begun; may be set to go on from there."""

    def next_attempt(self) -> int:
        """Begin an attempt; return its number, from 1."""
        self.attempt += 1
        return self.attempt

    def source(self) -> Random:
        """Return a new source."""
        return _Source(self)


class _Source(Random):
    """Is seeded when it is first asked in an attempt, which many never do."""

    def __init__(self, chance: AttemptChance) -> None:
        self._chance = chance
        self._attempt = -1
        super().__init__(chance.seed)

    def random(self) -> float:
        self._begin()
        return super().random()

    def getrandbits(self, k: int, /) -> int:
        self._begin()
        return super().getrandbits(k)

    def _begin(self) -> None:
        attempt = self._chance.attempt
        if attempt != self._attempt:
            self._attempt = attempt
            self.seed(self._chance.seed + attempt)
