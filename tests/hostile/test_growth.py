"""Twice the text is at most twice the work, for every parser of strangers' text."""

from typing import Any, Final

import pytest

from berth.cluster.http import negotiation
from berth.kube.objects.quantity import parse
from berth.kube.objects.selectors import parse_int64
from tests.hostile.counting import work
from tests.hostile.parsers import PARSERS, Parser, Text

LENGTH: Final = 400
SLACK: Final = 2_000
"""Work beside that on the text: below what a quadratic parser does with the longer one."""


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> None:
    for cached in (parse, parse_int64, negotiation._remembered):
        cached.cache_clear()


def is_linear(parser: Parser, text: Text) -> bool:
    few, many = (work(parser.read, text(n), parser.refuses) for n in (LENGTH, 2 * LENGTH))
    return many <= 2.4 * few + SLACK


@pytest.mark.parametrize("parser", [pytest.param(each, id=each.name) for each in PARSERS])
def test_work_is_linear_in_the_text(parser: Parser) -> None:
    for ordinary in parser.ordinary:
        work(parser.read, ordinary, parser.refuses)
    slow = [text(20) for text in parser.growing if not is_linear(parser, text)]
    assert slow == []


def _halving(text: str) -> None:
    while text:
        text = text[1:]


def _each_with_each(text: str) -> int:
    return sum(one == other for one in text for other in text)


def _longer_and_longer(text: str) -> list[str]:
    return [text[:end] for end in range(len(text))]


@pytest.mark.parametrize("read", [_halving, _each_with_each, _longer_and_longer])
def test_what_is_not_linear_is_found(read: Any) -> None:
    assert not is_linear(Parser("slow", read, (), ()), lambda length: "a" * length)
