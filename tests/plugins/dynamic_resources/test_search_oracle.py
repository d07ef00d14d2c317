"""The search against one that tries everything and undoes nothing (1.37 spec N4.3, N4.8)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, product

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects.devices import ResourceClaim
from berth_plugins.dynamic_resources.features import Features
from tests.builders import taint
from tests.device_builders import (
    allocation,
    claim,
    device,
    distinct,
    exactly,
    got,
    resource_slice,
    same,
)
from tests.plugins.dynamic_resources.searching import found

MEMORY = 4
"""What all devices share."""


class Offered(msgspec.Struct, frozen=True):
    """A device. ``m`` is its capacity, ``takes`` of the counter."""

    numa: int
    shared: bool
    m: int
    takes: int
    tainted: bool
    groups: frozenset[str]
    """With whom it may take from the counter."""
    others: int
    """What somebody else has of the capacity; of a device that is not shared, all of it or 0."""


class Asked(msgspec.Struct, frozen=True):
    count: int
    m: int


class AskedClaim(msgspec.Struct, frozen=True):
    requests: tuple[Asked, ...]
    match: bool
    differ: bool


offered = st.builds(
    Offered,
    st.integers(0, 2),
    st.booleans(),
    st.integers(1, 3),
    st.integers(0, 2),
    st.sampled_from([False, False, False, True]),
    st.frozensets(st.sampled_from("xy")),
    st.sampled_from([0, 0, 1]),
)
asked = st.builds(
    AskedClaim,
    st.lists(st.builds(Asked, st.integers(1, 2), st.integers(1, 2)), min_size=1, max_size=2).map(
        tuple
    ),
    st.booleans(),
    st.booleans(),
)


def fits(devices: Sequence[Offered], claims: Sequence[AskedClaim], chosen: Sequence[int]) -> bool:
    """Whether *chosen*, which has a device for each that is asked for, overdraws nothing."""
    rest = iter(chosen)
    consumed = Counter[int]({i: each.others for i, each in enumerate(devices)})
    users = Counter[int]({i: 1 for i, each in enumerate(devices) if each.others})
    for of_claim in claims:
        numa = []
        for request in of_claim.requests:
            for _ in range(request.count):
                i = next(rest)
                if devices[i].tainted:
                    return False
                consumed[i] += request.m
                users[i] += 1
                numa.append(devices[i].numa)
        if of_claim.match and len(set(numa)) > 1:
            return False
        if of_claim.differ and len(set(numa)) < len(numa):
            return False
    for i, count in users.items():
        if devices[i].shared:
            if consumed[i] > devices[i].m:
                return False
        elif count > 1 or consumed[i] > devices[i].m:
            return False
    return share_the_counter([devices[i] for i in users])


def share_the_counter(devices: Sequence[Offered]) -> bool:
    """Whether *devices* can take from the counter together."""
    groups = [each.groups for each in devices if each.takes]
    are_compatible = not any(groups) or bool(frozenset("xy").intersection(*groups))
    return are_compatible and sum(each.takes for each in devices) <= MEMORY


def solutions(devices: Sequence[Offered], claims: Sequence[AskedClaim]) -> Iterator[list[int]]:
    """Yield all, in the order in which the search comes to them."""
    per_request = [
        combinations(range(len(devices)), request.count)
        for of_claim in claims
        for request in of_claim.requests
    ]
    for choice in product(*per_request):
        chosen = [i for some in choice for i in some]
        if fits(devices, claims, chosen):
            yield chosen


@settings(deadline=None, max_examples=200)
@given(st.lists(offered, min_size=1, max_size=4), st.lists(asked, min_size=1, max_size=2))
def test_it_finds_the_first_solution_if_there_is_any(
    devices: list[Offered], claims: list[AskedClaim]
) -> None:
    others = [
        claim(
            f"o{i}",
            allocated=allocation(
                got(
                    f"d{i}",
                    share="s" if each.shared else None,
                    consumed={"m": str(each.others)} if each.shared else {},
                    groups={"set": sorted(each.groups)} if each.groups and each.takes else {},
                )
            ),
        )
        for i, each in enumerate(devices)
        if each.others
    ]
    if not share_the_counter([each for each in devices if each.others]):
        others, devices = [], [msgspec.structs.replace(each, others=0) for each in devices]
    slices = [
        resource_slice("0", pool="n1", node="n1", count=2, counters={"set": {"memory": MEMORY}}),
        resource_slice(
            "1",
            *(
                device(
                    f"d{i}",
                    attributes={"numa": each.numa},
                    shared=each.shared,
                    capacity={"m": each.m},
                    consumes={"memory": each.takes} if each.takes else {},
                    groups=sorted(each.groups),
                    taints=[taint("broken")] if each.tainted else [],
                )
                for i, each in enumerate(devices)
            ),
            node="n1",
            count=2,
        ),
    ]
    want = next(solutions(devices, claims), None)
    picked = found(
        [_claim(i, each) for i, each in enumerate(claims)],
        slices,
        others=others,
        features=Features(compatibility_groups=True),
    )
    indexes = None if picked is None else [int(name.partition("=d")[2]) for name in picked]
    assert indexes == want


def _claim(number: int, wanted: AskedClaim) -> ResourceClaim:
    numa = "gpu.example.com/numa"
    constraints = [
        *([same(numa)] if wanted.match else []),
        *([distinct(numa)] if wanted.differ else []),
    ]
    requests = [exactly(one.count, capacity={"m": one.m}) for one in wanted.requests]
    return claim(f"c{number}", *requests, constraints=constraints)
