"""JSON that is nested deeper than decoders can follow."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.nesting import DEEPEST, is_deep, outline, pruned

documents = st.recursive(
    st.none() | st.integers(0, 9) | st.text(alphabet='"\\[]{},:a'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='"\\[{a'), inner),
)


def below(value: Any, levels: int) -> Any:
    """Return *value* with null for what is nested deeper than *levels*."""
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        return None
    if isinstance(value, dict):
        return {key: below(each, levels - 1) for key, each in value.items()}
    return [below(each, levels - 1) for each in value]


@settings(max_examples=40)
@given(document=documents)
def test_what_is_not_deep_stays_as_it_is(document: object) -> None:
    data = json.dumps(document).encode()
    assert pruned(data) == data
    assert not is_deep(data)


@settings(max_examples=40)
@given(document=documents)
def test_what_is_deep_is_cut_off(document: object) -> None:
    shell = b"[" * (DEEPEST - 1) + b"%s" + b"]" * (DEEPEST - 1)
    data = json.dumps(document).encode()
    assert pruned(shell % data) == shell % json.dumps(below(document, 1)).encode()


@settings(max_examples=40)
@given(document=documents, levels=st.integers(0, 3))
def test_an_outline_and_what_was_taken_out_are_the_whole(document: object, levels: int) -> None:
    data = json.dumps(document).encode()
    shell, inner = outline(data, levels)
    cut = json.dumps(below(document, levels)).encode()
    assert len(shell) <= len(data)
    assert all(json.loads(each) is not None for each in inner)
    if not inner:
        assert shell == data == cut


@pytest.mark.parametrize("data", [b'{"a":[', b'"', b'"\\', b"]]]]{{", b"", b"\xff[", b'["\\"'])
def test_broken_json_stays_broken(data: bytes) -> None:
    assert pruned(data) == data


def test_depth_is_counted_outside_of_strings() -> None:
    assert is_deep(b"[" * (DEEPEST + 1))
    assert not is_deep(b"[" * DEEPEST + b'"' + b"[" * DEEPEST + b'"' + b"]" * DEEPEST)
    assert pruned(b"[" * 9_999 + b"]" * 9_999).count(b"[") == DEEPEST
