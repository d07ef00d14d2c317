"""What searches remember of pools: they find what a search that remembers nothing finds."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.devices import (
    AllocationResult,
    DeviceConstraint,
    ResourceClaim,
    ResourceSlice,
)
from berth_plugins.dynamic_resources import usable_devices
from berth_plugins.dynamic_resources.allocated_devices import AllocatedDevices
from berth_plugins.dynamic_resources.allocator import allocate
from berth_plugins.dynamic_resources.features import DEFAULT, Features
from berth_plugins.dynamic_resources.pools import Pool, shared_pools
from berth_plugins.dynamic_resources.requests import AllocationError, requests_of
from berth_plugins.dynamic_resources.results import allocation_of
from berth_plugins.dynamic_resources.search_result import InvalidPoolsError
from berth_plugins.dynamic_resources.usable_devices import KnownDevices, UsableDevices
from berth_plugins.shared.device_classes import DeviceClassResolver
from tests.builders import node, taint
from tests.device_builders import (
    claim,
    consumable,
    device,
    device_class,
    distinct,
    exactly,
    first_available,
    listers,
    resource_slice,
    same,
)
from tests.plugins.dynamic_resources.searching import AS_1_36

N1 = node("n1")
ALPHA = Features(compatibility_groups=True, derived_attributes=True)
CLASSES = DeviceClassResolver(listers(device_class()))
HAS_SIZE = 'has(device.attributes["gpu.example.com"].size)'
SMALL = f'{HAS_SIZE} && device.attributes["gpu.example.com"].size == 1'
LARGE = f'{HAS_SIZE} && device.attributes["gpu.example.com"].size == 2'
FAILS = 'device.attributes["gpu.example.com"].size == 1'


class NothingKnown(KnownDevices):
    def note(self, asked: object, usable: UsableDevices) -> None:
        pass


Found = list[tuple[str, str, object]] | str | None


class Searches:
    """Searches on one node, one after the other, each with what is allocated until then."""

    def __init__(
        self,
        slices: Sequence[ResourceSlice],
        *,
        remembers: bool = True,
        features: Features = DEFAULT,
    ) -> None:
        self.features = features
        self.pools: tuple[Pool, ...] = shared_pools(listers(*slices), features).pools_of(N1)
        self.in_use = AllocatedDevices()
        self.known = (KnownDevices if remembers else NothingKnown)(self.in_use)
        self.allocations: list[AllocationResult] = []
        self.looks = 0
        """How often the last search looked at the clock."""

    def find(self, wanted: Sequence[ResourceClaim]) -> Found:
        """Search devices for the claims, and allocate what is found."""
        ready = [requests_of(each, CLASSES, self.features) for each in wanted]
        self.looks = 0
        try:
            picks = allocate(
                ready,
                N1,
                self.pools,
                self.in_use,
                is_late=self._is_late,
                known=self.known,
                features=self.features,
            )
        except (AllocationError, InvalidPoolsError) as exc:
            return repr(exc)
        if picks is None:
            return None
        for each, found in zip(ready, picks, strict=True):
            allocation = allocation_of(
                each, found, node_name="n1", rng=random.Random(1), timestamp=None
            )
            self.in_use.add(allocation)
            self.allocations.append(allocation)
        return [
            (str(pick.request.name), str(pick.found.id), pick.share)
            for found in picks
            for pick in found.picks
        ]

    def free(self, index: int) -> None:
        if self.allocations:
            self.in_use.remove(self.allocations.pop(index % len(self.allocations)))

    def _is_late(self) -> bool:
        self.looks += 1
        return False


some_devices = st.lists(
    st.builds(
        lambda attributes, taints, shared, consumes, capacity: {
            "attributes": attributes,
            "taints": taints,
            "shared": shared,
            "consumes": consumes,
            "capacity": capacity,
        },
        st.sampled_from([{"size": 1}, {"size": 1, "rack": 1}, {"size": 2, "rack": 2}, {}]),
        st.sampled_from([(), (), (taint("a"),)]),
        st.booleans(),
        st.sampled_from([{}, {"memory": 1}, {"memory": 2}, {"memory": 1, "cpu": 1}]),
        st.sampled_from([{}, {"memory": 2}]),
    ),
    max_size=4,
)
a_request = st.builds(
    exactly,
    st.sampled_from([1, 1, 2, 2, 3, None]),
    where=st.sampled_from([(), (), (SMALL,), (HAS_SIZE,), (FAILS,)]),
    admin=st.sampled_from([None, None, None, True]),
    capacity=st.sampled_from([{}, {"memory": 1}]),
)
some_requests = st.lists(
    a_request | st.builds(lambda x, y: first_available("f", x=x, y=y), a_request, a_request),
    min_size=1,
    max_size=2,
)
constraints: st.SearchStrategy[list[DeviceConstraint]] = st.lists(
    st.sampled_from([same("gpu.example.com/rack"), same("gpu.example.com/size", "r0")])
    | st.just(distinct("gpu.example.com/size")),
    max_size=2,
)
some_claims = st.lists(st.tuples(some_requests, constraints), min_size=1, max_size=2)


partitions_of_hardware = st.lists(
    st.builds(
        lambda rack, memory, shared, groups: {
            "attributes": {"rack": rack, "size": memory},
            "consumes": {"memory": memory},
            "shared": shared,
            "groups": groups,
        },
        st.sampled_from([1, 2, 3]),
        st.sampled_from([1, 2]),
        st.sampled_from([False, False, False, True]),
        st.sampled_from([(), ("x",), ("y",), ("x", "y")]),
    ),
    min_size=1,
    max_size=3,
)
"""Devices of which constraints refuse many, so that counters stay set aside (see _take)."""
SIZE_OF = 'device.attributes["gpu.example.com"].size'
RACK, SIZE = "gpu.example.com/rack", "gpu.example.com/size"
claims_for_partitions = st.lists(
    st.tuples(
        st.lists(
            st.builds(
                exactly,
                st.sampled_from([1, 2, 2, 3]),
                derived=st.sampled_from([{}, {}, {RACK: "1"}, {RACK: SIZE_OF}]),
            ),
            min_size=1,
            max_size=2,
        ),
        st.sampled_from(
            [
                [same(RACK)],
                [same(RACK, "r0")],
                [same(SIZE, "r1"), same(RACK)],
                [distinct(SIZE), same(RACK)],
                [same(RACK), distinct(SIZE)],
            ]
        ),
    ),
    min_size=1,
    max_size=2,
)


def claims_of(drawn: list[tuple[list[object], list[DeviceConstraint]]]) -> list[ResourceClaim]:
    return [
        claim(f"c{i}", *requests, constraints=constrained)  # type: ignore[arg-type]
        for i, (requests, constrained) in enumerate(drawn)
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([(some_devices, some_claims), (partitions_of_hardware, claims_for_partitions)]),
    st.sampled_from([AS_1_36, DEFAULT, ALPHA, ALPHA]),
    st.data(),
)
def test_what_is_remembered_decides_nothing(
    kind: tuple[st.SearchStrategy[Any], st.SearchStrategy[Any]],
    features: Features,
    data: st.DataObject,
) -> None:
    devices_of_pool, claims = kind
    slices = []
    for p, devices in enumerate(data.draw(st.lists(devices_of_pool, min_size=2, max_size=4))):
        of_pool = [device(f"d{i}", **each) for i, each in enumerate(devices)]
        counters = {"set": {"memory": 3, "cpu": 1}}
        slices += [
            resource_slice(f"s{p}", *of_pool, pool=f"p{p}", node="n1", count=2),
            resource_slice(f"t{p}", pool=f"p{p}", node="n1", count=2, counters=counters),
        ]
    one = Searches(slices, features=features)
    plain = Searches(slices, remembers=False, features=features)
    questions = [claims_of(each) for each in data.draw(st.lists(claims, min_size=1, max_size=3))]
    for asked in data.draw(st.lists(st.sampled_from(questions), min_size=2, max_size=8)):
        assert one.find(asked) == plain.find(asked)
        if data.draw(st.booleans()):
            index = data.draw(st.integers(0, 7))
            one.free(index)
            plain.free(index)


def test_in_1_36_what_a_refused_device_takes_stays_set_aside() -> None:
    """The second pool has two devices for the claim, but the first one's partner was sought there.

    That has taken its counters.
    """
    slices = [
        resource_slice("s0", device("a", attributes={"rack": 0}), pool="p0", node="n1"),
        *partitions(1),
    ]
    wanted = [claim("c", exactly(2), constraints=[same(RACK)])]
    one = Searches(slices, features=AS_1_36)
    assert [one.find(wanted) for _ in range(3)] == [None] * 3
    assert Searches(slices).find(wanted) is not None


def of_rack(rack: int, size: int = 1, memory: int = 0) -> dict[str, Any]:
    return {
        "attributes": {"rack": rack, "size": size},
        "consumes": {"memory": memory} if memory else {},
    }


def pool_of(n: int, *devices: dict[str, Any], memory: int = 0) -> list[ResourceSlice]:
    offered = [device(f"d{i}", **each) for i, each in enumerate(devices)]
    name, count = f"p{n}", 2 if memory else 1
    slices = [resource_slice(f"s{n}", *offered, pool=name, node="n1", count=count)]
    if memory:
        counters = {"set": {"memory": memory}}
        slices.append(resource_slice(f"t{n}", pool=name, node="n1", count=count, counters=counters))
    return slices


@pytest.mark.parametrize(
    ("slices", "wanted", "expected"),
    [
        pytest.param(
            [
                *pool_of(0, of_rack(1)),
                *pool_of(1, of_rack(2, size=2, memory=1), memory=1),
                *pool_of(2, of_rack(1)),
            ],
            claim("c", exactly(2), constraints=[distinct(SIZE), same(RACK)]),
            ["p0/d0", "p2/d0"],
            id="another constraint comes first and forgets the value of the first device",
        ),
        pytest.param(
            [
                *pool_of(0, of_rack(1)),
                *pool_of(1, *(of_rack(3, size, memory=1) for size in (2, 1, 1)), memory=5),
            ],
            claim("c", exactly(1, where=[LARGE]), exactly(2), constraints=[same(RACK, "r1")]),
            ["p1/d0", "p1/d1", "p1/d2"],
            id="a device of the pool is picked for another request",
        ),
    ],
)
def test_refused_pools_that_have_to_be_gone_through(
    slices: Sequence[ResourceSlice], wanted: ResourceClaim, expected: list[str]
) -> None:
    one = Searches(slices, features=AS_1_36)
    assert one.find([claim("too-many", exactly(9))]) is None
    assert _devices(one.find([wanted])) == expected


def test_a_device_that_is_not_compatible_with_one_of_the_search_may_serve_the_next() -> None:
    offered = [{**of_rack(1, 1, memory=1), "groups": ["x"]}, {**of_rack(1, 2, 1), "groups": ["y"]}]
    slices = [*pool_of(0, *offered, memory=9), *pool_of(1, of_rack(1, size=2))]
    small, large = exactly(where=[SMALL]), exactly(where=[LARGE])
    one = Searches(slices, features=ALPHA)
    assert _devices(one.find([claim("c", small, large)])) == ["p0/d0", "p1/d0"]
    one.free(0)
    assert _devices(one.find([claim("d", large)])) == ["p0/d1"]


def _devices(found: Found) -> list[str]:
    assert isinstance(found, list)
    return [id_.partition("/")[2] for _, id_, _ in found]


def shared_device(n: int) -> ResourceSlice:
    """Make a pool with one device that two shares use up."""
    offered = device("d", shared=True, capacity={"memory": consumable(2, default=1)})
    return resource_slice(f"s{n}", offered, pool=f"p{n:03}", node="n1")


def partitions(n: int) -> list[ResourceSlice]:
    """Make a pool in which the first device leaves nothing, and the others go together."""
    devices = [
        device(name, attributes={"rack": n}, consumes={"memory": memory})
        for name, memory in (("both", 2), ("one", 1), ("other", 1))
    ]
    name = f"p{n:03}"
    return [
        resource_slice(f"s{n}", *devices, pool=name, node="n1", count=2),
        resource_slice(f"t{n}", pool=name, node="n1", count=2, counters={"set": {"memory": 2}}),
    ]


@pytest.mark.parametrize(
    ("slices", "wanted"),
    [
        pytest.param(
            [shared_device(n) for n in range(40)],
            [claim("c", exactly(1, capacity={"memory": 1}), exactly(1, capacity={"memory": 1}))],
            id="pools that are used up",
        ),
        pytest.param(
            [partition for n in range(40) for partition in partitions(n)],
            [claim("c", exactly(2), constraints=[same("gpu.example.com/rack")])],
            id="devices that a constraint refuses",
        ),
    ],
)
def test_a_search_looks_at_few_devices_of_pools_that_others_have_searched(
    slices: Sequence[ResourceSlice], wanted: list[ResourceClaim]
) -> None:
    one, plain = Searches(slices), Searches(slices, remembers=False)
    for _ in range(39):
        assert one.find(wanted) == plain.find(wanted) is not None
    assert 4 * one.looks < plain.looks


def test_notes_are_forgotten_when_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usable_devices, "MOST_NOTED", 5)
    one = Searches([shared_device(n) for n in range(8)])
    wanted = [claim("c", exactly(1, where=[SMALL]))]
    assert one.find(wanted) is None
    (asked,) = (each.asked for each in requests_of(wanted[0], CLASSES).requests[0])
    assert len(one.known.by_pool(asked)) == 3
