"""Expressions on objects of the API."""

from typing import Any

import pytest

from berth.kube.cel.expressions import Environment
from berth.kube.cel.failures import CompileError, EvaluationError

ENVIRONMENT = Environment("object", "oldObject")
POD = {
    "metadata": {"name": "web-1", "labels": {"app": "web"}},
    "spec": {"replicas": 3, "containers": [{"name": "c", "image": "web:1"}], "ratio": 0.5},
    "none": None,
}


def evaluate(source: str, obj: Any = POD) -> Any:
    values = ENVIRONMENT.bind({"object": obj, "oldObject": None})
    return ENVIRONMENT.compile(source).evaluate(values)


@pytest.mark.parametrize(
    ("source", "want"),
    [
        pytest.param("object.spec.replicas <= 5", True, id="a number"),
        pytest.param("object.spec.replicas == 3.0", True, id="a number of another type"),
        pytest.param("has(object.spec.missing)", False, id="a field that is not there"),
        pytest.param("object.none == null", True, id="null"),
        pytest.param("oldObject == null", True, id="no old object"),
        pytest.param("object.spec.?missing.orValue(1)", 1, id="a default"),
        pytest.param("object.spec.containers.map(c, c.image)", ["web:1"], id="a list"),
        pytest.param("{'a': object.spec.ratio}", {"a": 0.5}, id="a map"),
        pytest.param("object.spec.containers.all(c, c.image.matches('^web:'))", True, id="regex"),
        pytest.param("'%s has %d'.format(['web', object.spec.replicas])", "web has 3", id="format"),
        pytest.param("quantity('1Gi').isGreaterThan(quantity('1M'))", True, id="quantities"),
        pytest.param("url('https://a.example:8443/b?c=d').getHostname()", "a.example", id="a URL"),
        pytest.param("url('https://a.example/b?c=d').getQuery()", {"c": ["d"]}, id="a query"),
        pytest.param("isURL('example')", False, id="no URL"),
        pytest.param("jsonpatch.escapeKey('a/b~c')", "a~1b~0c", id="a key in a path"),
        pytest.param("ip('10.0.0.1').family()", 4, id="an address"),
        pytest.param("cel.bind(n, object.spec.replicas, n + n)", 6, id="a bound name"),
    ],
)
def test_what_an_expression_gives(source: str, want: Any) -> None:
    assert evaluate(source) == want


@pytest.mark.parametrize(
    ("source", "why"),
    [
        pytest.param("object.spec.missing", "no such key: missing", id="a field that is missing"),
        pytest.param("object.spec.replicas + 'a'", "no such overload", id="types that do not fit"),
        pytest.param("url('example')", "URL parse error", id="a function that refuses"),
    ],
)
def test_what_fails_is_said(source: str, why: str) -> None:
    with pytest.raises(EvaluationError, match=why):
        evaluate(source)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        pytest.param("unknown > 1", r"undeclared reference to 'unknown'", id="an unknown variable"),
        pytest.param("1 +", "Syntax error", id="half an expression"),
        pytest.param("'text'", "must evaluate to bool", id="another type"),
    ],
)
def test_what_cannot_be_compiled_is_said(source: str, why: str) -> None:
    with pytest.raises(CompileError, match=why):
        ENVIRONMENT.compile(source, "bool")


def test_a_type_known_late_is_evaluated_then() -> None:
    expression = ENVIRONMENT.compile("object.spec.replicas", "bool")
    with pytest.raises(EvaluationError, match="must evaluate to bool"):
        expression.is_true(ENVIRONMENT.bind({"object": POD, "oldObject": None}))
