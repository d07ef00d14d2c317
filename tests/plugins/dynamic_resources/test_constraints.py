"""Constraints over attributes that are lists (spec G15.2), against a brute search."""

from collections.abc import Sequence
from functools import partial
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.devices import Device, DeviceAttribute, DeviceConstraint
from berth_plugins.dynamic_resources.constraints import RequestName, attribute_of, constraint_of
from berth_plugins.dynamic_resources.features import Features
from tests.device_builders import DRIVER, claim, device, distinct, exactly, resource_slice, same
from tests.plugins.dynamic_resources.searching import found

ON = Features(list_type_attributes=True)
LINK = f"{DRIVER}/link"


def links(name: str, *values: str) -> Device:
    return device(name, attributes={"link": DeviceAttribute(strings=values)})


def ints(name: str, *values: int) -> Device:
    return device(name, attributes={"link": DeviceAttribute(ints=values)})


def link(name: str, value: str | int) -> Device:
    return device(name, attributes={"link": value})


@pytest.mark.parametrize(
    ("constraint", "devices", "want"),
    [
        pytest.param(
            same(LINK), [links("a", "x", "y"), links("b", "y", "z")], "ab", id="one in common"
        ),
        pytest.param(same(LINK), [links("a", "x"), links("b", "y")], "", id="none in common"),
        pytest.param(
            same(LINK),
            [links("a", "x", "y"), links("b", "y", "z"), links("c", "x", "z")],
            "ab",
            id="two of three, which have none in common together",
        ),
        pytest.param(
            same(LINK), [links("a", "x", "y"), link("b", "y")], "ab", id="a single value is a list"
        ),
        pytest.param(same(LINK), [link("a", "x"), link("b", "x")], "ab", id="single values"),
        pytest.param(same(LINK), [ints("a", 1), ints("b", 2, 1)], "ab", id="integers"),
        pytest.param(same(LINK), [links("a", "1"), ints("b", 1)], "", id="types differ"),
        pytest.param(same(LINK), [links("a", "x"), device("b")], "", id="one lacks the attribute"),
        pytest.param(
            distinct(LINK), [links("a", "x", "y"), links("b", "z")], "ab", id="nothing in common"
        ),
        pytest.param(
            distinct(LINK), [links("a", "x", "y"), links("b", "y", "z")], "", id="not distinct"
        ),
        pytest.param(
            distinct(LINK),
            [links("a", "x", "y"), link("b", "y"), ints("c", 1)],
            "ac",
            id="types differ, so the values do",
        ),
    ],
)
def test_two_devices(constraint: DeviceConstraint, devices: Sequence[Device], want: str) -> None:
    slices = resource_slice("s", *devices, node="n1")
    wanted = claim("c", exactly(2), constraints=[constraint])
    picked = found(wanted, slices, features=ON)
    assert picked == ([f"r0={name}" for name in want] if want else None)


def test_with_the_gate_off_a_list_never_matches() -> None:
    slices = resource_slice("s", links("a", "x"), links("b", "x"), node="n1")
    for constraint in (same(LINK), distinct(LINK)):
        assert found(claim("c", exactly(2), constraints=[constraint]), slices) is None


def test_each_device_of_a_request_is_compared() -> None:
    devices = [links("a", "x"), links("b", "y"), links("c", "x")]
    slices = resource_slice("s", *devices, node="n1")
    wanted = claim("c", exactly(3), constraints=[distinct(LINK)])
    assert found(wanted, slices, features=ON) is None


VALUES = st.lists(st.sampled_from("xyz"), min_size=1, max_size=3, unique=True)


@given(st.lists(VALUES, min_size=1, max_size=6), st.integers(1, 4), st.booleans())
def test_it_finds_devices_if_there_are_any(
    lists: list[list[str]], count: int, has_to_match: bool
) -> None:
    """Also when the search goes back: what is in common grows again."""

    def fits(chosen: Sequence[list[str]]) -> bool:
        if has_to_match:
            return bool(set(chosen[0]).intersection(*chosen))
        return not any(set(one) & set(other) for one, other in combinations(chosen, 2))

    names = [f"d{i}" for i in range(len(lists))]
    slices = resource_slice(
        "s", *(links(name, *values) for name, values in zip(names, lists, strict=True)), node="n1"
    )
    constraint = same(LINK) if has_to_match else distinct(LINK)
    picked = found(claim("c", exactly(count), constraints=[constraint]), slices, features=ON)
    wanted = next(
        (
            [f"r0={names[i]}" for i in chosen]
            for chosen in combinations(range(len(lists)), count)
            if fits([lists[i] for i in chosen])
        ),
        None,
    )
    assert picked == wanted


@pytest.mark.parametrize("constraint", [same(LINK), distinct(LINK)], ids=["same", "distinct"])
def test_a_refused_device_changes_nothing(constraint: DeviceConstraint) -> None:
    made = constraint_of(constraint, ON)
    assert made is not None
    request = RequestName(("r0", ""))
    chosen, refused = links("a", "x", "y"), links("b", "z" if constraint.match_attribute else "x")
    assert made.add(request, partial(attribute_of, chosen, DRIVER))
    assert not made.add(request, partial(attribute_of, refused, DRIVER))
    made.remove(request)
    assert made.add(request, partial(attribute_of, refused, DRIVER))
