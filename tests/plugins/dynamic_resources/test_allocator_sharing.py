"""The search for devices: constraints, counters and consumable capacity."""

from collections.abc import Sequence

import pytest

from berth.kube.objects.devices import DeviceConstraint, ResourceClaim
from berth_plugins.dynamic_resources.requests import AllocationError
from tests.device_builders import (
    allocation,
    claim,
    consumable,
    device,
    distinct,
    exactly,
    first_available,
    got,
    resource_slice,
    same,
)
from tests.plugins.dynamic_resources.searching import found, picks

NUMA = resource_slice(
    "s",
    device("a", attributes={"numa": 0}),
    device("b", attributes={"numa": 1, "example.com/rack": "r1"}),
    device("c", attributes={"numa": 0}),
    device("d"),
    node="n1",
)


@pytest.mark.parametrize(
    ("constraint", "want"),
    [
        pytest.param(same("gpu.example.com/numa"), ["r0=a", "r1=c"], id="the same value"),
        pytest.param(distinct("gpu.example.com/numa"), ["r0=a", "r1=b"], id="another value"),
        pytest.param(same("example.com/rack"), None, id="one device has it, the other not"),
        pytest.param(same("other.com/numa"), None, id="a bare name is of the driver's domain only"),
        pytest.param(same("gpu.example.com/numa", "r0"), ["r0=a", "r1=b"], id="for one request"),
        pytest.param(same("gpu.example.com/numa", "r9"), ["r0=a", "r1=b"], id="for another one"),
    ],
)
def test_constraints(constraint: DeviceConstraint, want: list[str] | None) -> None:
    assert found(claim("c", exactly(), exactly(), constraints=[constraint]), NUMA) == want


def test_constraints_may_name_alternatives() -> None:
    wanted = claim(
        "c",
        exactly(),
        first_available("r", x=exactly()),
        constraints=[same("gpu.example.com/numa", "r0", "r/x")],
    )
    assert found(wanted, NUMA) == ["r0=a", "r/x=c"]


def test_types_differ_even_if_the_values_look_alike() -> None:
    slices = resource_slice(
        "s", device("a", attributes={"x": 1}), device("b", attributes={"x": True}), node="n1"
    )
    two = claim("c", exactly(2), constraints=[same("gpu.example.com/x")])
    assert found(two, slices) is None


def test_all_devices_against_a_constraint_make_no_sense() -> None:
    wanted = claim("c", exactly(None), constraints=[same("gpu.example.com/numa")])
    with pytest.raises(AllocationError) as failure:
        found(wanted, NUMA)
    assert str(failure.value) == (
        "claim default/c, request r0: cannot add device gpu.example.com/n1/b"
        " because a claim constraint would not be satisfied"
    )


def test_a_constraint_of_an_unknown_kind() -> None:
    with pytest.raises(AllocationError, match="constraint #0: empty constraint"):
        found(claim("c", constraints=[DeviceConstraint()]), NUMA)


# Counters.

COUNTERS = resource_slice("0", pool="n1", node="n1", count=2, counters={"set": {"memory": "40Gi"}})
PARTS = resource_slice(
    "1",
    device("whole", consumes={"memory": "40Gi"}),
    device("half-0", consumes={"memory": "20Gi"}),
    device("half-1", consumes={"memory": "20Gi"}),
    device("free"),
    node="n1",
    count=2,
)


@pytest.mark.parametrize(
    ("count", "others", "want"),
    [
        pytest.param(1, (), ["whole"], id="nobody has anything"),
        pytest.param(2, (), ["whole", "free"], id="the whole leaves no parts"),
        pytest.param(3, (), ["half-0", "half-1", "free"], id="parts instead of the whole"),
        pytest.param(4, (), None, id="not both"),
        pytest.param(2, ["half-1"], ["half-0", "free"], id="somebody has a part"),
        pytest.param(2, ["whole"], None, id="somebody has the whole"),
    ],
)
def test_counters(count: int, others: Sequence[str], want: list[str] | None) -> None:
    taken = [claim("o", allocated=allocation(*others))] if others else []
    got = found(claim("c", exactly(count)), [COUNTERS, PARTS], others=taken)
    assert got == (None if want is None else [f"r0={name}" for name in want])


# Consumable capacity.

SHARED = resource_slice(
    "s",
    device(
        "a",
        shared=True,
        capacity={"memory": consumable("10Gi", default="1Gi", min="1Gi", step="1Gi")},
    ),
    device("b", capacity={"memory": "20Gi"}),
    node="n1",
)


def asking(name: str, amount: str, *, devices: int = 1) -> ResourceClaim:
    return claim(name, exactly(devices, capacity={"memory": amount}))


@pytest.mark.parametrize(
    ("wanted", "want"),
    [
        pytest.param([asking("c", "4Gi"), asking("d", "6Gi")], ["a", "a"], id="shares of one"),
        pytest.param([asking("c", "4Gi"), asking("d", "7Gi")], ["a", "b"], id="it is used up"),
        pytest.param([asking("c", "15Gi")], ["b"], id="too much for one"),
        pytest.param([asking("c", "21Gi")], None, id="too much for all"),
        pytest.param([asking("c", "4Gi", devices=2)], ["a", "b"], id="a request has each once"),
        pytest.param(
            [claim("c", exactly(capacity={"cores": "1"}))], None, id="nobody has such a capacity"
        ),
    ],
)
def test_shares(wanted: list[ResourceClaim], want: list[str] | None) -> None:
    assert found(wanted, SHARED) == (None if want is None else [f"r0={name}" for name in want])


def test_what_others_have_of_it() -> None:
    share = got("a", share="s1", consumed={"memory": "8Gi"})
    others = [claim("o", allocated=allocation(share))]
    assert found(asking("c", "2Gi"), SHARED, others=others) == ["r0=a"]
    assert found(asking("c", "3Gi"), SHARED, others=others) == ["r0=b"]


def test_a_share_is_told_for_devices_that_are_shared_only() -> None:
    (one, two) = picks([asking("c", "1500Mi"), asking("d", "20Gi")], [SHARED]) or ()
    assert [one.picks[0].share, two.picks[0].share] == [{"memory": "2Gi"}, None]


def test_a_shared_device_takes_its_counters_once() -> None:
    parts = resource_slice(
        "1",
        device("a", shared=True, capacity={"m": "10"}, consumes={"memory": "40Gi"}),
        node="n1",
        count=2,
    )
    wanted = [claim("c", exactly(capacity={"m": "4"})), claim("d", exactly(capacity={"m": "6"}))]
    assert found(wanted, [COUNTERS, parts]) == ["r0=a", "r0=a"]
    others = [claim("o", allocated=allocation(got("a", share="s", consumed={"m": "4"})))]
    assert found(wanted[1], [COUNTERS, parts], others=others) == ["r0=a"]
