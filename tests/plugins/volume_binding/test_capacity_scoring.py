"""StorageCapacityScoring: nodes are ranked by how full their storage would be (G16.1)."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from berth.kube.objects.pod import Pod
from berth.scheduler.config.defaults import complete_args, read_args
from berth.scheduler.config.feature_gates import Features
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Status
from berth_plugins.shared.resource_allocation import UtilizationShapePoint
from berth_plugins.volume_binding.capacity_scoring import (
    DEFAULT_SHAPE,
    STORAGE_CAPACITY_SCORING,
    StorageResource,
    volume_capacity_scorer,
)
from berth_plugins.volume_binding.plugin import VolumeBinding, VolumeBindingArgs
from tests.builders import HOSTNAME, node, pod, selector
from tests.plugins.evaluating import table
from tests.volume_builders import (
    StorageObject,
    claim,
    csi_driver,
    listers,
    storage_capacity,
    storage_class,
    volume,
)

ON = Features.of(STORAGE_CAPACITY_SCORING)
NODES = [node("n1"), node("n2")]
N1, N2 = selector({HOSTNAME: "n1"}), selector({HOSTNAME: "n2"})
LOCAL = storage_class("local")
DYNAMIC = storage_class("dyn", provisioner="csi.example.com")
SLOW = storage_class("slow", provisioner="csi.example.com")
UNTOLD = storage_class("untold", provisioner="untold.example.com")
DRIVER = csi_driver()
ROOM = [
    storage_capacity("c1", nodes=N1, size="100Gi"),
    storage_capacity("c2", nodes=N2, size="50Gi"),
]


def scores(a_pod: Pod, *objects: StorageObject, **args: Any) -> Any:
    """Return what PreScore says or, if it says nothing, what Score gives each node."""
    nodes = table(*NODES)
    plugin = VolumeBinding(
        read_args(args, VolumeBindingArgs, ON),
        Handle(nodes, listers=listers(LOCAL, DYNAMIC, SLOW, UNTOLD, *objects), features=ON),
    )
    state, info = CycleState(nodes.exists.copy()), PodInfo(a_pod)
    assert plugin.pre_filter(state, info, nodes) in (None, SKIP)
    skipped = plugin.pre_score(state, info, nodes)
    if skipped is not None:
        return skipped
    found = plugin.score(state, info, nodes)
    assert not isinstance(found, Status)
    return {name: int(found[row]) for name, row in nodes.row_of.items()}


@pytest.mark.parametrize(
    ("a_pod", "objects", "want"),
    [
        pytest.param(
            pod(claims=["data"]),
            [DRIVER, *ROOM, claim(storage_class="dyn", size="10Gi")],
            {"n1": 90, "n2": 80},
            id="the node with more room left scores higher",
        ),
        pytest.param(
            pod(claims=["data", "logs"]),
            [
                DRIVER,
                *ROOM,
                claim(storage_class="dyn", size="10Gi"),
                claim("logs", storage_class="dyn", size="15Gi"),
            ],
            {"n1": 75, "n2": 50},
            id="claims of a class share its capacity",
        ),
        pytest.param(
            pod(claims=["data", "logs"]),
            [
                DRIVER,
                *ROOM,
                storage_capacity("s1", storage_class="slow", nodes=N1, size="20Gi"),
                storage_capacity("s2", storage_class="slow", nodes=N2, size="40Gi"),
                claim(storage_class="dyn", size="10Gi"),
                claim("logs", storage_class="slow", size="5Gi"),
            ],
            {"n1": 83, "n2": 84},
            id="the mean over the classes, halves rounded up",
        ),
        pytest.param(
            pod(claims=["data"]),
            [claim(size="5Gi"), volume("pv1", size="10Gi", hosts=["n1"], phase="Available"),
             volume("pv2", size="6Gi", hosts=["n2"], phase="Available")],
            {"n1": 50, "n2": 17},
            id="an existing volume is compared with what is asked for",
        ),
        pytest.param(
            pod(claims=["data", "logs"]),
            [
                DRIVER,
                *ROOM,
                volume("pv1", size="10Gi", storage_class="dyn", hosts=["n1"], phase="Available"),
                claim(storage_class="dyn", size="5Gi"),
                claim("logs", storage_class="dyn", size="20Gi"),
            ],
            {"n1": 50, "n2": 50},
            id="where a claim gets an existing volume, those that get new ones do not count",
        ),
        pytest.param(
            pod(claims=["data", "logs"]),
            [
                DRIVER,
                *ROOM,
                claim(storage_class="dyn", size="10Gi"),
                claim("logs", storage_class="untold", size="10Gi"),
            ],
            {"n1": 90, "n2": 80},
            id="a driver that reports nothing is left out",
        ),
        pytest.param(
            pod(claims=["data"]),
            [claim(storage_class="untold", size="10Gi")],
            {"n1": 0, "n2": 0},
            id="no class counts",
        ),
        pytest.param(
            pod(claims=["data"]),
            [
                DRIVER,
                storage_capacity("c1", nodes=N1, largest="60Gi"),
                ROOM[1],
                claim(storage_class="dyn", size="10Gi"),
            ],
            {"n1": 0, "n2": 80},
            id="a report of the largest volume alone is left out",
        ),
        pytest.param(
            pod(claims=["data"]),
            [
                DRIVER,
                ROOM[0],
                storage_capacity("c2", nodes=N2, size="50Gi"),
                storage_capacity("c3", nodes=N2, size="100Gi", largest="5Gi"),
                claim(storage_class="dyn", size="10Gi"),
            ],
            {"n1": 90, "n2": 80},
            id="a report in which the claim does not fit does not count",
        ),
        pytest.param(
            pod(claims=["data"]),
            [
                DRIVER,
                storage_capacity("c1", nodes=N1, size="1Gi", largest="20Gi"),
                storage_capacity("c2", nodes=N2, size=0, largest="20Gi"),
                claim(storage_class="dyn", size="10Gi"),
            ],
            {"n1": 0, "n2": 0},
            id="less capacity than is asked for is a full node",
        ),
        pytest.param(
            pod(claims=["data"]),
            [DRIVER, *ROOM, claim(storage_class="dyn", size="10Gi", selected="n2")],
            {"n1": 90, "n2": 80},
            id="a claim whose node was selected before counts as well",
        ),
        pytest.param(pod(), [], SKIP, id="no claims: skipped"),
        pytest.param(
            pod(claims=["data"]),
            [volume("pv"), claim(bound_to="pv")],
            SKIP,
            id="all claims are bound: skipped",
        ),
    ],
)  # fmt: skip
def test_scores(a_pod: Pod, objects: Sequence[StorageObject], want: object) -> None:
    assert scores(a_pod, *objects) == want


def test_a_shape_of_ones_own() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    objects: list[StorageObject] = [DRIVER, *ROOM, claim(storage_class="dyn", size="10Gi")]
    assert scores(pod(claims=["data"]), *objects, shape=shape) == {"n1": 10, "n2": 20}


# The args.


def test_the_default_shape_prefers_empty_storage() -> None:
    complete = complete_args("VolumeBinding", {}, VolumeBindingArgs, ON)
    assert complete["shape"] == [
        {"utilization": 0, "score": 10},
        {"utilization": 100, "score": 0},
    ]
    assert "shape" not in complete_args("VolumeBinding", {}, VolumeBindingArgs)


@pytest.mark.parametrize(
    ("shape", "features", "message"),
    [
        pytest.param(
            [{"utilization": 0, "score": 0}],
            frozenset[str](),
            "unexpected field `shape`, remove it or turn on the feature gate"
            " StorageCapacityScoring",
            id="the gate is off",
        ),
        pytest.param(
            [{"utilization": 10, "score": 0}, {"utilization": 10, "score": 5}],
            ON,
            "shape[1].utilization: Invalid value: 10: utilization values must be sorted in"
            " increasing order",
            id="utilization does not increase",
        ),
        pytest.param(
            [{"utilization": 101, "score": 0}], ON, "less than or equal to 100", id="over 100"
        ),
        pytest.param(
            [{"utilization": 0, "score": 11}], ON, "less than or equal to 10", id="score over 10"
        ),
    ],
)
def test_wrong_shapes(
    shape: list[Mapping[str, int]], features: frozenset[str], message: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        read_args({"shape": shape}, VolumeBindingArgs, features)
    assert message in str(caught.value)


# The formula.

SIZES = st.integers(0, 2**50)
SHAPES = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 10)),
    min_size=1,
    max_size=4,
    unique_by=lambda p: p[0],
).map(
    lambda points: tuple(UtilizationShapePoint(utilization=u, score=s) for u, s in sorted(points))
)


def on_curve(shape: Sequence[UtilizationShapePoint], utilization: int) -> int:
    for before, after in pairwise(shape):
        if before.utilization < utilization <= after.utilization:
            rise = (after.score - before.score) * 10 * (utilization - before.utilization)
            return before.score * 10 + int(rise / (after.utilization - before.utilization))
    return 10 * (shape[0] if utilization <= shape[0].utilization else shape[-1]).score


@given(st.lists(st.tuples(SIZES, SIZES), max_size=4), SHAPES)
def test_the_scorer_follows_the_rule(
    classes: list[tuple[int, int]], shape: tuple[UtilizationShapePoint, ...]
) -> None:
    resources = {}
    for i, (requested, capacity) in enumerate(classes):
        resources[str(i)] = resource = StorageResource(1)
        resource.requested[:], resource.capacity[:], resource.counts[:] = requested, capacity, True
    rule = [
        on_curve(shape, requested * 100 // capacity if 0 < capacity >= requested else 100)
        for requested, capacity in classes
    ]
    want = int(sum(rule) / len(rule) + 0.5) if rule else 0
    assert volume_capacity_scorer(shape)(resources, 1).tolist() == [want]


def test_amounts_beyond_all_bounds_do_not_wrap_around() -> None:
    resource = StorageResource(1)
    resource.requested[:], resource.capacity[:], resource.counts[:] = 10, 2**63 - 1, True
    assert volume_capacity_scorer(DEFAULT_SHAPE)({"": resource}, 1) == np.array([100])
