"""Rules in CEL: compiled with their definition, asked of objects."""

from typing import Any

import pytest

from berth.cluster.custom.rule_validation import validate_rules
from berth.cluster.custom.rules import evaluator
from berth.cluster.custom.walk import Schema

INTEGER: Schema = {"type": "integer"}
STRING: Schema = {"type": "string"}
SPEC: Schema = {
    "type": "object",
    "properties": {
        "min": INTEGER,
        "max": INTEGER,
        "ratio": {"type": "number"},
        "names": {"type": "array", "maxItems": 10, "items": STRING},
        "labels": {"type": "object", "maxProperties": 10, "additionalProperties": STRING},
        "port": {"x-kubernetes-int-or-string": True},
        "since": {"type": "string", "format": "date-time"},
        "every": {"type": "string", "format": "duration"},
        "blob": {"type": "string", "format": "byte"},
        "maybe": {"type": "string", "nullable": True},
        "my-name": STRING,
        "namespace": STRING,
        "nested": {"type": "object", "properties": {"size": INTEGER}},
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "properties": {"spec": {"type": "object"}},
        },
        "keyed": {
            "type": "array",
            "maxItems": 10,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": STRING, "size": INTEGER},
            },
        },
    },
}


def root(spec: Schema) -> Schema:
    return {"type": "object", "properties": {"spec": spec}}


def ruled(*rules: str | dict[str, Any], schema: Schema = SPEC) -> Schema:
    said = [rule if isinstance(rule, dict) else {"rule": rule} for rule in rules]
    return {**schema, "x-kubernetes-validations": said}


def asked(schema: Schema, spec: Any, before: Any = None) -> list[str]:
    old = None if before is None else {"spec": before}
    return [str(each) for each in evaluator(root(schema))({"spec": spec}, old)]


@pytest.mark.parametrize(
    ("rule", "spec"),
    [
        pytest.param("self.min <= self.max", {"min": 1, "max": 2}, id="two numbers"),
        pytest.param("!has(self.min) || self.min > 0", {}, id="a guard"),
        pytest.param("self.ratio < 2.0", {"ratio": 1}, id="a whole number where fractions may be"),
        pytest.param("self.names.all(n, n.startsWith('a'))", {"names": ["ab", "a"]}, id="a list"),
        pytest.param("size(self.names) == 2", {"names": ["ab", "a"]}, id="a size"),
        pytest.param(
            "'k' in self.labels && self.labels['k'] == 'v'", {"labels": {"k": "v"}}, id="map"
        ),
        pytest.param("type(self.port) == int ? self.port > 1 : true", {"port": 2}, id="either"),
        pytest.param(
            "self.since < timestamp('2027-01-01T00:00:00Z')",
            {"since": "2026-01-01T00:00:00Z"},
            id="time",
        ),
        pytest.param("self.every < duration('1h')", {"every": "30m"}, id="a duration"),
        pytest.param("self.blob == b'abc'", {"blob": "YWJj"}, id="bytes"),
        pytest.param("self.__namespace__ == 'x'", {"namespace": "x"}, id="a reserved name"),
        pytest.param("self.my__dash__name == 'x'", {"my-name": "x"}, id="a name with a dash"),
        pytest.param("self.?nested.?size.orValue(3) == 3", {}, id="optionals"),
        pytest.param("quantity('1Gi').isGreaterThan(quantity('1Mi'))", {}, id="quantities"),
        pytest.param("self.maybe == null", {"maybe": None}, id="null"),
        pytest.param("self.names.exists(n, n == 'self.gone')", {"names": ["self.gone"]}, id="text"),
        pytest.param(
            "has(self.template.metadata.name) && self.template.kind == 'Pod'",
            {"template": {"kind": "Pod", "metadata": {"name": "n", "labels": {}}}},
            id="an object inside",
        ),
        pytest.param("isURL('https://a/b') && url('https://a/b').getHost() == 'a'", {}, id="URLs"),
        pytest.param(
            "has(self.nested) && has(self.nested.size)", {"nested": {"size": 1}}, id="has"
        ),
    ],
)
def test_holds(rule: str, spec: Any) -> None:
    assert validate_rules(root(ruled(rule)), "s") == []
    assert asked(ruled(rule), spec) == []


@pytest.mark.parametrize(
    ("rule", "spec", "message"),
    [
        pytest.param(
            "self.min > 1", {"min": 1}, "spec: Invalid value: failed rule: self.min > 1", id="plain"
        ),
        pytest.param(
            {"rule": "self.min > 1", "message": "min is too small"},
            {"min": 1},
            "spec: Invalid value: min is too small",
            id="a message",
        ),
        pytest.param(
            {"rule": "self.min > 1", "messageExpression": "'min is ' + string(self.min)"},
            {"min": 1},
            "spec: Invalid value: min is 1",
            id="a message that is computed",
        ),
        pytest.param(
            {"rule": "self.min > 1", "reason": "FieldValueForbidden", "fieldPath": ".min"},
            {"min": 1},
            "spec.min: Forbidden: failed rule: self.min > 1",
            id="a reason and a place",
        ),
        pytest.param(
            "self.min > 1",
            {},
            'spec: Invalid value: "object": no such key: min evaluating rule: self.min > 1',
            id="a field that is not there",
        ),
    ],
)
def test_fails(rule: Any, spec: Any, message: str) -> None:
    assert asked(ruled(rule), spec) == [message]


def test_scalars_are_shown() -> None:
    schema = {"type": "object", "properties": {"min": ruled("self > 1", schema=INTEGER)}}
    assert asked(schema, {"min": 1}) == ["spec.min: Invalid value: 1: failed rule: self > 1"]


IMMUTABLE = "self == oldSelf"


@pytest.mark.parametrize(
    ("schema", "spec", "before", "failures"),
    [
        pytest.param(
            ruled("self.min >= oldSelf.min"), {"min": 1}, None, 0, id="there is no old one"
        ),
        pytest.param(
            ruled("self.min >= oldSelf.min"), {"min": 1}, {"min": 2}, 1, id="a transition"
        ),
        pytest.param(
            ruled({"rule": "oldSelf.hasValue() || self.min == 0", "optionalOldSelf": True}),
            {"min": 1},
            None,
            1,
            id="an optional old one on a create",
        ),
        pytest.param(
            ruled({"rule": "oldSelf.hasValue() || self.min == 0", "optionalOldSelf": True}),
            {"min": 1},
            {"min": 0},
            0,
            id="an optional old one on an update",
        ),
        pytest.param(ruled("self.min > 5"), {"min": 1}, {"min": 1}, 0, id="wrong as before"),
        pytest.param(ruled("self.min > 5"), {"min": 2}, {"min": 1}, 1, id="wrong in a new way"),
    ],
)
def test_transitions(schema: Schema, spec: Any, before: Any, failures: int) -> None:
    assert len(asked(schema, spec, before)) == failures


def test_items_with_keys_have_predecessors() -> None:
    keyed = SPEC["properties"]["keyed"]
    item = ruled("self.size >= oldSelf.size", schema=keyed["items"])
    schema = {"type": "object", "properties": {"keyed": {**keyed, "items": item}}}
    before = {"keyed": [{"name": "a", "size": 2}]}
    after = {"keyed": [{"name": "b", "size": 1}, {"name": "a", "size": 1}]}
    assert asked(schema, after, before) == [
        "spec.keyed[1]: Invalid value: failed rule: self.size >= oldSelf.size"
    ]


def test_the_name_of_an_object_can_be_ruled() -> None:
    schema = ruled("self.metadata.name.startsWith('a')", schema=root(SPEC))
    assert validate_rules(schema, "s") == []
    failed = evaluator(schema)({"metadata": {"name": "b"}}, None)
    assert [each.field for each in failed] == ["<nil>"]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        pytest.param(
            "self.gone > 1",
            "compilation failed: ERROR: <input>:1:5: undefined field 'gone'\n"
            " | self.gone > 1\n | ....^",
            id="a field that the schema does not have",
        ),
        pytest.param(
            "self.min > 'x'",
            "compilation failed: ERROR: <input>:1:10: found no matching overload for '_>_' applied "
            "to '(int, string)'\n | self.min > 'x'\n | .........^",
            id="a wrong type",
        ),
        pytest.param(
            "self.min >",
            "compilation failed: ERROR: <input>:1:11: Syntax error:",
            id="a syntax error",
        ),
        pytest.param("self.min", "cel expression must evaluate to a bool", id="no yes or no"),
    ],
)
def test_what_cannot_be_compiled(rule: str, message: str) -> None:
    (error,) = validate_rules(root(ruled(rule)), "s")
    assert error.field == "s.properties[spec].x-kubernetes-validations[0].rule"
    assert message in error.message


def listed(item: Schema, most: int | None = None) -> Schema:
    limit = {} if most is None else {"maxItems": most}
    return {"type": "array", "items": item, **limit}


def shaped(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


ONE_OF_FOUR = " + ".join(f"(has(self.{name}) ? 1 : 0)" for name in "abcd") + " <= 1"
TEXTS = dict.fromkeys("abcd", STRING)
LONG = listed(STRING)
SHORT = {**STRING, "maxLength": 9}
OVER = "Forbidden: estimated rule cost exceeds budget by factor of "


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        pytest.param(
            shaped(a=listed(shaped(b=listed(shaped(name=ruled("self != ''", schema=STRING)))))),
            "",
            id="a text in lists without limits: as many as fit in a request",
        ),
        pytest.param(
            shaped(a=listed(shaped(b=listed(ruled(ONE_OF_FOUR, schema=shaped(**TEXTS)))))),
            "",
            id="one of four fields in lists without limits",
        ),
        pytest.param(
            shaped(a=listed(ruled(f"{ONE_OF_FOUR} && {ONE_OF_FOUR}", schema=shaped(**TEXTS)))),
            f"{OVER}1.7x",
            id="twice that is more than a million empty objects may cost",
        ),
        pytest.param(
            shaped(
                a=listed(
                    {
                        **ruled(f"{ONE_OF_FOUR} && {ONE_OF_FOUR}", schema=shaped(**TEXTS)),
                        "required": ["a", "b"],
                    }
                )
            ),
            "",
            id="but there are fewer objects with required fields",
        ),
        pytest.param(
            shaped(a=listed(listed(ruled("self.contains('x')", schema=STRING), 10), 10)),
            f"{OVER}3.1x",
            id="lists with limits, of long texts",
        ),
        pytest.param(
            shaped(
                a=listed(
                    listed(ruled("self.contains('x')", schema={**STRING, "maxLength": 9}), 10), 10
                )
            ),
            "",
            id="lists with limits, of short texts",
        ),
        pytest.param(
            ruled("self.a.all(x, self.b.exists(y, x == y))", schema=shaped(a=LONG, b=LONG)),
            f"{OVER}more than 100x",
            id="loops within loops",
        ),
        pytest.param(
            ruled(
                "self.a.all(x, self.b.exists(y, x.name == y.name))",
                schema=shaped(a=listed(shaped(name=SHORT), 16), b=listed(shaped(name=SHORT), 16)),
            ),
            "",
            id="loops within loops over what is small",
        ),
    ],
)
def test_what_rules_may_cost(schema: Schema, message: str) -> None:
    errors = validate_rules(root(schema), "s")
    assert [error.message.partition(" (")[0] for error in errors] == ([message] if message else [])


def test_messages_are_made_once() -> None:
    schema = shaped(a=listed(ruled("self != ''", schema=STRING)))
    rule = schema["properties"]["a"]["items"]["x-kubernetes-validations"][0]
    rule["messageExpression"] = "self + ' and ' + self + ' are ' + string(size(self))"
    assert validate_rules(root(schema), "s") == []
    rule["messageExpression"] = " + ".join(["self"] * 10)
    (error,) = validate_rules(root(schema), "s")
    assert error.message.startswith("Forbidden: estimated messageExpression cost exceeds budget by")


def test_what_was_before_needs_keys() -> None:
    plain = {"type": "array", "maxItems": 3, "items": ruled(IMMUTABLE, schema=STRING)}
    (error,) = validate_rules(root({"type": "object", "properties": {"a": plain}}), "s")
    assert "oldSelf cannot be used on the uncorrelatable portion" in error.message
