"""YAML and JSON: values as Kubernetes sees them, duplicates, and text that is neither."""

import json
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduler.config.decode import Document, document
from berth.scheduler.config.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("", None, id="nothing"),
        pytest.param("a: 1\nb: [x, 'y']", {"a": 1, "b": ["x", "y"]}, id="a mapping"),
        pytest.param(b"\xef\xbb\xbfa: 1", {"a": 1}, id="a byte order mark"),
        pytest.param("{a: 1}", {"a": 1}, id="braces that are not JSON"),
        pytest.param('\t{"a":\t1}', {"a": 1}, id="JSON with tabs"),
        pytest.param("a: yes\nb: Off", {"a": True, "b": False}, id="booleans of YAML 1.1"),
        pytest.param("a: y", {"a": "y"}, id="y is a letter"),
        pytest.param("a: ~\nb:\nc: null", {"a": None, "b": None, "c": None}, id="nulls"),
        pytest.param(
            "[0, -7, 010, 0o10, 0x1F, 0b11]", [0, -7, 8, 8, 31, 3], id="integers in their bases"
        ),
        pytest.param("[0.5, 1e3, 16.0, 08]", [0.5, 1000, 16, 8], id="whole floats are integers"),
        pytest.param("a: 12:30:00", {"a": "12:30:00"}, id="no base 60"),
        pytest.param("a: 2026-07-01", {"a": "2026-07-01"}, id="no dates"),
        pytest.param("1: a\ntrue: b", {"1": "a", "true": "b"}, id="names are text"),
        pytest.param("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}, id="an alias"),
        pytest.param(
            "a: &x {b: 1, c: 1}\nd: {<<: *x, c: 2}\ne: {<<: *x}",
            {"a": {"b": 1, "c": 1}, "d": {"b": 1, "c": 2}, "e": {"b": 1, "c": 1}},
            id="merge keys",
        ),
        pytest.param(
            "a: &x {b: 1}\nc: &y {d: 1}\ne: {<<: *x, <<: *y}",
            {"a": {"b": 1}, "c": {"d": 1}, "e": {"b": 1, "d": 1}},
            id="several merge keys are no duplicates",
        ),
        pytest.param(
            "a: &x {b: 1}\nc: &y {b: 2, d: 3}\ne: {<<: [*x, *y]}",
            {"a": {"b": 1}, "c": {"b": 2, "d": 3}, "e": {"b": 1, "d": 3}},
            id="of merged mappings the first wins",
        ),
        pytest.param("a: <<", {"a": "<<"}, id="a merge key's sign as a value"),
    ],
)
def test_values(text: str | bytes, value: object) -> None:
    assert document(text, source="x") == Document(value, ())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: {b: 1, c: 2, b: 3}\nl: [{}, {x: 1, x: 2}]\na: 4", id="YAML"),
        pytest.param(
            '{"a": {"b": 1, "c": 2, "b": 3}, "l": [{}, {"x": 1, "x": 2}], "a": 4}', id="JSON"
        ),
    ],
)
def test_duplicate_fields_are_reported_with_their_paths(text: str) -> None:
    found = document(text, source="x")
    assert (found.value, sorted(found.duplicates)) == (
        {"a": 4, "l": [{}, {"x": 2}]},
        [
            'strict decoding error: duplicate field "a"',
            'strict decoding error: duplicate field "a.b"',
            'strict decoding error: duplicate field "l[1].x"',
        ],
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "<<: {[1]: 2}", "x: not YAML: line 1, column 6: ", id="merged, with odd names"
        ),
        pytest.param("<<: [{a: 1}, 2]", "x: not YAML: line 1, column 14: ", id="merged text"),
        pytest.param("a: [", "x: not YAML: line 1, column 5: ", id="an open list"),
        pytest.param('{"a": 1', "x: not YAML: line 1, column 8: ", id="an open object"),
        pytest.param("a: 1\n---\nb: 2", "x: not YAML: line 2, column 1: ", id="two documents"),
        pytest.param("a: !!binary YQ==", "x: not YAML: line 1, column 4: ", id="bytes"),
        pytest.param("a: !!int x", "x: not YAML: line 1, column 4: ", id="a tag that lies"),
        pytest.param("a: !!set {b}", "x: not YAML: line 1, column 4: ", id="a set"),
        pytest.param("? [a]\n: 1", "x: not YAML: line 1, column 3: ", id="a list for a name"),
        pytest.param("&x [*x]", "x: not YAML: line 1, column 1: ", id="an endless list"),
        pytest.param("a: \x01", "x: not YAML: unacceptable character", id="a control character"),
        pytest.param(b"a: \xff", "x: not UTF-8: ", id="not text"),
        pytest.param('a: "\\UFFFFFFFF"', "x: not YAML: ", id="no such character"),
        pytest.param('{"a": ' + "9" * 5000 + "}", "x: not YAML: ", id="an endless number"),
        pytest.param("[" * 100_000, "x: nested too deeply", id="very deep"),
    ],
)
def test_text_that_cannot_be_decoded(text: str | bytes, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        document(text, source="x")
    assert str(error.value)[: len(message)] == message
    assert "\n" not in str(error.value)


@given(st.text(alphabet="ab:,[]{}\"'-&*<! \n\t#|>?@%0"))
def test_any_text_has_a_value_or_a_config_error(text: str) -> None:
    try:
        found = document(text, source="x")
    except ConfigError:
        return
    json.dumps(found.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), json_values))
def test_json_reads_as_json(value: dict[str, object]) -> None:
    assert document(json.dumps(value), source="x") == Document(value, ())


NINES: Final = "a0: &a0 {x: 1}\n" + "\n".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)
)
MERGED_NINES: Final = "a0: &a0 {x: 1}\n" + "\n".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 9)
)


@pytest.mark.parametrize("text", [NINES, MERGED_NINES], ids=["aliases", "merge keys"])
def test_what_repeats_itself_without_end_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="more than 100000 values, repeated ones included"):
        document(text, source="x")


@pytest.mark.parametrize("text", ["%s", "{%s}"], ids=["YAML", "JSON"])
def test_so_many_duplicates_are_told(text: str) -> None:
    separator = ", " if "{" in text else "\n"
    fields = separator.join(['"a": 1'] * 1000)
    assert len(document(text % fields, source="x").duplicates) == 100
