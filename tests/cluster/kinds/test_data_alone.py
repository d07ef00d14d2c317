"""A kind that a server has by data alone: fields, defaults and constraints, without code."""

from typing import Any

import pytest

from berth.cluster.errors import StatusError
from berth.cluster.kinds.fields import field_of, kind_of, text
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas.types import Field, ListOf, Scalar, Schema
from berth.cluster.strategies import syntax
from berth.cluster.strategies.by_schema import of_schema
from berth.cluster.strategies.constraints import Constraints, between, distinct, named
from tests.cluster.writes.booted import Booted

PORT = Schema(
    "example.v1.Port",
    lambda: {
        "name": text(1),
        "number": field_of(2, Scalar("int32")),
        "protocol": Field(Scalar("string"), default="TCP", enum=("TCP", "UDP"), number=(3,)),
    },
)
SPEC = Schema(
    "example.v1.GatewaySpec",
    lambda: {"owner": text(1), "ports": field_of(2, ListOf(PORT))},
)
SCHEMA = kind_of("example.v1.Gateway", spec=field_of(2, SPEC))
CONSTRAINTS = Constraints(
    {
        "example.v1.GatewaySpec": {"ports": (distinct("name"),)},
        "example.v1.Port": {
            "name": (named(syntax.dns1123_label),),
            "number": (between(1, 65535),),
        },
    }
)
GATEWAYS = ResourceType(
    group="example",
    version="v1",
    kind="Gateway",
    plural="gateways",
    singular="gateway",
    namespaced=True,
    schema=SCHEMA,
    strategy=of_schema(
        SCHEMA,
        namespaced=True,
        constraints=CONSTRAINTS,
        immutable=("spec.owner",),
        generation=True,
    ),
)


def gateway(*ports: Object, owner: str = "a") -> Object:
    spec = {"owner": owner, "ports": [dict(port) for port in ports]}
    return {"metadata": {"name": "g", "namespace": "default"}, "spec": spec}


def test_its_defaults_are_those_of_the_schema() -> None:
    stored = Booted().create(GATEWAYS, gateway({"name": "a", "number": 80}))
    assert stored["spec"]["ports"] == [{"name": "a", "number": 80, "protocol": "TCP"}]
    assert stored["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("ports", "want"),
    [
        pytest.param([{}], "spec.ports[0].name: Required value", id="a name is wanted"),
        pytest.param(
            [{"name": "a"}, {"name": "a"}],
            'spec.ports[1].name: Duplicate value: "a"',
            id="names differ",
        ),
        pytest.param(
            [{"name": "a", "number": 70000}],
            "spec.ports[0].number: Invalid value: 70000: must be between 1 and 65535, inclusive",
            id="a number has a range",
        ),
        pytest.param(
            [{"name": "a", "protocol": "SCTP"}],
            'spec.ports[0].protocol: Unsupported value: "SCTP": supported values: "TCP", "UDP"',
            id="the schema lists the protocols",
        ),
    ],
)
def test_its_constraints_hold(ports: list[Any], want: str) -> None:
    with pytest.raises(StatusError) as refused:
        Booted().create(GATEWAYS, gateway(*ports))
    assert str(refused.value) == f'Gateway.example "g" is invalid: {want}'


def test_what_is_immutable_stays() -> None:
    cluster = Booted()
    cluster.create(GATEWAYS, gateway())
    with pytest.raises(StatusError, match=r"spec\.owner: Invalid value: "):
        cluster.update(GATEWAYS, "default/g", lambda old: {**old, "spec": {"owner": "b"}})
