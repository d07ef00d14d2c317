"""Values against structural schemas: what is said of what does not fit."""

from typing import Any

import pytest

from berth.cluster.custom.list_types import duplicates
from berth.cluster.custom.validation import ABSENT, validate
from berth.cluster.custom.walk import Schema

STRING: Schema = {"type": "string"}
EITHER: Schema = {"x-kubernetes-int-or-string": True}


def object_of(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def said(schema: Schema, value: Any, before: Any = ...) -> list[str]:
    old = ABSENT if before is ... else {"spec": before}
    return [str(each) for each in validate(object_of(spec=schema), {"spec": value}, old)]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param({"type": "integer"}, 3, id="a number is an integer"),
        pytest.param({"type": "integer"}, 3.0, id="so is a whole one with a point"),
        pytest.param({"type": "number"}, 3, id="an integer is a number"),
        pytest.param(EITHER, 3, id="int-or-string takes numbers"),
        pytest.param(EITHER, "30%", id="int-or-string takes texts"),
        pytest.param({**STRING, "nullable": True}, None, id="null where it may be"),
        pytest.param({**STRING, "format": "unheard-of"}, "x", id="unknown formats mean nothing"),
        pytest.param(
            {**STRING, "format": "date-time"}, "2026-01-02T03:04:05.123456789Z", id="times"
        ),
        pytest.param({**STRING, "format": "duration"}, "1h30m", id="durations"),
        pytest.param({**STRING, "pattern": "b+"}, "abc", id="patterns match anywhere"),
        pytest.param({**STRING, "maxLength": 2}, "éé", id="characters count, not bytes"),
        pytest.param({"type": "number", "multipleOf": 0.1}, 0.3, id="multiples of fractions"),
        pytest.param({"type": "object"}, {"any": 1}, id="an object of which nothing is said"),
        pytest.param({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": 1}, id="one of"),
    ],
)
def test_fits(schema: Schema, value: Any) -> None:
    assert said(schema, value) == []


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        pytest.param(
            {"type": "integer"},
            "3",
            'spec: Invalid value: "string": spec in body must be of type integer: "string"',
            id="a text is no integer",
        ),
        pytest.param(
            {"type": "boolean"},
            1,
            'spec: Invalid value: "integer": spec in body must be of type boolean: "integer"',
            id="one is not true",
        ),
        pytest.param(
            STRING,
            None,
            'spec: Invalid value: "null": spec in body must be of type string: "null"',
            id="null where it may not be",
        ),
        pytest.param(
            EITHER,
            True,
            'spec: Invalid value: "boolean": spec in body must be of type integer,string: '
            '"boolean"',
            id="int-or-string is neither true nor false",
        ),
        pytest.param(
            {**STRING, "format": "uri"},
            "123",
            'spec: Invalid value: "123": spec in body must be of type uri: "123"',
            id="a format",
        ),
        pytest.param(
            {**STRING, "enum": ["a", "b"]},
            "c",
            'spec: Unsupported value: "c": supported values: "a", "b"',
            id="an enum",
        ),
        pytest.param(
            {**STRING, "minLength": 1},
            "",
            'spec: Invalid value: "": spec in body should be at least 1 chars long',
            id="too short",
        ),
        pytest.param(
            {**STRING, "maxLength": 2},
            "abc",
            "spec: Too long: may not be more than 2 bytes",
            id="too long",
        ),
        pytest.param(
            {**STRING, "pattern": "^[0-9]+$"},
            "a",
            "spec: Invalid value: \"a\": spec in body should match '^[0-9]+$'",
            id="a pattern",
        ),
        pytest.param(
            {"type": "integer", "minimum": 1},
            0,
            "spec: Invalid value: 0: spec in body should be greater than or equal to 1",
            id="a minimum",
        ),
        pytest.param(
            {"type": "number", "maximum": 1.0, "exclusiveMaximum": True},
            1,
            "spec: Invalid value: 1: spec in body should be less than 1",
            id="an exclusive maximum",
        ),
        pytest.param(
            {"type": "integer", "multipleOf": 4},
            6,
            "spec: Invalid value: 6: spec in body should be a multiple of 4",
            id="a multiple",
        ),
        pytest.param(
            {"type": "array", "items": STRING, "maxItems": 1},
            ["a", "b"],
            "spec: Too many: 2: must have at most 1 items",
            id="too many items",
        ),
        pytest.param(
            {"type": "array", "items": STRING, "minItems": 1},
            [],
            "spec: Invalid value: 0: spec in body should have at least 1 items",
            id="too few items",
        ),
        pytest.param(
            {"type": "array", "items": object_of(a=STRING)},
            [{}, {"a": 1}],
            'spec[1].a: Invalid value: "integer": spec[1].a in body must be of type string: '
            '"integer"',
            id="an item",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": STRING},
            {"k": 1},
            'spec.k: Invalid value: "integer": spec.k in body must be of type string: "integer"',
            id="a value of a map",
        ),
        pytest.param(
            {**object_of(a=STRING), "required": ["a"]},
            {},
            "spec.a: Required value",
            id="what is required",
        ),
    ],
)
def test_misfits(schema: Schema, value: Any, message: str) -> None:
    assert said(schema, value) == [message]


@pytest.mark.parametrize(
    ("schema", "messages"),
    [
        pytest.param(
            {"anyOf": [{"required": ["b"]}, {"required": ["c", "d"]}]},
            ['"spec" must validate at least one schema (anyOf)', "spec.b: Required value"],
            id="any of",
        ),
        pytest.param(
            {"oneOf": [{"required": ["a"]}, {"minProperties": 1}]},
            ['"spec" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
            id="one of",
        ),
        pytest.param(
            {"allOf": [{"required": ["b"]}, {"minProperties": 1}]},
            ['"spec" must validate all the schemas (allOf)', "spec.b: Required value"],
            id="all of",
        ),
        pytest.param(
            {"not": {"required": ["a"]}}, ['"spec" must not validate the schema (not)'], id="not"
        ),
    ],
)
def test_compositions(schema: Schema, messages: list[str]) -> None:
    head, *rest = messages
    assert said(schema, {"a": 1}) == [f'<nil>: Invalid value: "": {head}', *rest]


KEYED: Schema = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": object_of(name=STRING, size={"type": "integer", "minimum": 1}),
}


def test_what_was_wrong_before_may_stay() -> None:
    schema = object_of(a={**STRING, "maxLength": 1}, b=STRING)
    assert said(schema, {"a": "long", "b": "new"}, {"a": "long"}) == []
    assert said(schema, {"a": "longer"}, {"a": "long"}) != []


def test_items_with_keys_are_compared_with_their_predecessors() -> None:
    before = [{"name": "a", "size": 0}]
    assert said(KEYED, [{"name": "b", "size": 2}, {"name": "a", "size": 0}], before) == []
    assert len(said(KEYED, [{"name": "b", "size": 0}, {"name": "a", "size": 0}], before)) == 1


@pytest.mark.parametrize(
    ("schema", "value", "messages"),
    [
        pytest.param(
            KEYED,
            [{"name": "a"}, {"name": "b"}, {"name": "a"}],
            ['[2]: Duplicate value: {"name":"a"}'],
            id="two items with the same keys",
        ),
        pytest.param(
            {"type": "array", "x-kubernetes-list-type": "set", "items": STRING},
            ["a", "a"],
            ['[1]: Duplicate value: "a"'],
            id="two items that are the same",
        ),
        pytest.param({"type": "array", "items": STRING}, ["a", "a"], [], id="a plain list"),
    ],
)
def test_duplicates(schema: Schema, value: Any, messages: list[str]) -> None:
    assert [str(duplicate) for duplicate in duplicates(schema, value)] == messages
