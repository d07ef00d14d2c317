"""What structured-merge-diff says of configurations that do not fit."""

from typing import Any

import pytest

from berth.cluster.schemas import builtin
from berth.cluster.writes.managed_fields.checks import MOST_ERRORS, problems
from berth.cluster.writes.managed_fields.compile import of_schema, of_structural
from tests.cluster.writes.managed_fields.trees import SCHEMA

DEPLOYMENT = of_schema(builtin.schema("io.k8s.api.apps.v1.Deployment"))


def container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", **fields}]}}}}


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(container(image="nginx"), "", id="it fits"),
        pytest.param({"spec": None}, "", id="null fits"),
        pytest.param(
            container(foo=1),
            '.spec.template.spec.containers[name="c"].foo: field not declared in schema',
            id="an unknown field of an item",
        ),
        pytest.param(
            {"spec": {"template": {"spec": {"tolerations": [{"foo": 1}]}}}},
            ".spec.template.spec.tolerations[0].foo: field not declared in schema",
            id="an unknown field in a list with one owner",
        ),
        pytest.param(
            {"spec": {"selector": {"foo": 1}}},
            ".spec.selector.foo: field not declared in schema",
            id="an unknown field in an object with one owner",
        ),
        pytest.param(
            container(env=[{"name": "A"}, {"name": "A"}]),
            '.spec.template.spec.containers[name="c"].env: duplicate entries for key [name="A"]',
            id="the same item twice",
        ),
        pytest.param(
            {"metadata": {"ownerReferences": [None, "x"]}},
            ".metadata.ownerReferences: element 0: associative list with keys may not have a null "
            "element",
            id="no item, and no look at those after it",
        ),
        pytest.param(
            {"metadata": {"ownerReferences": ["x"]}},
            ".metadata.ownerReferences: element 0: associative list with keys may not have "
            "non-map elements",
            id="an item that is no object",
        ),
        pytest.param(
            {"metadata": {"finalizers": [None]}},
            ".metadata.finalizers: element 0: associative list without keys has an element "
            "that's an explicit null",
            id="null in a set",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a", {}]}},
            ".metadata.finalizers: element 1: associative list without keys has an element "
            "that's a map type",
            id="an object in a set",
        ),
        pytest.param(
            {"metadata": {"finalizers": [[]]}},
            ".metadata.finalizers: element 0: not supported: associative list with lists as "
            "elements",
            id="a list in a set",
        ),
        pytest.param(
            {"spec": {"replicas": "3"}},
            ".spec.replicas: expected numeric (int or float), got string",
            id="a text for a number",
        ),
        pytest.param(
            {"spec": {"paused": 1.5}},
            ".spec.paused: expected boolean, got &{1.5}",
            id="a number for a boolean",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": True}}},
            ".metadata.labels.a: expected string, got &value.valueUnstructured{Value:true}",
            id="a boolean for a text",
        ),
        pytest.param(
            {"metadata": {"labels": ["a", None]}},
            ".metadata.labels: expected map, got &{[a <nil>]}",
            id="a list for a map",
        ),
        pytest.param(
            {"spec": {"template": {"spec": {"containers": {"b": 1, "a": "x"}}}}},
            ".spec.template.spec.containers: expected list, got &{map[a:x b:1]}",
            id="an object for a list",
        ),
        pytest.param(
            container(command="sh"),
            '.spec.template.spec.containers[name="c"].command: expected list, got &{sh}',
            id="a text for a list with one owner",
        ),
        pytest.param(
            container(resources={"limits": {"cpu": []}}),
            '.spec.template.spec.containers[name="c"].resources.limits.cpu: expected any scalar, '
            "got &{[]}",
            id="a list for a quantity",
        ),
    ],
)
def test_problems(body: Any, want: str) -> None:
    assert problems(DEPLOYMENT, body) == want


def test_an_item_with_one_key_of_two() -> None:
    assert problems(of_structural(SCHEMA), {"items": [{"value": "x"}]}) == ""


def test_an_item_without_any_key() -> None:
    accounts = of_schema(builtin.schema("io.k8s.api.core.v1.ServiceAccount"))
    assert problems(accounts, {"secrets": [{"kind": "x"}]}) == (
        ".secrets: element 0: associative list with keys has an element that omits all key fields "
        '["name"] (and doesn\'t have default values for any key fields)'
    )


def test_only_so_many_are_told() -> None:
    body = {f"field-{number}": 1 for number in range(10 * MOST_ERRORS)}
    assert problems(DEPLOYMENT, body).count("\n") == MOST_ERRORS
