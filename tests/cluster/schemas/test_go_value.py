"""Values in the order, and in the names, of Go's types."""

import json
from typing import Any

import pytest

from berth.cluster.schemas import builtin
from berth.cluster.schemas.go_value import go_value, in_go_order

CORE = "io.k8s.api.core.v1."


@pytest.mark.parametrize(
    ("type_name", "value", "want"),
    [
        pytest.param(
            "Pod",
            {"status": {}, "spec": {}, "metadata": {}, "apiVersion": "v1", "kind": "Pod"},
            '{"kind":"Pod","apiVersion":"v1","metadata":{},"spec":{},"status":{}}',
            id="fields as they are declared",
        ),
        pytest.param(
            "PodSpec",
            {"nodeSelector": {"b": "", "a": ""}, "containers": [{"image": "i", "name": "c"}]},
            '{"containers":[{"name":"c","image":"i"}],"nodeSelector":{"a":"","b":""}}',
            id="the keys of a map by name, and what is in a list",
        ),
        pytest.param(
            "PersistentVolumeSpec",
            {"accessModes": ["x"], "nfs": {"server": "s", "path": "p"}, "capacity": {}},
            '{"capacity":{},"nfs":{"server":"s","path":"p"},"accessModes":["x"]}',
            id="an embedded struct in its place",
        ),
    ],
)
def test_order(type_name: str, value: Any, want: str) -> None:
    ordered = in_go_order(builtin.schema(CORE + type_name), value)
    assert json.dumps(ordered, separators=(",", ":")) == want
    assert ordered == value


def test_fields_that_are_owned_are_sorted() -> None:
    owned: Any = {"managedFields": [{"fieldsV1": {"f:b": {}, "f:a": {"f:d": {}, ".": {}}}}]}
    ordered = in_go_order(builtin.meta("ObjectMeta"), owned)
    assert json.dumps(ordered["managedFields"][0]["fieldsV1"]) == (
        '{"f:a": {".": {}, "f:d": {}}, "f:b": {}}'
    )


def test_a_value_shows_all_fields_as_go_calls_them() -> None:
    shown = go_value(builtin.schema("io.k8s.api.policy.v1.PodDisruptionBudgetSpec"), {})
    assert shown == {
        "MinAvailable": None,
        "Selector": None,
        "MaxUnavailable": None,
        "UnhealthyPodEvictionPolicy": None,
    }
