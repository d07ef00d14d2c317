"""JSONPath, as CustomResourceDefinitions write it."""

from typing import Any

import pytest

from berth.cluster.json_path import JsonPath, simple_steps

OBJECT: dict[str, Any] = {
    "metadata": {"labels": {"app.example.com/name": "web", "plain": "x"}},
    "spec": {"size": 3, "ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]},
    "status": {
        "conditions": [
            {"type": "Synced", "status": "False"},
            {"type": "Ready", "status": "True"},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        pytest.param(".spec.size", [3], id="a field"),
        pytest.param(".spec.gone.deeper", [], id="a field that is not there"),
        pytest.param(".spec.ports[0].name", ["a"], id="an item"),
        pytest.param(".spec.ports[-1].port", [2], id="the last item"),
        pytest.param(".spec.ports[5].port", [], id="an item that is not there"),
        pytest.param(".spec.ports[*].port", [1, 2], id="all items"),
        pytest.param(".spec.ports[0:1].port", [1], id="some items"),
        pytest.param('.status.conditions[?(@.type=="Ready")].status', ["True"], id="a filter"),
        pytest.param(".status.conditions[?(@.type == 'Ready')].status", ["True"], id="with blanks"),
        pytest.param(".spec.ports[?(@.port>1)].name", ["b"], id="a comparison of numbers"),
        pytest.param(".spec.ports[?(@.name)].port", [1, 2], id="a filter for what is there"),
        pytest.param(r".metadata.labels.app\.example\.com/name", ["web"], id="dots in a name"),
        pytest.param(".metadata.labels['app.example.com/name']", ["web"], id="a quoted name"),
        pytest.param("..port", [1, 2], id="descent"),
    ],
)
def test_find(path: str, found: list[Any]) -> None:
    assert JsonPath(path).find(OBJECT) == found


@pytest.mark.parametrize("path", [".spec[", ".a[?(b)]", ".a b", "..", ".a[x]"])
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        JsonPath(path)


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        pytest.param(".spec.size", ["spec", "size"], id="fields"),
        pytest.param(".spec['a.b']", ["spec", "a.b"], id="a quoted name"),
        pytest.param(".spec.ports[0]", None, id="an item is not a field"),
    ],
)
def test_simple_steps(path: str, steps: list[str] | None) -> None:
    assert simple_steps(path) == steps
