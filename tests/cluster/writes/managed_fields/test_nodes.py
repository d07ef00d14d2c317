"""Fields, differences, merges and removals against a naive oracle on flat values."""

from typing import Any

import pytest
from hypothesis import given

from berth.cluster.kinds import builtin as kinds
from berth.cluster.schemas import builtin
from berth.cluster.schemas.types import ABSENT
from berth.cluster.writes.managed_fields.compile import of_schema, of_structural
from berth.cluster.writes.managed_fields.nodes import Difference, Node
from tests.cluster.writes.managed_fields.trees import (
    PRESENT,
    SCHEMA,
    flat,
    paths,
    tree_of,
    values,
)

NODE = of_structural(SCHEMA)

Value = dict[str, Any]


def difference(old: Any, new: Any, node: Any = NODE) -> tuple[Value, Value]:
    found = Difference()
    node.compare_fields(old, new, found)
    return found.changed, found.removed


@given(values, values)
def test_what_changed_and_what_went(old: Value, new: Value) -> None:
    before, after = flat(old), flat(new)
    changed, removed = difference(old, new)
    assert paths(changed) == {path for path, there in after.items() if before.get(path) != there}
    assert paths(removed) == before.keys() - after.keys()
    assert changed == tree_of(paths(changed))
    assert removed == tree_of(paths(removed))


@given(values)
def test_who_applies_a_value_manages_what_it_says(value: Value) -> None:
    """Leaves, items and keys of maps; fields with something in them belong to nobody."""
    said = flat(value)
    inside = {path[:-1] for path in said}
    wanted = {
        path
        for path, there in said.items()
        if there != PRESENT  # a value
        or path[-1].startswith(("k:", "v:"))  # an item
        or (path not in inside and path[-1] not in ("f:tags", "f:items"))  # an empty object
        or (path[0] == "f:open" and len(path) > 1)  # a key
    }
    assert paths(NODE.fields(value) or {}) == wanted


@given(values, values)
def test_a_merge_has_all_that_is_applied_and_else_what_was_there(live: Value, mine: Value) -> None:
    merged = NODE.merge(live, mine)
    found = flat({} if merged is ABSENT else merged)
    wanted = {**flat(live), **flat(mine)}
    for path in list(wanted):  # an object that is applied in place of another kind of value
        if any(flat(mine).get(path[:n], PRESENT) != PRESENT for n in range(1, len(path))):
            del wanted[path]
    assert found == wanted


@given(values, values)
def test_applied_items_come_in_their_order(live: Value, mine: Value) -> None:
    merged = NODE.merge(live, mine)
    if mine.get("tags"):
        assert [tag for tag in merged["tags"] if tag in mine["tags"]] == mine["tags"]


@given(values)
def test_removing_all_that_is_managed_leaves_nothing(value: Value) -> None:
    left = NODE.remove(value, NODE.with_named(NODE.fields(value) or {}))
    assert left is ABSENT or all(each in ([], {}) for each in left.values())


@pytest.mark.parametrize(
    ("live", "mine", "want"),
    [
        pytest.param("x", "c", "xc", id="others' items come first"),
        pytest.param("xa", "ca", "xca", id="as early as they can"),
        pytest.param("axb", "bca", "xbca", id="what is shared in another order is passed over"),
        pytest.param("abx", "ba", "bxa", id="in another order than before"),
        pytest.param("ab", "", "ab", id="nothing is applied"),
        pytest.param("", "ab", "ab", id="nothing is there"),
    ],
)
def test_the_order_of_items(live: str, mine: str, want: str) -> None:
    """Of the lists ``live`` and ``mine``, each letter an item."""
    merged = NODE.merge({"tags": list(live)}, {"tags": list(mine)})
    assert merged["tags"] == list(want)


POD = of_schema(builtin.schema("io.k8s.api.core.v1.Pod"))


def containers(*each: Value) -> Value:
    return {"spec": {"containers": list(each)}}


def test_what_go_writes_of_an_empty_struct_is_there() -> None:
    """``containers`` is null in an empty PodSpec, and ``resources`` an object in a Container."""
    changed, _ = difference({}, containers({"name": "c"}), POD)
    item: Value = {".": {}, "f:name": {}, "f:resources": {}}
    assert changed == {"f:spec": {"f:containers": {'k:{"name":"c"}': item}}}


def test_an_empty_struct_is_the_same_as_none() -> None:
    live, new = containers({"name": "c"}), containers({"name": "c", "resources": {}})
    assert difference(live, new, POD) == ({}, {})
    assert difference(new, live, POD) == ({}, {})


def test_items_of_the_same_keys_belong_to_somebody_together() -> None:
    """A server has objects from before it refused them."""
    twice = containers({"name": "c", "image": "a"}, {"name": "c", "image": "b"})
    once = containers({"name": "c", "image": "a"})
    item: Value = {"f:spec": {"f:containers": {'k:{"name":"c"}': {}}}}
    assert difference(once, twice, POD) == (item, {})
    assert POD.fields(twice) == item


def test_the_default_of_a_key_counts() -> None:
    ports = containers({"name": "c", "ports": [{"containerPort": 80}]})
    below = (POD.fields(ports) or {})["f:spec"]["f:containers"]['k:{"name":"c"}']["f:ports"]
    assert list(below) == ['k:{"containerPort":80,"protocol":"TCP"}']


def test_an_object_in_place_of_a_text_is_another_value() -> None:
    node: Node = of_structural({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    assert difference({"a": "x"}, {"a": {"b": "y"}}, node) == ({"f:a": {".": {}, "f:b": {}}}, {})
    assert difference({"a": {"b": "y"}}, {"a": "x"}, node) == (
        {"f:a": {}},
        {"f:a": {"f:b": {}}},
    )


def test_a_type_that_contains_itself() -> None:
    definition = kinds.find("apiextensions.k8s.io", "v1", "customresourcedefinitions").schema
    properties = {"a": {"properties": {"b": {"type": "string"}}}}
    schema = {"openAPIV3Schema": {"properties": properties}}
    value = {"spec": {"versions": [{"name": "v1", "schema": schema}]}}
    assert of_schema(definition).fields(value) == {"f:spec": {"f:versions": {}}}
