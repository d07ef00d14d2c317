"""Selectors of devices at admission: what a real API server refuses is refused, in its words."""

from typing import Any

import pytest

from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import devices
from tests.cluster.bodies import complaints
from tests.kube.cel.test_cost import EXPENSIVE

META = {"name": "x", "namespace": "default"}


def selectors(*expressions: str) -> list[Object]:
    return [{"cel": {"expression": expression}} for expression in expressions]


def claim(**request: Any) -> Object:
    return {"devices": {"requests": [{"name": "r", **request}]}}


EXACTLY = "devices.requests[0].exactly.selectors[0].cel.expression"
DRIVER = 'device.driver == "gpu.example.com"'


@pytest.mark.parametrize(
    ("strategy", "spec", "path"),
    [
        pytest.param(
            devices.resource_claim(),
            lambda text: claim(exactly={"deviceClassName": "gpu", "selectors": selectors(text)}),
            f"spec.{EXACTLY}",
            id="claim",
        ),
        pytest.param(
            devices.resource_claim(),
            lambda text: claim(
                firstAvailable=[
                    {"name": "a", "deviceClassName": "gpu", "selectors": selectors(text)}
                ]
            ),
            "spec.devices.requests[0].firstAvailable[0].selectors[0].cel.expression",
            id="alternative",
        ),
        pytest.param(
            devices.resource_claim_template(),
            lambda text: {
                "spec": claim(exactly={"deviceClassName": "gpu", "selectors": selectors(text)})
            },
            f"spec.spec.{EXACTLY}",
            id="template",
        ),
        pytest.param(
            devices.device_class(),
            lambda text: {"selectors": selectors(text)},
            "spec.selectors[0].cel.expression",
            id="class",
        ),
    ],
)
@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param(DRIVER, [], id="good"),
        pytest.param(EXPENSIVE, ["Forbidden: too complex, exceeds cost limit"], id="cost"),
        pytest.param(
            '"a".find(device.attributes["d"].?x.orValue("a")) == ""',
            ["Forbidden: too complex, exceeds cost limit"],
            id="a size that nobody knows",
        ),
        pytest.param(
            "1",
            ['Invalid value: "1": must evaluate to bool or the unknown type, not int'],
            id="type",
        ),
        pytest.param(
            "?!",
            [
                'Invalid value: "?!": compilation failed: ERROR: <input>:1:1: Syntax error:'
                " extraneous input '?' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false',"
                " 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
            ],
            id="syntax",
        ),
        pytest.param(
            "x" * 10241, ["Too long: may not be more than 10240 bytes"], id="one byte too long"
        ),
    ],
)
def test_an_expression(
    strategy: Strategy, spec: Any, path: str, expression: str, want: list[str]
) -> None:
    refused = complaints(strategy, {"metadata": META, "spec": spec(expression)})
    mine = [text.partition("\n")[0] for text in refused if text.startswith(path)]
    assert mine == [f"{path}: {text}" for text in want]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"selectors": [{}]}, "spec.selectors[0].cel: Required value", id="of no kind"),
        pytest.param(
            {"selectors": selectors(*["true"] * 33)},
            "spec.selectors: Too many: 33: must have at most 32 items",
            id="too many",
        ),
        pytest.param(
            {"selectors": selectors(*["true" + " " * 10_000] * 5)},
            "spec.selectors: Forbidden: selectors have 50020 bytes together, this cluster takes"
            " 40960",
            id="too long together",
        ),
    ],
)
def test_how_many(spec: Object, want: str) -> None:
    assert want in complaints(devices.device_class(), {"metadata": {"name": "x"}, "spec": spec})


@pytest.mark.parametrize(
    ("expression", "constraint", "want"),
    [
        pytest.param("device.attributes['d'].numa", {"matchAttribute": "a.b/numa"}, [], id="used"),
        pytest.param(
            "device.driver",
            {"distinctAttribute": "a.b/other"},
            ['name: Invalid value: "a.b/numa": must be used by a constraint'],
            id="no constraint is of it",
        ),
        pytest.param(
            "device.",
            {"matchAttribute": "a.b/numa"},
            ['expression: Invalid value: "device.": '],
            id="nothing that can be evaluated",
        ),
    ],
)
def test_derived_attributes(expression: str, constraint: Object, want: list[str]) -> None:
    derived = {"name": "a.b/numa", "expression": expression}
    request = {"deviceClassName": "gpu", "derivedAttributes": [derived]}
    spec = claim(exactly=request)
    spec["devices"]["constraints"] = [constraint]
    found = complaints(devices.resource_claim(), {"metadata": META, "spec": spec})
    where = "spec.devices.requests[0].exactly.derivedAttributes[0]."
    mine = [each.removeprefix(where) for each in found if each.startswith(where)]
    assert len(mine) == len(want)
    assert all(each.startswith(text) for each, text in zip(mine, want, strict=True))
