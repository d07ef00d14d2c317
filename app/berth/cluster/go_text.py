"""Words of Go's standard library: of values, and of JSON that it cannot read."""

import json
import re
from typing import Any, Final


def plus_v(value: Any) -> str:
    """Return ``map[spec:map[replicas:2]]`` for ``{"spec": {"replicas": 2}}``."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case dict():
            return f"map[{' '.join(f'{key}:{plus_v(value[key])}' for key in sorted(value))}]"
        case list():
            return f"[{' '.join(map(plus_v, value))}]"
    return str(value)


def as_go_escapes(json_text: str) -> str:
    """Return JSON as ``encoding/json`` writes it: what HTML could take for its own is escaped."""
    for char in "<>&\u2028\u2029":
        json_text = json_text.replace(char, f"\\u{ord(char):04x}")
    return json_text


def not_unmarshalled(value: Any, wanted: str) -> str:
    """Return what Go says of JSON that is no *wanted* type."""
    kinds = {bool: "bool", int: "number", float: "number", str: "string", dict: "object"}
    found = kinds.get(type(value), "array")
    return f"json: cannot unmarshal {found} into Go value of type {wanted}"


_LAYOUT: Final = (
    ("2006", re.compile(r"\d{4}", re.ASCII)),
    ("-", re.compile("-")),
    ("01", re.compile(r"\d\d", re.ASCII)),
    ("-", re.compile("-")),
    ("02", re.compile(r"\d\d", re.ASCII)),
    ("T", re.compile("T")),
    ("15", re.compile(r"\d\d", re.ASCII)),
    (":", re.compile(":")),
    ("04", re.compile(r"\d\d", re.ASCII)),
    (":", re.compile(":")),
    ("05", re.compile(r"\d\d(?:[.,]\d+)?", re.ASCII)),
    ("Z07:00", re.compile(r"Z|[+-]\d\d:\d\d", re.ASCII)),
)
"""RFC 3339, as Go names its parts and looks for them."""
_BOUNDS: Final = (
    ("month", "01", range(1, 13)),
    ("hour", "15", range(24)),
    ("minute", "04", range(60)),
    ("second", "05", range(60)),
)


_MICRO_LAYOUT: Final = (
    *_LAYOUT[:-2],
    ("05", re.compile(r"\d\d", re.ASCII)),
    (".000000", re.compile(r"[.,]\d{6}", re.ASCII)),
    _LAYOUT[-1],
)


def time_error(text: str, *, is_micro: bool = False) -> str:
    """Return what Go says of a text that is no time of RFC 3339.

    With *is_micro* it must have six digits of a second.
    """
    parts_of_layout = _MICRO_LAYOUT if is_micro else _LAYOUT
    layout = "".join(part for part, _ in parts_of_layout)
    said = f"parsing time {json.dumps(text, ensure_ascii=False)} as {json.dumps(layout)}"
    rest, parts = text, {}
    for part, pattern in parts_of_layout:
        match = pattern.match(rest)
        if match is None:
            left = json.dumps(rest, ensure_ascii=False)
            return f"{said}: cannot parse {left} as {json.dumps(part)}"
        parts[part], rest = match[0], rest[match.end() :]
    if rest:
        return f"{said}: extra text: {json.dumps(rest, ensure_ascii=False)}"
    wrong = next((name for name, part, bounds in _BOUNDS if int(parts[part][:2]) not in bounds), "")
    return f"{said.rpartition(' as ')[0]}: {wrong or 'day'} out of range"


def kind_of(value: Any) -> str:
    """Return what Go decodes such a JSON value to."""
    kinds = {
        bool: "bool",
        int: "int64",
        float: "float64",
        str: "string",
        dict: "map",
        list: "slice",
    }
    return kinds.get(type(value), "invalid")


_VALUE: Final = "looking for beginning of value"
_KEY: Final = "looking for beginning of object key string"
_COLON: Final = "after object key"
_AFTER: Final = {
    "": "after top-level value",
    "{": "after object key:value pair",
    "[": "after array element",
}
_CLOSING: Final = {"{": "}", "[": "]"}
_NOT_BLANK: Final = re.compile(r"[^ \t\r\n]")
_SCALAR: Final = re.compile(
    r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+(?P<quote>"?)'
    r"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null"
)


def syntax_error(text: str) -> str:
    """Return what ``encoding/json`` says of *text* that is no JSON; empty if it is.

    It does not tell what is wrong inside of a number or a word.
    """
    state, stack, place, is_empty = _VALUE, [""], 0, False
    while found := _NOT_BLANK.search(text, place):
        char, place = found[0], found.end()
        was_empty, is_empty = is_empty, False
        if char == _CLOSING.get(stack[-1]) and (was_empty or state == _AFTER[stack[-1]]):
            stack.pop()
            state = _AFTER[stack[-1]]
        elif (state, char) in _NEXT:
            state = _NEXT[state, char]
        elif state == _VALUE and char in "{[":
            stack.append(char)
            is_empty = True
            state = _KEY if char == "{" else _VALUE
        elif (state == _VALUE or (state == _KEY and char == '"')) and (
            token := _SCALAR.match(text, place - 1)
        ):
            place = token.end()
            if char == '"' and not token["quote"]:
                wrong = text[place:].removeprefix("\\")[:1]
                if not wrong:
                    break
                where = "string literal" if text[place] == wrong else "string escape code"
                return f"invalid character {_quoted_character(wrong)} in {where}"
            state = _AFTER[stack[-1]] if state == _VALUE else _COLON
        else:
            return f"invalid character {_quoted_character(char)} {state}"
    else:
        if state == _AFTER[""]:
            return ""
    return "unexpected end of JSON input"


_NEXT: Final = {(_COLON, ":"): _VALUE, (_AFTER["{"], ","): _KEY, (_AFTER["["], ","): _VALUE}


def _quoted_character(char: str) -> str:
    if char in ("'", '"'):
        return "'\\''" if char == "'" else "'\"'"
    return f"'{json.dumps(char, ensure_ascii=False)[1:-1]}'"
