"""The quick answer to whether a body fits is the same as the slow one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.kinds.builtin import STORED, find
from berth.cluster.resources import ResourceType
from berth.cluster.schemas import checks
from tests.cluster.bodies import pod

PODS = find("", "v1", "pods")
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=3,
)
FIELDS = ["metadata", "labels", "spec", "containers", "resources", "limits", "priority", "ports"]
PLACES = st.lists(st.sampled_from(FIELDS), min_size=1, max_size=4)


def slow(resource: ResourceType, body: Any) -> bool:
    return not checks.misfit(resource.schema, body) and not checks.prune(resource.schema, body)


@given(PLACES, ANYTHING)
def test_the_quick_answer_is_the_slow_one(place: list[str], value: Any) -> None:
    assert PODS is not None
    body: Any = pod()
    at = body
    for step in place[:-1]:
        below = at.setdefault(step, {})
        at = below[0] if isinstance(below, list) else below
    at[place[-1]] = value
    assert checks.fits(PODS.schema, body) is slow(PODS, body)


@pytest.mark.parametrize("resource", STORED, ids=lambda each: each.qualified_plural)
def test_every_kind_has_a_type(resource: ResourceType) -> None:
    body = {"kind": resource.kind, "metadata": {"name": "x", "labels": None}}
    assert checks.fits(resource.schema, body)
    assert not checks.fits(resource.schema, {**body, "teapot": 1})
    assert not checks.fits(resource.schema, {**body, "metadata": []})
