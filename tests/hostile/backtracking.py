"""How many steps a regular expression takes: a backtracking matcher that counts.

It walks what Python's own parser makes of a pattern, as Python's matcher does, only slowly enough
to be watched. The difference between linear and quadratic shows in its counts as it does in time.
"""

import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import permutations, product
from random import Random
from typing import Any, Final, NamedTuple

MOST: Final = 20_000
"""Steps after which counting ends: far beyond what is linear in the texts of :func:`pumped`."""

DEEPEST: Final = 10_000
"""Calls within each other: some for each turn of each repetition."""

Node = tuple[Any, Any]
Then = Callable[[int], bool]
"""Whether what follows matches from a position on."""


class TooManyStepsError(Exception):
    """There are more than :data:`MOST`."""


def steps(pattern: re.Pattern[Any], text: str, *, scans: bool, whole: bool = False) -> int:
    """Count the steps of matching *text*: from its beginning, or all that *scans* the text finds.

    *whole*: a match must end where the text does. The count ends at :data:`MOST`.
    """
    matcher = _Matcher(text, ignore_case=bool(pattern.flags & re.IGNORECASE))
    nodes = _parsed(pattern)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(DEEPEST)
    try:
        position = 0
        while position <= len(text):
            end = matcher.end_of_match(nodes, position, whole=whole)
            if not scans:
                break
            position = max(position + 1, end or 0)
    except TooManyStepsError:
        return MOST
    finally:
        sys.setrecursionlimit(limit)
    return matcher.steps


def matches(pattern: re.Pattern[Any], text: str) -> bool:
    """Whether *pattern* matches all of *text*, as Python's matcher says too."""
    matcher = _Matcher(text, ignore_case=bool(pattern.flags & re.IGNORECASE))
    return matcher.end_of_match(_parsed(pattern), 0, whole=True) is not None


@cache
def _parsed(pattern: re.Pattern[Any]) -> Sequence[Node]:
    source = pattern.pattern
    if isinstance(source, bytes):
        return list(parser.parse(source.decode("latin-1"), pattern.flags | re.ASCII))
    return list(parser.parse(source, pattern.flags & ~re.UNICODE))


class _Matcher:
    def __init__(self, text: str, *, ignore_case: bool) -> None:
        self.steps = 0
        self._text = text.lower() if ignore_case else text
        self._lower = ignore_case

    def end_of_match(self, nodes: Sequence[Node], start: int, *, whole: bool) -> int | None:
        return self._first_end(
            lambda then: self._sequence(
                nodes, 0, start, lambda end: (not whole or end == len(self._text)) and then(end)
            )
        )

    def _first_end(self, match: Callable[[Then], bool]) -> int | None:
        """Return the first position that *match* comes to, None if it comes to none."""
        ends: list[int] = []

        def then(position: int) -> bool:
            ends.append(position)
            return True

        return ends[0] if match(then) else None

    def _step(self) -> None:
        self.steps += 1
        if self.steps >= MOST:
            raise TooManyStepsError

    def _sequence(self, nodes: Sequence[Node], index: int, position: int, then: Then) -> bool:
        if index == len(nodes):
            return then(position)
        return self._node(
            nodes[index], position, lambda after: self._sequence(nodes, index + 1, after, then)
        )

    def _node(self, node: Node, position: int, then: Then) -> bool:
        self._step()
        what, about = node
        if _is_character(node):
            return self._is_at(node, position) and then(position + 1)
        if what is op.SUBPATTERN:
            return self._sequence(list(about[3]), 0, position, then)
        if what is op.BRANCH:
            return any(self._sequence(list(each), 0, position, then) for each in about[1])
        if what in (op.MAX_REPEAT, op.MIN_REPEAT):
            low, high, body = about
            return self._repeat(list(body), low, high, position, then, lazy=what is op.MIN_REPEAT)
        if what is op.POSSESSIVE_REPEAT:
            low, high, body = about
            end = self._first_end(
                lambda then: self._repeat(list(body), low, high, position, then, lazy=False)
            )
            return end is not None and then(end)
        if what is op.ATOMIC_GROUP:
            end = self.end_of_match(list(about), position, whole=False)
            return end is not None and then(end)
        if what in (op.ASSERT, op.ASSERT_NOT):
            direction, body = about
            at = position if direction > 0 else position - body.getwidth()[1]
            found = at >= 0 and self._sequence(list(body), 0, at, lambda _: True)
            return found is (what is op.ASSERT) and then(position)
        assert what is op.AT, what
        return self._is_boundary(about, position) and then(position)

    def _repeat(
        self, body: list[Node], low: int, high: Any, start: int, then: Then, *, lazy: bool
    ) -> bool:
        most = len(self._text) + 1 if high is op.MAXREPEAT else high
        if len(body) == 1 and _is_character(body[0]):
            return self._repeat_character(body[0], low, most, start, then, lazy=lazy)

        def more(times: int, position: int) -> bool:
            def again() -> bool:
                return times < most and self._sequence(
                    body,
                    0,
                    position,
                    lambda after: (after > position or times < low) and more(times + 1, after),
                )

            def enough() -> bool:
                return times >= low and then(position)

            return enough() or again() if lazy else again() or enough()

        return more(0, start)

    def _repeat_character(
        self, node: Node, low: int, most: int, start: int, then: Then, *, lazy: bool
    ) -> bool:
        if lazy:
            end = start
            while end - start < low or not then(end):
                self._step()
                if end - start >= most or not self._is_at(node, end):
                    return False
                end += 1
            return True
        end = start
        while end - start < most and self._is_at(node, end):
            self._step()
            end += 1
        while end - start >= low:
            self._step()
            if then(end):
                return True
            end -= 1
        return False

    def _is_at(self, node: Node, position: int) -> bool:
        return position < len(self._text) and _takes(node, self._text[position], self._lower)

    def _is_boundary(self, where: Any, position: int) -> bool:
        text = self._text
        if where in (op.AT_BEGINNING, op.AT_BEGINNING_STRING):
            return position == 0
        if where in (op.AT_END, op.AT_END_STRING):
            return position == len(text)
        before = position > 0 and _is_word(text[position - 1])
        after = position < len(text) and _is_word(text[position])
        return (before is not after) is (where is op.AT_BOUNDARY)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


_CHARACTERS: Final = frozenset({op.LITERAL, op.NOT_LITERAL, op.IN, op.ANY})


def _is_character(node: Node) -> bool:
    return node[0] in _CHARACTERS


def _takes(node: Node, character: str, lower: bool) -> bool:
    what, about = node
    code = ord(character)
    if what is op.LITERAL:
        return code == (ord(chr(about).lower()) if lower else about)
    if what is op.NOT_LITERAL:
        return bool(code != about)
    if what is op.ANY:
        return character != "\n"
    negated = about[0][0] is op.NEGATE
    return any(_is_in(each, character) for each in about) is not negated


def _is_in(item: Node, character: str) -> bool:
    what, about = item
    if what is op.LITERAL:
        return bool(ord(character) == about)
    if what is op.RANGE:
        return bool(about[0] <= ord(character) <= about[1])
    if what is op.CATEGORY:
        is_in = {
            op.CATEGORY_DIGIT: character.isdecimal(),
            op.CATEGORY_SPACE: character.isspace(),
            op.CATEGORY_WORD: _is_word(character),
        }
        inside = {
            op.CATEGORY_NOT_DIGIT: op.CATEGORY_DIGIT,
            op.CATEGORY_NOT_SPACE: op.CATEGORY_SPACE,
            op.CATEGORY_NOT_WORD: op.CATEGORY_WORD,
        }.get(about)
        return is_in[about] if inside is None else not is_in[inside]
    return False  # NEGATE


# Texts that hurt.


class Pumped(NamedTuple):
    """A text of any length: *pump* over and over between two ends."""

    head: str
    pump: str
    tail: str

    def of(self, length: int) -> str:
        return self.head + self.pump * (length // len(self.pump)) + self.tail


def pumped(pattern: re.Pattern[Any], *, pairs: int) -> list[Pumped]:
    """Return texts that lead to each part of *pattern* and then repeat what it may stumble over.

    Each character is repeated that makes a difference, and some *pairs* of them.
    """
    nodes = _parsed(pattern)
    characters = _representatives(nodes)
    heads = dict.fromkeys("".join(map(_shortest, nodes[:end])) for end in range(len(nodes) + 1))

    def texts(pumps: Iterable[str]) -> list[Pumped]:
        return [Pumped(*each) for each in product(heads, pumps, ("", "\0"))]

    doubled = texts(map("".join, permutations(characters, 2)))
    return texts(characters) + Random(1).sample(doubled, min(pairs, len(doubled)))


def _representatives(nodes: Sequence[Node]) -> list[str]:
    """Return one character of each set of those that no part of the pattern tells apart."""
    parts = list(_characters(nodes))
    of_signature: dict[tuple[bool, ...], str] = {}
    for character in map(chr, range(1, 127)):
        signature = tuple(_takes(part, character, lower=False) for part in parts)
        of_signature.setdefault(signature, character)
    return sorted(of_signature.values())


def _characters(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        if _is_character(node):
            yield node
        else:
            for body in _bodies(node):
                yield from _characters(body)


def _bodies(node: Node) -> Sequence[Sequence[Node]]:
    what, about = node
    if what is op.BRANCH:
        return [list(each) for each in about[1]]
    if what in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        return [list(about[2])]
    if what is op.SUBPATTERN:
        return [list(about[3])]
    if what is op.ATOMIC_GROUP:
        return [list(about)]
    if what in (op.ASSERT, op.ASSERT_NOT):
        return [list(about[1])]
    return []


def _shortest(node: Node) -> str:
    """Return a text that *node* matches: the shortest, but one turn of what may be left out."""
    what, _ = node
    if _is_character(node):
        return next(c for c in map(chr, range(126, 0, -1)) if _takes(node, c, lower=False))
    if what in (op.AT, op.ASSERT, op.ASSERT_NOT):
        return ""
    return "".join(map(_shortest, _bodies(node)[0]))
