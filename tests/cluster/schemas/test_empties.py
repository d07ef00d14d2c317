"""Empty lists and maps are left out as Go types leave them out; other objects say something."""

from typing import Any

import pytest

from berth.cluster.schemas import builtin
from berth.cluster.schemas.empties import drop_empties, has_empties

POD = "io.k8s.api.core.v1.Pod"
ROLE = "io.k8s.api.rbac.v1.Role"
SLICE = "io.k8s.api.discovery.v1.EndpointSlice"

DROPPED = [
    pytest.param(
        POD,
        {"metadata": {"name": "a", "labels": {}, "finalizers": [], "ownerReferences": []}},
        {"metadata": {"name": "a"}},
        id="of metadata",
    ),
    pytest.param(
        POD,
        {"spec": {"containers": [{"name": "c", "args": [], "resources": {"limits": {}}}]}},
        {"spec": {"containers": [{"name": "c", "resources": {}}]}},
        id="in the items of a list",
    ),
    pytest.param(
        POD,
        {"spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}}]}},
        {"spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}}]}},
        id="not what must be there, and no object of fixed fields",
    ),
    pytest.param(ROLE, {"rules": []}, {"rules": []}, id="not what is written all the same"),
    pytest.param(
        SLICE,
        {"endpoints": [{"addresses": [], "deprecatedTopology": {}}], "ports": []},
        {"endpoints": [{"addresses": []}], "ports": []},
        id="of an item, but not the list itself",
    ),
]


@pytest.mark.parametrize(("name", "given", "left"), DROPPED)
def test_empties_are_left_out(name: str, given: Any, left: Any) -> None:
    drop_empties(builtin.schema(name), given)
    assert given == left


@pytest.mark.parametrize(
    ("json", "answer"),
    [
        pytest.param(b'{"a":{}}', True, id="a map"),
        pytest.param(b'{"a":[ \n ]}', True, id="a list with blanks in it"),
        pytest.param(b'{"a":[1],"b":{"c":2}}', False, id="neither"),
    ],
)
def test_they_are_seen_in_a_text(json: bytes, answer: bool) -> None:
    assert has_empties(json) is answer
