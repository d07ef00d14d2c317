"""YAML of others: what it may say, and how little text may stand for how much."""

from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from berth.kube import documents
from berth.kube.documents import DEPTH_LIMIT, depth_of

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
"""360 bytes that stand for a billion."""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(LAUGHS, "excessive aliasing", id="a billion laughs"),
        pytest.param(
            f"a: &a {'x' * 100_000}\nb: [{','.join(['*a'] * 40)}]",
            "excessive aliasing",
            id="a long text many times",
        ),
        pytest.param(
            "a: &a {k: v}\n"
            + "".join(
                f"b{i}: &b{i} {{<<: [*{p}, *{p}]}}\n"
                for i, p in enumerate(["a", *(f"b{i}" for i in range(29))])
            ),
            "excessive aliasing",
            id="merge keys",
        ),
        pytest.param("a: &a [*a]", "contains itself", id="a circle"),
        pytest.param("[" * 100_000, "nested deeper", id="deep"),
        pytest.param("- " * 1_000 + "x", "nested deeper", id="deep in blocks"),
        pytest.param("a: &a 1\n---\nb: *a", "unknown anchor", id="an anchor of another document"),
        pytest.param("a: " + "9" * 5_000, "ValueError", id="a number longer than Python reads"),
        pytest.param("a: !!timestamp x", "AttributeError", id="a tag that does not fit"),
        pytest.param("a: !!python/name:os.system x", "constructor", id="a tag of Python's"),
        pytest.param("\x00", "unacceptable character", id="no text"),
    ],
)
def test_what_is_refused(text: str, why: str) -> None:
    with pytest.raises(yaml.YAMLError, match=why):
        documents.load_all(text)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a: 2026-11-20T13:06:10Z", {"a": "2026-11-20T13:06:10Z"}, id="a time"),
        pytest.param("a: =\nb: [=]\n=: c", {"a": "=", "b": ["="], "=": "c"}, id="an equals sign"),
        pytest.param('a: !!value "="', {"a": "="}, id="the value tag, written out"),
        pytest.param("a: &a {x: 1}\nb: {<<: *a}", {"a": {"x": 1}, "b": {"x": 1}}, id="a merge"),
        pytest.param(
            "a: &a {x: 1}\nb: [" + "*a," * 90 + "]",
            {"a": {"x": 1}, "b": [{"x": 1}] * 90},
            id="an object many times",
        ),
    ],
)
def test_what_is_read(text: str, want: Any) -> None:
    assert documents.load(text) == want


def test_the_depth_that_is_allowed() -> None:
    value = documents.load("[" * DEPTH_LIMIT + "]" * DEPTH_LIMIT)
    assert depth_of(value) == DEPTH_LIMIT


@given(st.text(alphabet="abx &*:-[]{},?!<>|#'\"\n\t%@`=~0", max_size=60) | st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(yaml.YAMLError):
        documents.load_all(text)
