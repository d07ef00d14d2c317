"""Pruning and defaulting of any value by any structural schema."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.custom.defaulting import default
from berth.cluster.custom.pruning import prune
from berth.cluster.custom.walk import Schema

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "default": "x"},
        {"type": "string", "nullable": True},
        {"type": "integer", "default": 1},
        {"x-kubernetes-int-or-string": True},
    ]
)


def _larger(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    fields = st.dictionaries(NAMES, inner, max_size=3)
    return st.one_of(
        fields.map(lambda each: {"type": "object", "properties": each}),
        fields.map(lambda each: {"type": "object", "properties": each, "default": {}}),
        fields.map(
            lambda each: {
                "type": "object",
                "properties": each,
                "x-kubernetes-preserve-unknown-fields": True,
            }
        ),
        inner.map(lambda each: {"type": "object", "additionalProperties": each}),
        inner.map(lambda each: {"type": "array", "items": each}),
    )


SCHEMAS = st.recursive(SCALARS, _larger, max_leaves=12)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.sampled_from(["", "x"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(SCHEMAS, VALUES)
def test_the_second_time_changes_nothing(schema: Schema, value: Any) -> None:
    whole = {"type": "object", "properties": {"spec": schema}}
    obj = {"kind": "K", "metadata": {"any": 1}, "spec": value}
    prune(whole, obj)
    default(whole, obj)
    once = copy.deepcopy(obj)
    assert prune(whole, obj) == []
    default(whole, obj)
    assert obj == once
    assert obj["metadata"] == {"any": 1}


def test_unknown_fields_are_told_of_in_order() -> None:
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"items": {"type": "array", "items": {}}}},
            "template": {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
        },
    }
    obj = {
        "spec": {"b": 1, "a": 2, "items": [{"x": 1}]},
        "template": {"metadata": {"name": "n", "odd": 1}, "kept": 1},
        "odd": 1,
    }
    assert prune(schema, obj) == [
        "odd",
        "spec.a",
        "spec.b",
        "spec.items[0].x",
        "template.metadata.odd",
    ]
    assert obj["template"] == {"metadata": {"name": "n"}, "kept": 1}
