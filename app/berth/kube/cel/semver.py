"""Versions by semver 2.0.0, as device attributes have them."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_VERSION: Final = re.compile(
    rf"(?P<major>{_NUMBER})\.(?P<minor>{_NUMBER})\.(?P<patch>{_NUMBER})"
    rf"(?:-(?P<pre>(?:{_NUMBER}|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
    rf"(?:\.(?:{_NUMBER}|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)
_LENIENT: Final = re.compile(r"[vV]?(?P<core>[0-9]+(?:\.[0-9]+){0,2})(?P<rest>[-+].*)?")

_TOO_LARGE: Final = 2**64
_MOST_DIGITS: Final = len(str(_TOO_LARGE))

Identifier = tuple[int, int, str]
"""An identifier of a pre-release, in order: numbers before words."""


@dataclass(frozen=True, order=True, slots=True)
class Version:
    """A version in order of precedence; build metadata does not count."""

    major: int
    minor: int
    patch: int
    is_release: bool = True
    pre_release: tuple[Identifier, ...] = ()

    def __str__(self) -> str:
        core = f"{self.major}.{self.minor}.{self.patch}"
        if self.is_release:
            return core
        words = (word or str(number) for _, number, word in self.pre_release)
        return f"{core}-{'.'.join(words)}"


def parse_version(text: str) -> Version:
    """Read a version; ``ValueError`` names the text if it is none.

    As in Go, a number in it must fit into 64 bits.
    """
    return _known(text) if len(text) <= _LONGEST_KNOWN else _read(text)


def _read(text: str) -> Version:
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ValueError(
            f"version {text[:_LONGEST_KNOWN]!r}: want major.minor.patch as semver 2.0.0 has it"
        )
    words = match["pre"].split(".") if match["pre"] else []
    pre_release = tuple(
        (0, _number(word), "") if word.isdecimal() else (1, 0, word) for word in words
    )
    core = _number(match["major"]), _number(match["minor"]), _number(match["patch"])
    return Version(*core, is_release=not words, pre_release=pre_release)


_LONGEST_KNOWN: Final = 256
"""Characters of a version that is remembered. A device's has at most 64."""
_known: Final = lru_cache(maxsize=4096)(_read)


def _number(digits: str) -> int:
    number = int(digits) if len(digits) <= _MOST_DIGITS else _TOO_LARGE
    if number >= _TOO_LARGE:
        raise ValueError(f"version: number {digits[:_LONGEST_KNOWN]}: does not fit into 64 bits")
    return number


def normalized(text: str) -> str:
    """Make a version of what is nearly one: ``v1.02`` becomes ``1.2.0``."""
    match = _LENIENT.fullmatch(text)
    if match is None:
        return text
    numbers = [number.lstrip("0") or "0" for number in match["core"].split(".")]
    numbers += ["0"] * (3 - len(numbers))
    return ".".join(numbers) + (match["rest"] or "")
