"""Warning headers: quoted, free of control characters, bounded."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.warnings import MOST_CHARACTERS, MOST_WHEN_CUT, headers, quoted
from tests.cluster.serving import Serving, pod

PODS = "/api/v1/namespaces/default/pods"
QUOTED_STRING = re.compile(r'299 - "(?:[^"\\\x00-\x1f\x7f]|\\["\\])*"')


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("spec.foo", '"spec.foo"', id="plain"),
        pytest.param('a"b\\c', r'"a\"b\\c"', id="quotes"),
        pytest.param("a\nb\rc\x1b[2J\x7f", r'"a\nb\rc\x1b[2J\x7f"', id="control characters"),
        pytest.param("ü\u2028\U000e0001", '"ü\\u2028\\U000e0001"', id="beyond ASCII"),
    ],
)
def test_quoted_as_go_does(text: str, want: str) -> None:
    assert quoted(text) == want


@given(st.lists(st.text(max_size=300), max_size=60))
def test_any_text_makes_a_header(texts: list[str]) -> None:
    found = [value.decode() for _, value in headers(texts)]
    assert all(QUOTED_STRING.fullmatch(each) for each in found)
    assert sum(map(len, found)) <= 2 * (MOST_CHARACTERS + MOST_WHEN_CUT) + 8 * len(found)


async def test_a_field_name_of_several_lines() -> None:
    body = pod("p") | {'x\r\nSet-Cookie: a="b"\x1b[31m': 1}
    response = await Serving().http.post(PODS, json=body)
    assert response.status_code == 201
    assert response.headers["warning"] == (
        r'299 - "unknown field \"x\\r\\nSet-Cookie: a=\\\"b\\\"\\x1b[31m\""'
    )


async def test_many_unknown_fields() -> None:
    body = pod("p") | {f"{'x' * 1000}{number}": 1 for number in range(500)}
    response = await Serving().http.post(PODS, json=body)
    assert response.status_code == 201
    cut = '299 - "unknown field \\"' + "x" * 241 + '"'
    assert response.headers.get_list("warning") == [cut] * (MOST_CHARACTERS // MOST_WHEN_CUT)
