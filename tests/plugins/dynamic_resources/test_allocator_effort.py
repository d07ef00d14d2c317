"""How much the search does before it gives up, and that giving up early decides nothing."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.cel.selectors import Expression
from berth.kube.objects.devices import Device, DeviceConstraint, ResourceClaim
from berth.kube.objects.node import Taint
from berth_plugins.dynamic_resources import allocator
from berth_plugins.dynamic_resources.features import DEFAULT, Features
from berth_plugins.dynamic_resources.pools import ANSWERS_KEPT, PoolDevice
from berth_plugins.dynamic_resources.requests import AllocationError
from berth_plugins.dynamic_resources.search_result import SearchTimeoutError
from tests.builders import taint
from tests.device_builders import (
    allocation,
    claim,
    device,
    distinct,
    exactly,
    first_available,
    resource_slice,
    same,
)
from tests.plugins.dynamic_resources.searching import AS_1_36, found, picks

SIZE = "gpu.example.com/size"
VALUE = 'device.attributes["gpu.example.com"].size'


def steps(wanted: Sequence[ResourceClaim], devices: int) -> int:
    """Return how often the search looked at the clock before it found nothing."""
    looks = 0

    def is_late() -> bool:
        nonlocal looks
        looks += 1
        return looks > 200_000

    offered = resource_slice(
        "s", *(device(f"d{i}", attributes={"size": i // 2}) for i in range(devices)), node="n1"
    )
    assert picks(wanted, [offered], is_late=is_late) is None
    return looks


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(lambda n: [claim("c", exactly(n + 2))], id="one request"),
        pytest.param(lambda n: [claim("c", *[exactly(1)] * (n + 1))], id="many requests"),
        pytest.param(
            lambda n: [claim(f"c{i}", exactly(1)) for i in range(n + 1)], id="many claims"
        ),
        pytest.param(
            lambda n: [claim("c", *[first_available("r", x=exactly(2), y=exactly(1))] * (n + 1))],
            id="alternatives",
        ),
        pytest.param(
            lambda n: [claim("c", exactly(n // 2 + 1), constraints=[distinct(SIZE)])],
            id="too few values",
        ),
    ],
)
def test_too_few_devices_are_found_out_at_once(wanted: object) -> None:
    """Twice as many devices take four times as long, where all combinations take for ever."""
    assert callable(wanted)
    few, many = steps(wanted(12), 12), steps(wanted(24), 24)
    assert many < 8 * few


def test_different_values_may_be_those_of_devices_that_others_have() -> None:
    """Admin access is not counted; that a is what the second needs is the first dead end."""
    offered = resource_slice(
        "s", device("a", attributes={"size": 1}), device("b", attributes={"size": 2}), node="n1"
    )
    small = exactly(1, admin=True, where=[f"{VALUE} == 1"])
    wanted = claim("c", exactly(1, admin=True), small, constraints=[distinct(SIZE)])
    others = [claim("o", allocated=allocation("b"))]
    assert found(wanted, offered, others=others) == ["r0=b", "r1=a"]


def test_the_time_is_looked_at_for_every_candidate() -> None:
    refused = exactly(1, where=['device.driver == "none"'])
    assert steps([claim("c", refused)], 100) >= 100


def test_a_new_expression_is_compiled_only_while_there_is_time() -> None:
    looks = iter([False] * 3)
    with pytest.raises(SearchTimeoutError):
        picks(
            [claim("c", exactly(1, where=["device.driver.size() == 17"]))],
            [resource_slice("s", device("d"), node="n1")],
            is_late=lambda: next(looks, True),
        )


def test_a_device_remembers_few_answers() -> None:
    offered = resource_slice("s", device("d"), node="n1")
    one = PoolDevice(offered, offered.spec.devices[0])
    for number in range(ANSWERS_KEPT + 10):
        one.matches(Expression(f"device.driver.size() > {number}"))
    assert len(one._answers) == ANSWERS_KEPT


FAILS = f"{VALUE} > 1"
TAINTS: tuple[tuple[Taint, ...], ...] = ((), (taint("a"),))

some_devices = st.lists(
    st.builds(
        lambda attributes, taints, shared, consumes: {
            "attributes": attributes,
            "taints": taints,
            "shared": shared,
            "consumes": consumes,
        },
        st.sampled_from([{"size": 1}, {"size": 2}, {}]),
        st.sampled_from(TAINTS),
        st.booleans(),
        st.sampled_from([{}, {}, {"memory": 1}]),
    ),
    max_size=4,
)
one_request = st.builds(
    lambda count, selectors: exactly(count, where=selectors),
    st.sampled_from([1, 2, 3, None]),
    st.lists(st.sampled_from([FAILS, f"has({VALUE})"]), max_size=1),
)


def outcome(
    claims: Sequence[ResourceClaim], devices: Sequence[Device], features: Features
) -> object:
    try:
        return found(
            claims,
            [
                resource_slice("s", *devices, node="n1", count=2),
                resource_slice("t", node="n1", count=2, counters={"set": {"memory": 2}}),
            ],
            features=features,
        )
    except AllocationError as exc:
        return str(exc)


@settings(deadline=None)
@given(
    some_devices,
    st.lists(st.lists(one_request, min_size=1, max_size=2), max_size=2),
    st.sampled_from([[], [same(SIZE)], [distinct(SIZE)]]),
    st.sampled_from([AS_1_36, DEFAULT]),
)
def test_giving_up_early_decides_nothing(
    offered: list[dict[str, object]],
    wanted: list[list[object]],
    constraints: list[DeviceConstraint],
    features: Features,
) -> None:
    devices = [device(f"d{i}", **each) for i, each in enumerate(offered)]  # type: ignore[arg-type]
    claims = [claim(f"c{i}", *each, constraints=constraints) for i, each in enumerate(wanted)]  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(allocator._Search, "_count_devices", lambda search: None)
        want = outcome(claims, devices, features)
    assert outcome(claims, devices, features) == want
