"""Object literals become maps."""

import pytest

from berth.kube.cel.literals import as_maps


@pytest.mark.parametrize(
    ("source", "want"),
    [
        pytest.param("object.spec.replicas", "object.spec.replicas", id="no literal"),
        pytest.param(
            "Object{spec: Object.spec{replicas: 3}}", '{"spec": {"replicas": 3}}', id="nested"
        ),
        pytest.param("Object{}", "{}", id="empty"),
        pytest.param(
            "Object{a: x ? y : z, b: {c: d}}",
            '{"a": x ? y : z, "b": {c: d}}',
            id="a condition and a map, whose names are variables",
        ),
        pytest.param(
            "Object{a: f(b, c), d: [e, g]}", '{"a": f(b, c), "d": [e, g]}', id="calls and lists"
        ),
        pytest.param(
            "[JSONPatch{op: 'add', path: '/a{b: c', value: Object.x{y: 1}}]",
            '[{"op": \'add\', "path": \'/a{b: c\', "value": {"y": 1}}]',
            id="a JSON patch, with brackets in a text",
        ),
        pytest.param("Object{?a: b, `c-d`: e}", '{?"a": b, "c-d": e}', id="optional, and quoted"),
        pytest.param(
            "Object . spec // names it\n{ a: 1 }", "Object . spec // names it\n{ a: 1 }", id="no"
        ),
        pytest.param("myObject{a: 1}", "myObject{a: 1}", id="another type"),
    ],
)
def test_literals(source: str, want: str) -> None:
    assert as_maps(source) == want
