"""Label selectors that kube-apiserver refuses, in its words."""

import pytest

from berth.cluster.http.reads import parse_label_selector

NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end"
    " with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for"
    " validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or"
    " '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
PARSE = "unable to parse requirement: "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a b", f"{PARSE}found 'b', expected: in, notin, =, ==, !=, gt, lt", id="word"),
        pytest.param("a=(", f"{PARSE}found '(', expected: identifier", id="bracket for a value"),
        pytest.param("a in b", f"{PARSE}found 'b' expected: '('", id="no brackets"),
        pytest.param("a in (=", f"{PARSE}found '=', expected: ',', ')' or identifier", id="no set"),
        pytest.param("a in (b=c)", f"{PARSE}found '=', expected: ',' or ')'", id="no list"),
        pytest.param("a=b=c", "found '=', expected: ',' or 'end of string'", id="twice"),
        pytest.param("!", f"{PARSE}found '', expected: identifier", id="nothing denied"),
        pytest.param("=a", "found '=', expected: !, identifier, or 'end of string'", id="no key"),
        pytest.param("a,", "found '', expected: identifier after ','", id="an open end"),
        pytest.param("-a=b", f'{PARSE}<nil>: Invalid value: "-a": {NAME_PART}', id="no label key"),
        pytest.param(
            "a=-b", f'{PARSE}values[0][a]: Invalid value: "-b": {LABEL}', id="no label value"
        ),
        pytest.param(
            "a>x",
            f"{PARSE}values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be"
            " an integer",
            id="no number",
        ),
        pytest.param("-a=b=c", f'{PARSE}<nil>: Invalid value: "-a": {NAME_PART}', id="the first"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r":|found") as refused:
        parse_label_selector(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "text", ["", "a", "!a", "a=", "a in ()", "a in (,b,)", "in in (in)", "i>5"]
)
def test_what_is_taken(text: str) -> None:
    parse_label_selector(text)
