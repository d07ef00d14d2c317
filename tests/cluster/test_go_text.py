"""What Go says of JSON that is none."""

import pytest

from berth.cluster.go_text import syntax_error

END = "unexpected end of JSON input"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("{bad", "invalid character 'b' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"', "invalid character '\"' after object key:value pair"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("{'a':1}", r"invalid character '\'' looking for beginning of object key string"),
        ('"\\q"', "invalid character 'q' in string escape code"),
        ('"a\n"', r"invalid character '\n' in string literal"),
        ('{"a":', END),
        ('"a', END),
        ("", END),
        ('{"a":[1,{"b":null},[],{}]}', ""),
    ],
)
def test_syntax_error(text: str, want: str) -> None:
    assert syntax_error(text) == want
