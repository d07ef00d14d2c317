"""Compiled expressions in memory: those of some size are kept packed, and loaded when evaluated.

The library takes up to 2.8 MB for an expression of 10 KiB, so that a thousand of them, which one
user may write, would fill the machine. To load one takes a twentieth of the time to compile it.
"""

import zlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from cel_expr_python import cel  # type: ignore[import-untyped]  # ships types unmarked

SMALL: Final = 4 * 1024
"""Bytes of a serialized program that stays loaded; in memory it takes twelve times as many."""
MOST_LOADED: Final = 4 * 1024 * 1024
"""Bytes of larger ones that are loaded at once, serialized."""


class Program:
    """A compiled expression, which is loaded or can be."""

    __slots__ = ("_environment", "_loaded", "_packed", "_size")

    def __init__(self, environment: Callable[[], cel.Env], program: cel.Expression) -> None:
        """*environment* returns the one that *program* was compiled in."""
        serialized = program.serialize()
        self._environment = environment
        self._size = len(serialized)
        self._packed = _pack(serialized)
        self._loaded: cel.Expression | None = None
        self._keep(program)

    @classmethod
    def of_packed(cls, environment: Callable[[], cel.Env], packed: bytes, size: int) -> "Program":
        """Return the program that says so of itself: :attr:`packed` and :attr:`size`."""
        self = cls.__new__(cls)
        self._environment, self._packed, self._size = environment, packed, size
        self._loaded = None
        return self

    @property
    def packed(self) -> bytes:
        """What it is packed as."""
        return self._packed

    @property
    def size(self) -> int:
        """Its bytes, serialized."""
        return self._size

    def load(self) -> cel.Expression:
        """Return what can be evaluated."""
        program = self._loaded
        if program is None:
            program = self._environment().deserialize(zlib.decompress(self._packed))
            self._keep(program)
        elif self in _loaded:
            _loaded.move_to_end(self)
        return program

    def _keep(self, program: cel.Expression) -> None:
        self._loaded = program
        if self._size <= SMALL:
            return
        _loaded[self] = None
        total = sum(program.size for program in _loaded)
        while total > MOST_LOADED and len(_loaded) > 1:
            oldest, _ = _loaded.popitem(last=False)
            oldest._loaded = None
            total -= oldest.size


_loaded: OrderedDict[Program, None] = OrderedDict()
"""Those of some size that are loaded; the one that was used last is at the end."""


def _pack(serialized: bytes) -> bytes:
    return zlib.compress(serialized, 1)
