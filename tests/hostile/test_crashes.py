"""No text brings a parser of strangers' text to anything but a result or a refusal."""

from contextlib import suppress
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hostile.parsers import PARSERS, Parser

MARKS: Final = (
    "\0\t\n \"'!#$%&()*+,-./0123456789:;<=>?@[\\]^_`abeinotxzKMi{|}~\u00a0\u0661\u20ac\U0001f600"
)


@st.composite
def texts_for(draw: st.DrawFn, parser: Parser) -> Any:
    """Draw a text that is a little like what *parser* accepts."""
    begin = draw(
        st.one_of(
            st.sampled_from([each for each in parser.ordinary if isinstance(each, str | bytes)]),
            st.sampled_from(parser.growing).map(lambda text: text(30)),
        )
    )
    is_bytes = isinstance(begin, bytes)
    text = begin.decode() if isinstance(begin, bytes) else begin
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(text)))
        end = draw(st.integers(at, len(text)))
        change = draw(st.sampled_from(("insert", "delete", "repeat")))
        if change == "insert":
            text = text[:at] + draw(st.text(MARKS, max_size=4)) + text[at:]
        elif change == "delete":
            text = text[:at] + text[end:]
        else:
            text = text[:end] + text[at:end] * draw(st.integers(1, 3)) + text[end:]
    return text.encode() if is_bytes else text


@pytest.mark.parametrize("parser", [pytest.param(each, id=each.name) for each in PARSERS])
@settings(max_examples=40)
@given(data=st.data())
def test_it_is_read_or_refused(parser: Parser, data: st.DataObject) -> None:
    text = data.draw(texts_for(parser))
    with suppress(*parser.refuses):
        parser.read(text)


LONG: Final = 8_000


@pytest.mark.parametrize("parser", [pytest.param(each, id=each.name) for each in PARSERS])
def test_long_texts_are_read_or_refused(parser: Parser) -> None:
    for text in parser.growing:
        with suppress(*parser.refuses):
            parser.read(text(LONG))
