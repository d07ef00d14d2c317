"""Sets of fields against sets of paths."""

from typing import Any

import pytest
from hypothesis import given

from berth.cluster.writes.managed_fields import field_sets
from tests.cluster.writes.managed_fields.trees import Path, path_sets, tree_of


@given(path_sets, path_sets)
def test_the_operations_are_those_of_sets_of_paths(one: set[Path], other: set[Path]) -> None:
    a, b = tree_of(one), tree_of(other)
    assert field_sets.union(a, b) == tree_of(one | other)
    assert field_sets.difference(a, b) == tree_of(one - other)
    assert field_sets.intersection(a, b) == tree_of(one & other)
    assert field_sets.of_paths(*one) == a
    assert set(field_sets.paths_of(a)) == one
    assert all(field_sets.has(a, path) is (path in one) for path in one | other)


def is_in_order(tree: dict[str, Any]) -> bool:
    """Tell whether the elements stand as the operations are to keep them."""
    return [*tree] == [*field_sets.in_order(tree)] and all(map(is_in_order, tree.values()))


@given(path_sets, path_sets)
def test_the_operations_keep_elements_in_order(one: set[Path], other: set[Path]) -> None:
    a, b = field_sets.in_order(tree_of(one)), field_sets.in_order(tree_of(other))
    results = field_sets.union(a, b), field_sets.difference(a, b), field_sets.intersection(a, b)
    for result in (*results, field_sets.without(a, b), field_sets.read(tree_of(one)) or {}):
        assert is_in_order(result)


def test_elements_are_in_the_order_of_structured_merge_diff() -> None:
    elements = [
        *(".", "f:10", "f:9", "f:a"),
        *('k:{"port":9,"protocol":"TCP"}', 'k:{"port":10,"protocol":"SCTP"}'),
        *('k:{"port":10,"protocol":"TCP"}', 'k:{"port":"http"}', 'k:{"porta":1}'),
        *("v:9", "v:10", 'v:"a"', "v:false", "v:true", "i:9", "i:10"),
    ]
    assert [*field_sets.in_order({key: {} for key in reversed(elements)})] == elements


@given(path_sets, path_sets)
def test_without_takes_what_is_in_the_members_too(one: set[Path], other: set[Path]) -> None:
    left = {path for path in one if not any(path[: len(gone)] == gone for gone in other)}
    assert field_sets.without(tree_of(one), tree_of(other)) == tree_of(left)


@given(path_sets)
def test_what_is_written_is_read(one: set[Path]) -> None:
    assert field_sets.read(tree_of(one)) == tree_of(one)


@pytest.mark.parametrize(
    ("said", "want"),
    [
        pytest.param({"f:a": {".": {}}}, {"f:a": {}}, id="an element with itself only is plain"),
        pytest.param({"x:a": {}, "f:b": {}}, {"f:b": {}}, id="unknown elements are left out"),
        pytest.param({"f:a": 1}, None, id="a number is no set"),
        pytest.param({"k:[]": {}}, None, id="keys are an object"),
        pytest.param({"k:{": {}}, None, id="keys are JSON"),
        pytest.param({"v:x": {}}, None, id="values are JSON"),
        pytest.param({"i:x": {}}, None, id="indexes are numbers"),
        pytest.param([], None, id="a list is no set"),
    ],
)
def test_read(said: Any, want: Any) -> None:
    assert field_sets.read(said) == want


def test_a_set_that_is_nested_without_end_is_none() -> None:
    said: dict[str, Any] = {}
    for _ in range(100_000):
        said = {"f:a": said}
    assert field_sets.read(said) is None


def test_paths_are_written_as_conflicts_name_them() -> None:
    tree = {
        "f:spec": {
            "f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}}},
            "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {}},
            "f:replicas": {},
        },
        "f:metadata": {"f:finalizers": {'v:"f"': {}}, "f:labels": {"f:a.b/c": {}}},
    }
    assert [field_sets.path_text(path) for path in field_sets.paths_of(tree)] == [
        '.metadata.finalizers[="f"]',
        ".metadata.labels.a.b/c",
        ".spec.replicas",
        '.spec.containers[name="c"]',
        '.spec.containers[name="c"].image',
        '.spec.ports[containerPort=80,protocol="TCP"]',
    ]
