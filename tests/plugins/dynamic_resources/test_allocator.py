"""The search for devices: requests, order, alternatives, who has what already."""

from collections.abc import Sequence
from itertools import count

import pytest

from berth.kube.objects.devices import DeviceClass, DeviceToleration, ResourceClaim, ResourceSlice
from berth.kube.objects.node import Taint
from berth_plugins.dynamic_resources.features import DEFAULT, Features
from berth_plugins.dynamic_resources.requests import AllocationError
from berth_plugins.dynamic_resources.search_result import InvalidPoolsError, SearchTimeoutError
from tests.builders import node, taint
from tests.device_builders import (
    allocation,
    claim,
    device,
    device_class,
    exactly,
    first_available,
    got,
    request,
    resource_slice,
)
from tests.plugins.dynamic_resources.searching import AS_1_36, N1, found, picks

THREE = resource_slice("s", device("a"), device("b"), device("c"), node="n1")
IS_BIG = 'device.attributes["gpu.example.com"].size == "big"'
SIZES = resource_slice(
    "s",
    device("small-0", attributes={"size": "small"}),
    device("big-0", attributes={"size": "big"}),
    device("big-1", attributes={"size": "big"}),
    node="n1",
)


@pytest.mark.parametrize(
    ("wanted", "slices", "want"),
    [
        pytest.param(claim("c", exactly(2)), THREE, ["r0=a", "r0=b"], id="the first ones"),
        pytest.param(claim("c", exactly(4)), THREE, None, id="too few"),
        pytest.param(claim("c", exactly(None)), THREE, ["r0=a", "r0=b", "r0=c"], id="all of them"),
        pytest.param(
            claim("c", exactly(None), exactly()), THREE, None, id="all leave none for others"
        ),
        pytest.param(
            claim("c", exactly(None, where=["false"])),
            THREE,
            None,
            id="all, of which there are none",
        ),
        pytest.param(
            claim("c", exactly(1, where=[IS_BIG])), SIZES, ["r0=big-0"], id="what is selected"
        ),
        pytest.param(
            claim("c", exactly(1), exactly(2, where=[IS_BIG])),
            SIZES,
            ["r0=small-0", "r1=big-0", "r1=big-1"],
            id="requests one after the other",
        ),
        pytest.param(
            claim("c", exactly(2), exactly(1, where=[IS_BIG])),
            SIZES,
            ["r0=small-0", "r0=big-0", "r1=big-1"],
            id="each goes on where the last one is",
        ),
        pytest.param(
            claim("c", exactly(1, where=[IS_BIG]), exactly(1), exactly(1, where=[IS_BIG])),
            SIZES,
            ["r0=big-0", "r1=small-0", "r2=big-1"],
            id="every request may have any device",
        ),
        pytest.param(
            claim("c", exactly(2, where=["true"]), exactly(1, where=["!" + f"({IS_BIG})"])),
            SIZES,
            ["r0=big-0", "r0=big-1", "r1=small-0"],
            id="earlier requests give way",
        ),
        pytest.param(
            claim("c", first_available("r", two=exactly(4), one=exactly(1))),
            THREE,
            ["r/one=a"],
            id="the first alternative that works",
        ),
        pytest.param(
            claim("c", first_available("r", few=exactly(2), many=exactly(3)), exactly(2)),
            THREE,
            None,
            id="no alternative leaves enough for the rest",
        ),
        pytest.param(
            claim("c", exactly(33)),
            resource_slice("s", *(device(f"d{i}") for i in range(40)), node="n1"),
            "claim default/c: number of requested devices 33 exceeds the claim limit of 32",
            id="no claim gets more than 32",
        ),
        pytest.param(
            claim("c", exactly(30), first_available("r", many=exactly(5), few=exactly(2))),
            resource_slice("s", *(device(f"d{i}") for i in range(40)), node="n1"),
            [f"r0=d{i}" for i in range(30)] + ["r/few=d30", "r/few=d31"],
            id="alternatives beyond 32 are passed over",
        ),
    ],
)
def test_what_is_found(
    wanted: ResourceClaim, slices: ResourceSlice, want: list[str] | str | None
) -> None:
    if isinstance(want, str):
        with pytest.raises(AllocationError) as failure:
            found(wanted, slices)
        assert str(failure.value) == want
    else:
        assert found(wanted, slices) == want


def test_claims_one_after_the_other() -> None:
    claims = [claim("c1", exactly(1)), claim("c2", exactly(2))]
    assert found(claims, THREE) == ["r0=a", "r0=b", "r0=c"]


def test_an_earlier_claim_gives_way() -> None:
    claims = [claim("c1", exactly(1, where=["true"])), claim("c2", exactly(None, where=[IS_BIG]))]
    one_small = resource_slice(
        "s",
        device("big-0", attributes={"size": "big"}),
        device("small-0", attributes={"size": "small"}),
        node="n1",
    )
    assert found(claims, one_small) == ["r0=small-0", "r0=big-0"]


def test_selectors_of_the_class_come_first() -> None:
    """Else the request's would fail on a device without the attribute."""
    classes = [device_class("gpu", '"size" in device.attributes["gpu.example.com"]')]
    slices = resource_slice("s", device("bare"), device("d", attributes={"size": "big"}), node="n1")
    assert found(claim("c", exactly(1, where=[IS_BIG])), slices, classes=classes) == ["r0=d"]


@pytest.mark.parametrize(
    ("wanted", "classes", "want"),
    [
        pytest.param(
            claim("c", exactly(1, where=[IS_BIG])),
            [device_class()],
            "claim default/c: selector #0{on}: CEL runtime error: no such key: size{hint}",
            id="a selector of the claim",
        ),
        pytest.param(
            claim("c", exactly(1)),
            [device_class("gpu", "true", IS_BIG)],
            "class gpu: selector #1{on}: CEL runtime error: no such key: size{hint}",
            id="a selector of the class",
        ),
        pytest.param(
            claim("c", exactly(1, where=["1 / 0 == 1"])),
            [device_class()],
            "claim default/c: selector #0{on}: CEL runtime error: divide by zero",
            id="what has() would not help against",
        ),
        pytest.param(
            claim("c", exactly(1, where=["1"])),
            [device_class()],
            "claim default/c: selector #0: CEL compile error: must evaluate to bool or the unknown"
            " type, not int",
            id="one that no device is asked",
        ),
    ],
)
@pytest.mark.parametrize(
    ("features", "on", "hint"),
    [
        pytest.param(AS_1_36, "", "", id="1.36"),
        pytest.param(
            DEFAULT,
            " on device gpu.example.com/n1/a",
            ". consider using CEL optional chaining (.? followed by orValue()) or guarding the"
            " check with has() for optional fields",
            id="1.37",
        ),
    ],
)
def test_a_selector_that_fails_ends_the_search(
    wanted: ResourceClaim,
    classes: Sequence[DeviceClass],
    want: str,
    features: Features,
    on: str,
    hint: str,
) -> None:
    with pytest.raises(AllocationError) as failure:
        found(wanted, THREE, classes=classes, features=features)
    assert str(failure.value) == want.format(on=on, hint=hint)


# Who has what.


def test_devices_in_use_are_not_had_again() -> None:
    others = [claim("o", allocated=allocation("a"))]
    assert found(claim("c", exactly(2)), THREE, others=others) == ["r0=b", "r0=c"]
    assert found(claim("c", exactly(None)), THREE, others=others) is None


def test_admin_access_may_have_what_others_have() -> None:
    others = [claim("o", allocated=allocation("a", "b", "c"))]
    assert found(claim("c", exactly(2, admin=True)), THREE, others=others) == ["r0=a", "r0=b"]
    everything = claim("c", exactly(None, admin=True))
    assert found(everything, THREE, others=others) == ["r0=a", "r0=b", "r0=c"]


def test_admin_access_has_nothing_twice_in_a_claim() -> None:
    twice = claim("c", exactly(3, admin=True), exactly(1, admin=True))
    assert found(twice, THREE) is None
    assert found([claim("c"), claim("d", exactly(1, admin=True))], THREE) == ["r0=a", "r0=a"]


def test_devices_with_admin_access_are_not_in_use() -> None:
    others = [claim("o", allocated=allocation(got("a", admin=True)))]
    assert found(claim("c"), THREE, others=others) == ["r0=a"]


BROKEN = [taint("broken", effect="NoSchedule")]


@pytest.mark.parametrize(
    ("tolerations", "taints", "want"),
    [
        pytest.param((), BROKEN, ["r0=b"], id="a taint is not tolerated"),
        pytest.param(
            [DeviceToleration(key="broken", operator="Exists")], BROKEN, ["r0=a"], id="tolerated"
        ),
        pytest.param((), [taint("x", effect="None")], ["r0=a"], id="an effect that means nothing"),
        pytest.param((), [taint("x", effect="NoExecute")], ["r0=b"], id="NoExecute repels too"),
    ],
)
def test_taints(
    tolerations: Sequence[DeviceToleration], taints: Sequence[Taint], want: list[str]
) -> None:
    slices = resource_slice("s", device("a", taints=taints), device("b"), node="n1")
    assert found(claim("c", exactly(1, tolerations=tolerations)), slices) == want


# Pools.


def test_devices_for_other_nodes_are_passed_over() -> None:
    slices = resource_slice(
        "s", device("a", node="n2"), device("b", all_nodes=True), pool="p", per_device=True
    )
    assert found(claim("c"), slices) == ["r0=b"]
    assert found(claim("c"), slices, on=node("n2")) == ["r0=a"]


def test_broken_pools_are_passed_over() -> None:
    slices = [
        resource_slice("1", device("d"), pool="p1", node="n1", count=2),
        resource_slice("2", device("d"), device("d"), pool="p2", node="n1"),
        resource_slice("3", device("good"), pool="p3", node="n1"),
    ]
    assert found(claim("c"), slices) == ["r0=good"]
    with pytest.raises(InvalidPoolsError):
        found(claim("c", exactly(2)), slices)
    assert found(claim("c", exactly(2)), [slices[0], slices[2]]) is None


@pytest.mark.parametrize(
    ("slices", "want"),
    [
        pytest.param(
            resource_slice("1", device("d"), node="n1", count=2),
            "claim default/c, request r0: asks for all devices, but resource pool"
            " gpu.example.com/n1 is currently being updated",
            id="a slice is missing",
        ),
        pytest.param(
            resource_slice("1", device("d"), device("d"), node="n1"),
            "claim default/c, request r0: asks for all devices, but resource pool"
            " gpu.example.com/n1 is currently invalid",
            id="a device is there twice",
        ),
    ],
)
def test_nobody_knows_what_all_is_in_a_broken_pool(slices: ResourceSlice, want: str) -> None:
    with pytest.raises(AllocationError) as failure:
        found(claim("c", exactly(None)), slices)
    assert str(failure.value) == want


def test_a_search_that_takes_too_long_ends() -> None:
    steps = count()
    with pytest.raises(SearchTimeoutError):
        picks([claim("c", exactly(2))], [THREE], is_late=lambda: next(steps) > 1)


def test_which_alternative_was_chosen_is_told() -> None:
    wanted = claim("c", first_available("r", no=exactly(9), yes=exactly(1)), exactly(1))
    all_found = picks([wanted], [THREE], on=N1)
    assert all_found is not None
    assert [of.chosen for of in all_found] == [(1, 0)]


def test_requests_keep_their_names() -> None:
    assert found(claim("c", request("mine", exactly(1))), THREE) == ["mine=a"]
