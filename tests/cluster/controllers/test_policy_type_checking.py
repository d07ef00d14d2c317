"""What the status of a ValidatingAdmissionPolicy says about its expressions."""

from typing import Any

import msgspec
import pytest

from berth.cluster.actions import Patch
from berth.cluster.controllers.policy_type_checking import (
    PATH,
    PolicyTypeCheckingController,
    PolicyView,
)
from berth.cluster.controllers.table import Table
from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.kinds.registry import Registry

REGISTRY = Registry(RESOURCES)
DEPLOYMENTS = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


def status_of(
    *expressions: str, rules: list[Any] | None = None, observed: int = 0, **validation: Any
) -> Any:
    """Return the status that is written; None: none."""
    body = {
        "metadata": {"name": "p", "uid": "u", "generation": 2},
        "spec": {
            "matchConstraints": {"resourceRules": [DEPLOYMENTS] if rules is None else rules},
            "validations": [{"expression": expression, **validation} for expression in expressions],
        },
        "status": {"observedGeneration": observed} if observed else {},
    }
    table: Table[PolicyView] = Table()
    table.on_add(PolicyView.decoder()(msgspec.json.encode(body)))
    actions = PolicyTypeCheckingController(table, registry=REGISTRY).plan("p").actions
    if not actions:
        return None
    (action,) = actions
    assert isinstance(action, Patch)
    assert action.path == f"{PATH}/p/status"
    return action.body["status"]


def test_an_undefined_field_is_a_warning() -> None:
    assert status_of("object.spec.replicas > 1", "object.replicas > 1") == {
        "observedGeneration": 2,
        "typeChecking": {
            "expressionWarnings": [
                {
                    "fieldRef": "spec.validations[1].expression",
                    "warning": "apps/v1, Kind=Deployment: "
                    "ERROR: <input>:1:7: undefined field 'replicas'\n"
                    " | object.replicas > 1\n"
                    " | ......^",
                }
            ]
        },
    }


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("object.metadata.labels.anything == 'x'", id="keys of maps"),
        pytest.param("object.metadata.labels['a'] == 'x'", id="an index"),
        pytest.param("object.spec.template.spec.containers.all(c, c.image != '')", id="items"),
        pytest.param("object.spec.template.spec.containers[0].image != ''", id="an item"),
        pytest.param("request.nowhere == 1 && params.nowhere == 1", id="other variables"),
        pytest.param("has(object.spec.paused) || oldObject == null", id="has"),
        pytest.param("cel.bind(s, object.spec, s.replicas > 1)", id="a name for a part"),
        pytest.param("[object.spec].exists(object, object.replicas > 1)", id="a name of its own"),
        pytest.param("dyn(object).nowhere == 1", id="dyn"),
        pytest.param("object.metadata.labels.exists(k, v, k == v.nowhere)", id="keys and values"),
    ],
)
def test_what_there_is_is_no_warning(expression: str) -> None:
    assert status_of(expression) == {"observedGeneration": 2, "typeChecking": {}}


@pytest.mark.parametrize(
    ("expression", "place", "field"),
    [
        pytest.param(
            "object.spec.template.spec.containers.all(c, c.nam != '')", "1:46", "nam", id="items"
        ),
        pytest.param("has(object.spec.paus)", "1:4", "paus", id="has"),
        pytest.param("true\n&& oldObject.x == 1", "2:13", "x", id="on another line"),
        pytest.param("cel.bind(s, object.spec, s.replica > 1)", "1:27", "replica", id="a bound"),
        pytest.param("object.spec.template.spec.volumes[0].x == 1", "1:37", "x", id="an item"),
    ],
)
def test_where_it_is(expression: str, place: str, field: str) -> None:
    (warning,) = status_of(expression)["typeChecking"]["expressionWarnings"]
    said = f"apps/v1, Kind=Deployment: ERROR: <input>:{place}: undefined field '{field}'"
    assert warning["warning"].split("\n")[0] == said


def test_each_kind_is_checked() -> None:
    (warning,) = status_of(
        "object.spec.replicas > 1 && object.spec.nodeName == ''", rules=[DEPLOYMENTS, PODS]
    )["typeChecking"]["expressionWarnings"]
    lines = [line for line in warning["warning"].split("\n") if "ERROR" in line]
    assert lines == [
        "v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'replicas'",
        "apps/v1, Kind=Deployment: ERROR: <input>:1:40: undefined field 'nodeName'",
    ]


def test_messages_are_checked_too() -> None:
    status = status_of("true", messageExpression="object.nowhere")
    (warning,) = status["typeChecking"]["expressionWarnings"]
    assert warning["fieldRef"] == "spec.validations[0].messageExpression"


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param([], id="no rules"),
        pytest.param([{**DEPLOYMENTS, "apiGroups": ["*"]}], id="any group"),
        pytest.param([{**DEPLOYMENTS, "resources": ["*", "deployments/scale"]}], id="any resource"),
    ],
)
def test_what_may_be_anything_is_not_checked(rules: list[Any]) -> None:
    assert status_of("object.nowhere", rules=rules)["typeChecking"] == {}


def test_each_generation_is_checked_once() -> None:
    assert status_of("object.nowhere", observed=2) is None
