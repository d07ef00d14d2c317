"""Definitions in the manner of popular operators, with objects that people write."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from berth.cluster.resources import Object
from tests.cluster.custom.definitions import DEFINITIONS, defined
from tests.cluster.serving import Serving

CHARTS: Final = Path(__file__).with_name("charts")

ISSUER: Final = {"name": "ca"}
LISTENER: Final = {"name": "plain", "port": 9092, "type": "internal", "tls": False}


async def with_chart(name: str) -> tuple[Serving, Object]:
    """Return a server that has a chart's definition, and the definition as it is stored."""
    body = yaml.safe_load((CHARTS / f"{name}.yaml").read_text())
    server = await defined(body)
    return server, await server.get(f"{DEFINITIONS}/{body['metadata']['name']}")


async def create(server: Serving, crd: Object, **parts: Any) -> tuple[int, Object]:
    """Create an object of the first version."""
    spec, first = crd["spec"], crd["spec"]["versions"][0]["name"]
    scope = "/namespaces/default" if spec["scope"] == "Namespaced" else ""
    body = {
        "apiVersion": f"{spec['group']}/{first}",
        "kind": spec["names"]["kind"],
        "metadata": {"name": "one"},
        **parts,
    }
    path = f"/apis/{spec['group']}/{first}{scope}/{spec['names']['plural']}"
    return await server.request("POST", f"{path}?fieldValidation=Strict", body)


@pytest.mark.parametrize(
    ("chart", "spec", "stored"),
    [
        pytest.param(
            "certificates",
            {"secretName": "tls", "issuerRef": ISSUER, "privateKey": {"size": 2048}},
            {
                "secretName": "tls",
                "issuerRef": {"name": "ca", "kind": "Issuer"},
                "privateKey": {"size": 2048, "rotationPolicy": "Always"},
            },
            id="defaults deep inside",
        ),
        pytest.param(
            "monitors",
            {
                "endpoints": [{"targetPort": 8080}, {"targetPort": "web"}],
                "containers": [
                    {
                        "name": "c",
                        "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}],
                        "resources": {"requests": {"cpu": 1, "memory": "1.5Gi"}},
                    }
                ],
            },
            {
                "retention": "24h",
                "endpoints": [{"targetPort": 8080}, {"targetPort": "web"}],
                "containers": [
                    {
                        "name": "c",
                        "ports": [
                            {"containerPort": 1, "protocol": "TCP"},
                            {"containerPort": 1, "protocol": "UDP"},
                        ],
                        "resources": {"requests": {"cpu": 1, "memory": "1.5Gi"}},
                    }
                ],
            },
            id="quantities and keys with defaults",
        ),
        pytest.param(
            "applications",
            {
                "project": "p",
                "destination": {},
                "source": {"helm": {"valuesObject": {"a": [None, {"b": 1.5}]}}},
            },
            {
                "project": "p",
                "destination": {},
                "source": {"helm": {"valuesObject": {"a": [None, {"b": 1.5}]}}},
            },
            id="values of any shape",
        ),
        pytest.param(
            "kafkas",
            {"kafka": {"listeners": [LISTENER], "storage": {"type": "ephemeral"}}},
            {"kafka": {"listeners": [LISTENER], "storage": {"type": "ephemeral"}}},
            id="a union",
        ),
        pytest.param(
            "scalers",
            {
                "triggers": [{"type": "cron", "metadata": {"start": "1"}}],
                "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "any": 1},
            },
            {
                "triggers": [{"type": "cron", "metadata": {"start": "1"}}],
                "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "any": 1},
                "minReplicaCount": 0,
                "maxReplicaCount": 100,
            },
            id="an object inside",
        ),
    ],
)
async def test_what_people_write_is_taken(chart: str, spec: Object, stored: Object) -> None:
    code, answer = await create(*await with_chart(chart), spec=spec)
    assert code == 201, answer
    assert answer["spec"] == stored


@pytest.mark.parametrize(
    ("chart", "spec", "message"),
    [
        pytest.param(
            "certificates",
            {"secretName": "tls", "issuerRef": ISSUER, "privateKey": {"size": 8}},
            "spec: Invalid value: the key is too short",
            id="a rule",
        ),
        pytest.param(
            "monitors",
            {"retention": "forever"},
            "spec.retention in body should match '^(0|([0-9]+(y|w|d|h|m|s|ms))+)$'",
            id="a pattern",
        ),
        pytest.param(
            "monitors",
            {"containers": [{"name": "c", "ports": [{"containerPort": 1}, {"containerPort": 1}]}]},
            'spec.containers[0].ports[1]: Duplicate value: {"containerPort":1,"protocol":"TCP"}',
            id="the same keys by default",
        ),
        pytest.param(
            "kafkas",
            {"kafka": {"listeners": [LISTENER], "storage": {"type": "persistent-claim"}}},
            '<nil>: Invalid value: "": "spec.kafka.storage" must validate one and only one schema '
            "(oneOf). Found none valid",
            id="half of a union",
        ),
        pytest.param(
            "scalers",
            {"triggers": [], "minReplicaCount": 7, "maxReplicaCount": 3},
            "spec.minReplicaCount: Invalid value: min 7 exceeds max 3",
            id="a message that is computed",
        ),
        pytest.param(
            "scalers",
            {"triggers": [], "template": {"kind": "Pod"}},
            "spec.template.apiVersion: Required value: must not be empty",
            id="an object inside without a version",
        ),
    ],
)
async def test_what_is_wrong_is_said(chart: str, spec: Object, message: str) -> None:
    code, answer = await create(*await with_chart(chart), spec=spec)
    assert code == 422, answer
    assert message in answer["message"]


@pytest.mark.parametrize("chart", sorted(path.stem for path in CHARTS.iterdir()))
async def test_definitions_are_published(chart: str) -> None:
    server, crd = await with_chart(chart)
    spec = crd["spec"]
    for version in spec["versions"]:
        path = f"/openapi/v3/apis/{spec['group']}/{version['name']}"
        schemas = (await server.get(path))["components"]["schemas"]
        assert any(name.endswith(f"{version['name']}.{spec['names']['kind']}") for name in schemas)
    assert (await server.get("/openapi/v2"))["definitions"]
