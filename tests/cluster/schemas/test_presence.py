"""What is left out of an object, and what is added, where the API's Go types write it."""

from typing import Any

import pytest

from berth.cluster.resources import Object
from berth.cluster.schemas import builtin, checks
from berth.cluster.schemas.presence import complete
from berth.cluster.schemas.types import Schema

CORE = "io.k8s.api.core.v1."
POD = builtin.schema(f"{CORE}Pod")
POD_SPEC = builtin.schema(f"{CORE}PodSpec")
META = builtin.meta("ObjectMeta")
DEFINITION = builtin.schema(builtin.JSON_SCHEMA_PROPS)

CASES = [
    pytest.param(POD_SPEC, {"nodeName": None}, {"containers": None}, id="null is missing"),
    pytest.param(
        POD_SPEC,
        {"containers": [{"name": "c", "args": None}]},
        {"containers": [{"name": "c", "resources": {}}]},
        id="null in a list is missing, and an object held by value is written",
    ),
    pytest.param(
        POD_SPEC,
        {"containers": [None, {"args": ["a", None]}]},
        {
            "containers": [
                {"name": "", "resources": {}},
                {"name": "", "args": ["a", ""], "resources": {}},
            ]
        },
        id="an item is empty",
    ),
    pytest.param(
        META, {"labels": {"a": None}}, {"labels": {"a": ""}}, id="the value of a key is empty"
    ),
    pytest.param(
        POD_SPEC,
        {"overhead": {"cpu": None}},
        {"containers": None, "overhead": {"cpu": "0"}},
        id="a quantity of a key is none",
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
        id="a key without a time says nothing, and numbers are always written",
    ),
    pytest.param(
        builtin.schema(f"{CORE}PodCondition"),
        {"lastTransitionTime": None, "type": None},
        {"lastProbeTime": None, "lastTransitionTime": None, "type": "", "status": ""},
        id="times held by value are written as null",
    ),
    pytest.param(
        META,
        {"labels": {"lastTransitionTime": None}},
        {"labels": {"lastTransitionTime": ""}},
        id="a label of the same name is no time",
    ),
    pytest.param(
        META,
        {"name": "a", "labels": {}, "finalizers": [], "ownerReferences": [], "generateName": ""},
        {"name": "a"},
        id="what is empty is left out",
    ),
    pytest.param(
        POD_SPEC,
        {"hostNetwork": False, "shareProcessNamespace": False, "priority": 0, "nodeName": ""},
        {"containers": None, "shareProcessNamespace": False, "priority": 0},
        id="zeros are left out, but not those of pointers",
    ),
    pytest.param(
        POD_SPEC,
        {"volumes": [{"name": "v", "emptyDir": {}}], "affinity": {"podAffinity": {}}},
        {
            "containers": None,
            "volumes": [{"name": "v", "emptyDir": {}}],
            "affinity": {"podAffinity": {}},
        },
        id="an object that is held by pointer says something",
    ),
    pytest.param(
        builtin.schema("io.k8s.api.rbac.v1.Role"),
        {"rules": []},
        {"metadata": {}, "rules": None},
        id="a list that is always written is null when it is empty",
    ),
    pytest.param(
        builtin.schema("io.k8s.api.core.v1.PersistentVolumeClaimSpec"),
        {"storageClassName": "", "volumeName": ""},
        {"storageClassName": "", "resources": {}},
        id="an empty text may say something",
    ),
    pytest.param(
        builtin.schema(f"{CORE}LocalObjectReference"), {"name": ""}, {}, id="a name that is none"
    ),
    pytest.param(
        builtin.schema(f"{CORE}ResourceFieldSelector"),
        {"resource": "limits.cpu"},
        {"resource": "limits.cpu", "divisor": "0"},
        id="a quantity that is always written",
    ),
    pytest.param(
        builtin.schema("io.k8s.api.apps.v1.ControllerRevision"),
        {"data": {"a": None, "b": []}},
        {"metadata": {}, "data": {"a": None, "b": []}, "revision": 0},
        id="any JSON stays",
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
]


@pytest.mark.parametrize(("schema", "given", "left"), CASES)
def test_complete(schema: Schema, given: Object, left: Object) -> None:
    complete(schema, given)
    assert given == left


@pytest.mark.parametrize(("schema", "given", "left"), CASES)
def test_complete_twice(schema: Schema, given: Any, left: Object) -> None:
    complete(schema, given)
    complete(schema, given)
    assert given == left


@pytest.mark.parametrize(
    ("obj", "is_complete"),
    [
        ({"metadata": {}, "spec": {"containers": []}, "status": {}}, True),
        ({"metadata": {}, "spec": {"containers": None}, "status": {}}, True),
        ({"metadata": {}, "spec": {"containers": []}}, False),
        ({"metadata": {}, "spec": {"containers": [None]}, "status": {}}, False),
        (
            {"metadata": {}, "spec": {"containers": [], "nodeSelector": {"a": None}}, "status": {}},
            False,
        ),
        (
            {
                "metadata": {},
                "spec": {"containers": []},
                "status": {"conditions": [{"lastTransitionTime": None, "type": "", "status": ""}]},
            },
            False,
        ),
    ],
)
def test_whether_it_is_complete(obj: Object, is_complete: bool) -> None:
    assert checks.fits(POD, obj)
    assert checks.is_complete(POD, obj) is is_complete
