"""What null means in each place of an object."""

from typing import Any

import pytest

from berth.cluster.resources import Object
from berth.cluster.schemas import builtin, checks
from berth.cluster.schemas.nulls import complete

POD = builtin.schema("io.k8s.api.core.v1.Pod")
REVISION = builtin.schema("io.k8s.api.apps.v1.ControllerRevision")
DEFINITION = builtin.schema(builtin.JSON_SCHEMA_PROPS)


@pytest.mark.parametrize(
    ("schema", "given", "left"),
    [
        pytest.param(POD, {"spec": None}, {}, id="a field is missing"),
        pytest.param(
            POD,
            {"spec": {"containers": [{"name": "c", "args": None}]}},
            {"spec": {"containers": [{"name": "c"}]}},
            id="a field in a list is missing",
        ),
        pytest.param(
            POD,
            {"spec": {"containers": [None, {"args": ["a", None]}]}},
            {"spec": {"containers": [{"name": ""}, {"name": "", "args": ["a", ""]}]}},
            id="an item is empty",
        ),
        pytest.param(
            POD,
            {"metadata": {"labels": {"a": None}}, "spec": {"overhead": {"cpu": None}}},
            {"metadata": {"labels": {"a": ""}}, "spec": {"overhead": {"cpu": "0"}}},
            id="the value of a key is empty",
        ),
        pytest.param(
            builtin.schema("io.k8s.api.policy.v1.PodDisruptionBudgetStatus"),
            {"disruptedPods": {"p": None, "q": "2023-11-14T22:13:20Z"}},
            {
                "disruptedPods": {"q": "2023-11-14T22:13:20Z"},
                "disruptionsAllowed": 0,
                "currentHealthy": 0,
                "desiredHealthy": 0,
                "expectedPods": 0,
            },
            id="a key without a time says nothing",
        ),
        pytest.param(
            POD,
            {"status": {"conditions": [{"lastTransitionTime": None, "type": None}]}},
            {"status": {"conditions": [{"lastTransitionTime": None, "type": "", "status": ""}]}},
            id="a time that the server writes as null stays",
        ),
        pytest.param(
            POD,
            {"metadata": {"labels": {"lastTransitionTime": None}}},
            {"metadata": {"labels": {"lastTransitionTime": ""}}},
            id="a label of the same name is no time",
        ),
        pytest.param(
            REVISION,
            {"data": {"a": None}},
            {"data": {"a": None}, "revision": 0},
            id="any JSON stays, and a number that is always written is there",
        ),
        pytest.param(
            DEFINITION,
            {"enum": [None, "a"], "default": {"a": None}, "type": None},
            {"enum": [None, "a"], "default": {"a": None}},
            id="an enum of a definition may have null",
        ),
        pytest.param(
            DEFINITION,
            {
                "items": {"type": None, "format": "x"},
                "additionalProperties": {"type": None},
                "dependencies": {"a": ["b", None], "c": {"type": None}},
            },
            {
                "items": {"format": "x"},
                "additionalProperties": {},
                "dependencies": {"a": ["b", ""], "c": {}},
            },
            id="in the definitions below there are fields, too",
        ),
        pytest.param(
            DEFINITION,
            {"items": [{"type": None}, None], "additionalProperties": False},
            {"items": [{}, {}], "additionalProperties": False},
            id="in several as well",
        ),
    ],
)
def test_nulls(schema: Any, given: Object, left: Object) -> None:
    complete(schema, given)
    assert given == left


@pytest.mark.parametrize(
    ("obj", "has_none"),
    [
        (
            {"status": {"conditions": [{"lastTransitionTime": None, "type": "", "status": ""}]}},
            True,
        ),
        ({"status": {"conditions": [{"lastTransitionTime": None}]}}, False),
        ({"spec": {"containers": [None]}}, False),
        ({"spec": {"nodeSelector": {"a": None}}}, False),
        ({"spec": None}, False),
    ],
)
def test_whether_there_are_any(obj: Object, has_none: bool) -> None:
    assert checks.fits(POD, obj)
    assert checks.is_complete(POD, obj) is has_none
