"""Slices with the taints of DeviceTaintRules (spec G15.1), against a plain computation of them."""

from collections.abc import Iterable
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from berth.kube.objects.devices import (
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    ResourceSlice,
)
from berth.kube.objects.meta import ObjectMeta
from berth.kube.objects.node import Taint
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.resource_slice_tracker import ResourceSliceTracker
from tests.device_builders import device, resource_slice

OWN = Taint(key="own", effect="NoSchedule")


def rule(
    name: str, selects: dict[str, str] | None, *, effect: str = "NoSchedule"
) -> DeviceTaintRule:
    selector = None if selects is None else DeviceTaintSelector(**selects)
    spec = DeviceTaintRuleSpec(taint=Taint(key=name, effect=effect), device_selector=selector)
    return DeviceTaintRule(spec=spec, metadata=ObjectMeta(name=name))


def published(name: str, *devices: str, driver: str = "a", pool: str = "p") -> ResourceSlice:
    return resource_slice(
        name, *(device(one, taints=[OWN]) for one in devices), driver=driver, pool=pool
    )


Seen = list[tuple[ResourceSlice | None, ResourceSlice | None]]


def tracker_of(
    *objects: DeviceTaintRule | ResourceSlice,
) -> tuple[Listers, ResourceSliceTracker, Seen]:
    """Return a tracker of *objects*, and what it tells from now on."""
    listers, seen = Listers(), Seen()
    tracker = ResourceSliceTracker(listers)
    put(listers, *objects)
    tracker.follow(lambda old, new: seen.append((old, new)))
    seen.clear()
    return listers, tracker, seen


def put(listers: Listers, *objects: DeviceTaintRule | ResourceSlice) -> None:
    for obj in objects:
        _lister(listers, obj).on_add(obj)


def delete(listers: Listers, obj: DeviceTaintRule | ResourceSlice) -> None:
    _lister(listers, obj).on_delete(obj)


def _lister(listers: Listers, obj: DeviceTaintRule | ResourceSlice) -> Any:
    is_rule = isinstance(obj, DeviceTaintRule)
    return listers.device_taint_rules if is_rule else listers.resource_slices


def taints(slices: Iterable[ResourceSlice]) -> dict[str, list[str]]:
    """Return the keys of taints by slice and device."""
    return {
        f"{one.metadata.name}/{found.name}": [taint.key for taint in found.taints]
        for one in slices
        for found in one.spec.devices
    }


@pytest.mark.parametrize(
    ("selects", "tainted"),
    [
        pytest.param({"driver": "a"}, ["s/x", "s/y", "t/x"], id="driver"),
        pytest.param({"pool": "p"}, ["s/x", "s/y", "u/x"], id="pool"),
        pytest.param({"device": "x"}, ["s/x", "t/x", "u/x"], id="device"),
        pytest.param({"driver": "a", "pool": "p", "device": "y"}, ["s/y"], id="all three"),
        pytest.param({"driver": "a", "pool": "none"}, [], id="a pool that is not there"),
        pytest.param({}, ["s/x", "s/y", "t/x", "u/x"], id="an empty selector is every device"),
        pytest.param(None, ["s/x", "s/y", "t/x", "u/x"], id="and so is none"),
    ],
)
def test_what_a_rule_taints(selects: dict[str, str] | None, tainted: list[str]) -> None:
    slices = (
        published("s", "x", "y"),
        published("t", "x", pool="q"),
        published("u", "x", driver="b"),
    )
    _, tracker, _ = tracker_of(*slices, rule("r", selects))
    found = taints(tracker)
    assert sorted(name for name, keys in found.items() if keys == ["own", "r"]) == tainted
    assert all(keys[0] == "own" for keys in found.values())


def test_slices_that_no_rule_is_for_are_passed_on_as_they_are() -> None:
    one, other = published("s", "x"), published("t", "x", driver="b")
    _, tracker, _ = tracker_of(one, other, rule("r", {"driver": "b"}))
    assert next(found for found in tracker if found.metadata.name == "s") is one
    assert taints([other]) == {"t/x": ["own"]}, "the published slice is not changed"


def test_only_changed_taints_are_told() -> None:
    s, t = published("s", "x"), published("t", "x", driver="b")
    listers, _, seen = tracker_of(s, t)

    put(listers, rule("r", {"driver": "b"}))
    [(old, new)] = seen
    assert old is t
    assert new is not None
    assert taints([new]) == {"t/x": ["own", "r"]}

    seen.clear()
    put(listers, rule("r", {"driver": "b", "pool": "p"}))  # another selector, the same devices
    put(listers, rule("other", {"pool": "none"}))
    assert seen == []

    put(listers, rule("r", {"driver": "b"}, effect="NoExecute"))
    assert [(o and o.metadata.name, n and n.metadata.name) for o, n in seen] == [("t", "t")]

    seen.clear()
    delete(listers, rule("r", {"driver": "b"}, effect="NoExecute"))
    [(old, new)] = seen
    assert new is not None
    assert taints([new]) == {"t/x": ["own"]}


def test_changes_of_slices_are_told_as_they_are() -> None:
    s = published("s", "x")
    listers, _, seen = tracker_of(s, rule("r", {"device": "y"}))
    put(listers, s)
    assert seen == [(s, s)], "also when nothing changed"
    delete(listers, s)
    assert seen[1:] == [(s, None)]


NAMES = st.sampled_from(["a", "b"])
SELECTS = st.none() | st.dictionaries(st.sampled_from(["driver", "pool", "device"]), NAMES)
RULES = st.builds(
    rule, st.sampled_from(["r", "q", "z"]), SELECTS, effect=st.sampled_from(["None", "NoSchedule"])
)
SLICES = st.builds(
    lambda name, devices, driver, pool: published(name, *devices, driver=driver, pool=pool),
    st.sampled_from(["s", "t"]),
    st.lists(NAMES, unique=True, max_size=2),
    NAMES,
    NAMES,
)


@given(st.lists(st.tuples(st.booleans(), RULES | SLICES), max_size=12))
def test_it_is_what_the_rules_say_after_any_changes(
    changes: list[tuple[bool, DeviceTaintRule | ResourceSlice]],
) -> None:
    """And whoever followed has the same slices."""
    listers, tracker, seen = tracker_of()
    for is_there, obj in changes:
        put(listers, obj) if is_there else delete(listers, obj)

    followed: dict[str, ResourceSlice] = {}
    for old, new in seen:
        if old is not None:
            assert followed.pop(old.metadata.name) == old
        if new is not None:
            followed[new.metadata.name] = new

    rules = sorted(listers.device_taint_rules, key=lambda each: each.metadata.name)
    wanted = {}
    for one in listers.resource_slices:
        devices = [
            msgspec.structs.replace(
                found,
                taints=(
                    *found.taints,
                    *(each.spec.taint for each in rules if selects(each, one, found.name)),
                ),
            )
            for found in one.spec.devices
        ]
        spec = msgspec.structs.replace(one.spec, devices=tuple(devices))
        wanted[one.metadata.name] = msgspec.structs.replace(one, spec=spec)
    assert {found.metadata.name: found for found in tracker} == followed == wanted


def selects(by: DeviceTaintRule, one: ResourceSlice, name: str) -> bool:
    selector = by.spec.device_selector or DeviceTaintSelector()
    asked = (selector.driver, selector.pool, selector.device)
    there = (one.spec.driver, one.spec.pool.name, name)
    return all(want is None or want == have for want, have in zip(asked, there, strict=True))
