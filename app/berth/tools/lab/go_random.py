"""The random numbers of Go's ``math/rand`` as of Go 1.19, by which published runs can be repeated.

An additive lagged Fibonacci generator: each word is the sum, modulo 2^64, of those 607 and 273
places before. Its seeding is mixed with 607 constants, which are the state that the generator
reaches from seed 1 after 7.8e12 steps; they are computed here, by a power of a polynomial.
"""

from collections.abc import Iterator, MutableSequence
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

LENGTH: Final = 607
TAP: Final = 273
STEPS: Final = 7_800_000_000_000
MODULUS: Final = 2**31 - 1
_WORD: Final = 2**64

Words = NDArray[np.uint64]


class GoRandom:
    """Draws as ``rand.New(rand.NewSource(seed))`` does."""

    def __init__(self, seed: int) -> None:
        words = _seeded(seed, (40, 20, 0)) ^ _constants()
        self._words: list[int] = words.tolist()
        self._tap, self._feed = 0, LENGTH - TAP

    def int63(self) -> int:
        """Return a number of 63 bits."""
        self._tap = (self._tap - 1) % LENGTH
        self._feed = (self._feed - 1) % LENGTH
        word = (self._words[self._feed] + self._words[self._tap]) % _WORD
        self._words[self._feed] = word
        return word & (2**63 - 1)

    def below(self, bound: int) -> int:
        """Return a number from 0 to *bound* - 1, as ``Int31n``."""
        if bound & (bound - 1) == 0:
            return (self.int63() >> 32) & (bound - 1)
        highest = 2**31 - 1 - 2**31 % bound
        while (drawn := self.int63() >> 32) > highest:
            pass
        return drawn % bound

    def random(self) -> float:
        """Return a number from 0 up to 1, as ``Float64``."""
        return (self.int63() & (2**53 - 1)) / 2**53

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Shuffle *items* in place, as ``Shuffle``."""
        for i in range(len(items) - 1, 0, -1):
            j = self._below_of_32_bits(i + 1)
            items[i], items[j] = items[j], items[i]

    def permutation(self, count: int) -> list[int]:
        """Return the numbers from 0 to *count* - 1 in some order, as ``Perm``."""
        order = [0] * count
        for i in range(count):
            j = self.below(i + 1)
            order[i] = order[j]
            order[j] = i
        return order

    def _below_of_32_bits(self, bound: int) -> int:
        while True:
            product = (self.int63() >> 31) * bound
            if product % 2**32 >= 2**32 % bound:
                return product >> 32


def _seeded(seed: int, shifts: tuple[int, int, int]) -> Words:
    """Return the words that a seed gives before they are mixed with constants."""
    drawn = _lehmer(seed)
    words = []
    for _ in range(LENGTH):
        word = 0
        for shift in shifts:
            word ^= next(drawn) << shift
        words.append(word % _WORD)
    return np.array(words, np.uint64)


def _lehmer(seed: int) -> Iterator[int]:
    """Yield the numbers by which words are seeded."""
    value = seed % MODULUS or 89_482_311
    for _ in range(20):
        value = 48_271 * value % MODULUS
    while True:
        value = 48_271 * value % MODULUS
        yield value


@cache
def _constants() -> Words:
    # y_j is the word that the generator computes in step j - LENGTH, or begins with.
    places = (LENGTH - TAP - 1 - np.arange(LENGTH)) % LENGTH
    history = _seeded(1, (20, 10, 0))[places]
    jump = _power(STEPS)
    later = np.zeros(LENGTH, np.uint64)
    for k in range(LENGTH):
        later[k] = (jump * history).sum()
        history = np.append(history[1:], history[0] + history[LENGTH - TAP])
    constants = np.zeros(LENGTH, np.uint64)
    constants[(LENGTH - TAP - 1 - STEPS - np.arange(LENGTH)) % LENGTH] = later
    return constants


def _power(exponent: int) -> Words:
    """Return z^exponent modulo z^607 - z^334 - 1, the lowest coefficient first."""
    power = np.zeros(LENGTH, np.uint64)
    power[0] = 1
    for bit in f"{exponent:b}":
        product = np.zeros(2 * LENGTH, np.uint64)
        for at in np.flatnonzero(power):
            product[at : at + LENGTH] += power[at] * power
        if bit == "1":
            product = np.roll(product, 1)
        # z^607 = z^334 + 1; from the top, in parts that do not reach into themselves.
        for end in range(2 * LENGTH, LENGTH, -TAP):
            start = max(end - TAP, LENGTH)
            for less in (LENGTH, TAP):
                product[start - less : end - less] += product[start:end]
        power = product[:LENGTH]
    return power
