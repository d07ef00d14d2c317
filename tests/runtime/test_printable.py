"""Text fit for a terminal: nothing in it is obeyed, nothing hidden, and JSON means the same."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.runtime.printable import printable, printable_json, printable_lines
from tests.hostile_text import HOSTILE, misread

any_text = st.text(st.characters(exclude_categories=()), max_size=40)
"""Unpaired surrogates too."""


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("default/web", "default/web", id="a word"),
        pytest.param("größe 中文 ✓ █ é", "größe 中文 ✓ █ é", id="letters and signs of any script"),
        pytest.param("C:\\x1b", "C:\\x1b", id="a backslash stays"),
        pytest.param("\x1b[31m", "\\x1b[31m", id="an escape sequence"),
        pytest.param("a\tb\nc\r", "a\\tb\\nc\\r", id="tab and line ends"),
        pytest.param("\x00\x07\x7f", "\\x00\\x07\\x7f", id="controls of ASCII"),
        pytest.param("\x80\x85\x9b", "\\x80\\x85\\x9b", id="controls of Latin-1"),
        pytest.param("\u2028\u2029", "\\u2028\\u2029", id="line separators"),
        pytest.param("\u202a\u202e", "\\u202a\\u202e", id="overrides of direction"),
        pytest.param("\u2066\u2069", "\\u2066\\u2069", id="isolates of direction"),
        pytest.param("\u200b\u200d\ufeff", "\\u200b\\u200d\\ufeff", id="no width"),
        pytest.param("a\ufe0fb\u3164", "a\\ufe0fb\\u3164", id="marks and letters without ink"),
        pytest.param("\U000e0041", "\\U000e0041", id="tags"),
        pytest.param("\ud800", "\\ud800", id="half of a character"),
    ],
)
def test_printable(text: str, want: str) -> None:
    assert printable(text) == want
    assert printable(want) == want


def test_what_is_too_long_is_cut_and_says_so() -> None:
    assert printable("abcdef", limit=3) == "abc..."
    assert printable("abc", limit=3) == "abc"
    assert printable("\x1b" * 9, limit=1) == "\\x1b..."


def test_lines_stay_where_they_are_ours() -> None:
    assert printable_lines("a\n\tb\r\n") == "a\n\\tb\\r\n"


@given(any_text)
def test_whatever_it_is_nothing_is_obeyed(text: str) -> None:
    assert not misread(printable(text), allowed="")
    assert printable(text).isprintable()
    assert not misread(printable_lines(text))
    printable(text).encode()


@pytest.mark.parametrize("indent", [None, 2])
@given(value=st.dictionaries(any_text, any_text, max_size=3))
def test_json_means_the_same(value: dict[str, str], indent: int | None) -> None:
    document = printable_json(json.dumps(value, ensure_ascii=False, indent=indent))
    assert json.loads(document) == value
    assert not misread(document)


@pytest.mark.parametrize("text", HOSTILE)
def test_the_samples_are_hostile(text: str) -> None:
    assert misread(text, allowed="") or "[/" in text
