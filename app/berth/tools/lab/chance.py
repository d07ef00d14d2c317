"""The order of pods and nodes from the numbers of a seed."""

from collections.abc import MutableSequence
from random import Random
from typing import Any, Final, Protocol

from berth.tools.lab.go_random import GoRandom

STARTUP_DRAWS: Final = 10
"""What the start-up of the published simulator draws between pods and nodes."""


class Chance(Protocol):
    """One stream of random numbers."""

    def shuffle(self, items: MutableSequence[Any]) -> None: ...

    def below(self, bound: int) -> int:
        """Return a number from 0 to *bound* - 1."""
        ...

    def permutation(self, count: int) -> list[int]:
        """Return the numbers from 0 to *count* - 1 in some order."""
        ...

    def random(self) -> float:
        """Return a number from 0 up to 1, which is not among them."""
        ...

    def begin_nodes(self) -> None:
        """Note that all that is drawn from now on concerns nodes."""
        ...


class PythonChance:
    """The generator of Python's ``random``."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def shuffle(self, items: MutableSequence[Any]) -> None:
        self._random.shuffle(items)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)

    def permutation(self, count: int) -> list[int]:
        return self._random.sample(range(count), count)

    def random(self) -> float:
        return self._random.random()

    def begin_nodes(self) -> None:
        pass


class GoChance(GoRandom):
    """The generator of the simulator whose results are published, drawn from as it does."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.int63()

    def begin_nodes(self) -> None:
        for _ in range(STARTUP_DRAWS):
            self.int63()
