"""What kube-scheduler 1.37 corrects in the search for devices (1.37 spec N4.3)."""

from collections.abc import Sequence

import pytest

from berth.kube.objects.devices import ResourceClaim, ResourceSlice
from berth_plugins.dynamic_resources.features import DEFAULT
from tests.builders import taint
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
)
from tests.plugins.dynamic_resources.searching import AS_1_36, found

NUMA = "gpu.example.com/numa"


def with_counters(memory: int, *devices: object) -> list[ResourceSlice]:
    return [
        resource_slice("0", pool="n1", node="n1", count=2, counters={"set": {"memory": memory}}),
        resource_slice("1", *devices, node="n1", count=2),  # type: ignore[arg-type]
    ]


def on_n1(*devices: object) -> list[ResourceSlice]:
    return [resource_slice("s", *devices, node="n1")]  # type: ignore[arg-type]


def share(name: str, memory: str | None = None) -> ResourceClaim:
    """Somebody else's claim, which has a share of a device."""
    consumed = {} if memory is None else {"memory": memory}
    return claim("o", allocated=allocation(got(name, share=f"of-{name}", consumed=consumed)))


HALVES = consumable("2", default="1")


@pytest.mark.parametrize(
    ("wanted", "slices", "others", "in_1_36", "in_1_37"),
    [
        pytest.param(
            [claim()],
            with_counters(
                40,
                device("a", consumes={"memory": 30}, taints=[taint("broken")]),
                device("b", consumes={"memory": 20}),
            ),
            [],
            None,
            ["b"],
            id="the counters of a tainted device are given back",
        ),
        pytest.param(
            [claim("c", exactly(2), constraints=[distinct(NUMA)])],
            with_counters(
                3,
                device("a", attributes={"numa": 0}, consumes={"memory": 1}),
                device("b", consumes={"memory": 1}),
                device("c", attributes={"numa": 1}, consumes={"memory": 2}),
            ),
            [],
            None,
            ["a", "c"],
            id="the counters of a device against a constraint are given back",
        ),
        pytest.param(
            [claim("c", exactly(2, capacity={"m": 1}))],
            with_counters(
                4,
                device("a", shared=True, capacity={"m": 2}, consumes={"memory": 3}),
                device("b", shared=True, capacity={"m": 2}, consumes={"memory": 2}),
                device("c", shared=True, capacity={"m": 2}, consumes={"memory": 2}),
            ),
            [],
            None,
            ["b", "c"],
            id="the counters of a shared device are given back when the search goes back",
        ),
        pytest.param(
            [claim("c"), claim("d")],
            with_counters(4, device("a", shared=True, consumes={"memory": 3})),
            [],
            None,
            ["a", "a"],
            id="a shared device without capacities takes its counters once",
        ),
        pytest.param(
            [claim()],
            with_counters(4, device("a", shared=True, consumes={"memory": 3})),
            [share("a")],
            None,
            ["a"],
            id="so does one of which somebody else has a share",
        ),
        pytest.param(
            [claim("c", exactly(3), constraints=[distinct(NUMA)])],
            on_n1(
                *(
                    device(name, attributes={"numa": n})
                    for name, n in zip("abc", (0, 1, 0), strict=True)
                )
            ),
            [],
            ["a", "b", "c"],
            None,
            id="every device of a request is compared",
        ),
        pytest.param(
            [claim("c", exactly(), exactly(), constraints=[distinct(NUMA)])],
            on_n1(device("a", shared=True, capacity={"m": HALVES}, attributes={"numa": 0})),
            [],
            None,
            None,
            id="two shares of one device are not distinct",
        ),
        pytest.param(
            [claim("c", exactly(None, capacity={"m": 1}))],
            on_n1(*(device(name, shared=True, capacity={"m": 1}) for name in "ab")),
            [claim("o", allocated=allocation(got("a", share="s", consumed={"m": "1"})))],
            ["b"],
            None,
            id="all devices: one has nothing left",
        ),
        pytest.param(
            [claim("c", exactly(None, capacity={"m": 2}))],
            on_n1(*(device(n, shared=True, capacity={"m": m}) for n, m in (("a", 1), ("b", 2)))),
            [],
            ["b"],
            ["b"],
            id="all devices: one never had enough",
        ),
        pytest.param(
            [
                claim(
                    "c",
                    first_available(
                        "r", all=exactly(None, capacity={"m": 1}), one=exactly(capacity={"m": 1})
                    ),
                )
            ],
            on_n1(*(device(name, shared=True, capacity={"m": 1}) for name in "ab")),
            [claim("o", allocated=allocation(got("a", share="s", consumed={"m": "1"})))],
            ["b"],
            ["b"],
            id="all devices, else one of them",
        ),
        pytest.param(
            [claim("c", exactly(None))],
            with_counters(
                4,
                device("a", shared=True, consumes={"memory": 1}),
                device("b", consumes={"memory": 3}),
            ),
            [],
            ["a", "b"],
            ["a", "b"],
            id="all devices, which take from counters",
        ),
        pytest.param(
            [claim("c", exactly(None))],
            with_counters(3, *(device(name, consumes={"memory": 2}) for name in "ab")),
            [],
            None,
            None,
            id="all devices, which take too much from counters",
        ),
        pytest.param(
            [claim("c", exactly(capacity={"m": "10E"}))],
            on_n1(device("a", shared=True, capacity={"m": "10E"})),
            [],
            ["a"],
            None,
            id="more of a capacity than can be counted",
        ),
        pytest.param(
            [claim("c", exactly(capacity={"m": 2}))],
            on_n1(
                device("a", shared=True, capacity={"m": consumable(9, min=0, step=0)}),
                device("b", shared=True, capacity={"m": consumable(9, min=0, step="10E")}),
                device("c", shared=True, capacity={"m": consumable(9, min=0, step=1)}),
            ),
            [],
            ["c"],
            ["c"],
            id="ranges that nobody can count with, which kube-scheduler 1.36 crashes at",
        ),
        pytest.param(
            [claim()],
            with_counters(
                4,
                device("a", shared=True, capacity={"m": 4}, consumes={"memory": 3}),
                device("b", consumes={"memory": 3}),
            ),
            [claim("o", allocated=allocation(got("a", share="s", consumed={"m": "4"})))],
            None,
            None,
            id="what a shared device takes from counters others cannot have",
        ),
        pytest.param(
            [claim()],
            [
                *with_counters(2, device("a", consumes={"memory": 2})),
                resource_slice(
                    "2", pool="n1", driver="x", node="n1", count=2, counters={"set": {"memory": 2}}
                ),
                resource_slice(
                    "3",
                    device("b", consumes={"memory": 2}),
                    pool="n1",
                    driver="x",
                    node="n1",
                    count=2,
                ),
            ],
            [claim("o", allocated=allocation("a"))],
            ["b"],
            ["b"],
            id="pools of one name of two drivers",
        ),
    ],
)
def test_corrections(
    wanted: Sequence[ResourceClaim],
    slices: Sequence[ResourceSlice],
    others: Sequence[ResourceClaim],
    in_1_36: list[str] | None,
    in_1_37: list[str] | None,
) -> None:
    for features, want in ((AS_1_36, in_1_36), (DEFAULT, in_1_37)):
        names = found(wanted, slices, others=others, features=features)
        assert (names and [name.partition("=")[2] for name in names]) == want
