"""Policies that share GPUs: the small cases of the published experiment, and what filters say."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest
from examples.plugins.gpu_sharing._gpu_sharing import (
    INDEX_ANNOTATION,
    RESOURCE,
    Demand,
    GivenGpus,
    GpuSharing,
    GpuSharingArgs,
    tightest,
)
from examples.plugins.gpu_sharing.gpu_best_fit import GpuBestFit
from examples.plugins.gpu_sharing.gpu_clustering import GpuClustering
from examples.plugins.gpu_sharing.gpu_dot_product import GpuDotProduct
from examples.plugins.gpu_sharing.gpu_fragmentation import GpuFragmentation
from examples.plugins.gpu_sharing.gpu_packing import GpuPacking
from examples.plugins.gpu_sharing.gpu_random import GpuRandom

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.cache.cache import Cache
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import ScorePlugin
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.tools.lab.trace import Trace
from tests.builders import node, pod
from tests.harness import with_plugins

POLICIES = (GpuDotProduct, GpuClustering, GpuPacking, GpuBestFit, GpuFragmentation)


def gpu_pod(
    name: str, *, cpu: int = 0, gpus: int = 0, milli: int = 0, on: str = "", index: str = ""
) -> Pod:
    requests = {RESOURCE: gpus * milli} if gpus else {}
    made = pod(name, cpu=f"{cpu}m", requests=requests, node=on)
    if not index:
        return made
    meta = msgspec.structs.replace(made.metadata, annotations={INDEX_ANNOTATION: index})
    return msgspec.structs.replace(made, metadata=meta)


def gpu_node(name: str, cpu: int, gpus: int) -> Node:
    return node(name, cpu=f"{cpu}m", allocatable={RESOURCE: gpus * 1000})


@cache
def table() -> NodeTable:
    """N1 to N4 of the published small cases: what is left of CPU and of each GPU."""
    cache = Cache()
    for each in (
        gpu_node("N1", 96_000, 8),  # nothing runs here
        gpu_node("N2", 80_000, 2),  # 1000, 190 left
        gpu_node("N3", 60_000, 8),  # 0, 0, 530, 530, 1000 x 4 left
        gpu_node("N4", 9_000, 4),  # 460, 730, 1000, 0 left
    ):
        cache.add_node(each)
    for running in (
        gpu_pod("a", gpus=1, milli=810, on="N2", index="1"),
        gpu_pod("b", gpus=1, milli=1000, on="N3", index="0"),
        gpu_pod("c", gpus=1, milli=1000, on="N3", index="1"),
        gpu_pod("d", gpus=1, milli=470, on="N3", index="2"),
        gpu_pod("e", gpus=1, milli=470, on="N3", index="3"),
        gpu_pod("f", gpus=1, milli=540, on="N4", index="0"),
        gpu_pod("g", gpus=1, milli=270, on="N4", index="1"),
        gpu_pod("h", gpus=1, milli=1000, on="N4", index="3"),
    ):
        cache.add_pod(PodInfo(running))
    return cache.table


@cache
def typical() -> Sequence[PodInfo]:
    folder = Path("examples/lab")
    trace = Trace(
        folder / "openb_node_list_gpu_node.csv",
        folder / "openb_pod_list_default.csv.gz",
        resource=RESOURCE,
        model_label="example.com/gpu-model",
    )
    return [PodInfo(each) for each in trace.pods]


@cache
def policy(kind: type[GpuSharing]) -> GpuSharing:
    made = kind(GpuSharingArgs(), Handle(table()))
    made.learn(typical())
    return made


def test_typical_pods_are_the_most_frequent_kinds() -> None:
    found = policy(GpuFragmentation).fragmentation.typical

    assert len(found) == 35
    assert [(*kind[:3], round(share, 4)) for kind, share in found[:3]] == [
        (3152, 810, 1, 0.1348),
        (11300, 1000, 1, 0.1125),
        (11400, 1000, 1, 0.0771),
    ]
    assert (*found[-1][0][:3], round(found[-1][1], 4)) == (4152, 810, 1, 0.0040)
    assert round(sum(share for kind, share in found if not kind.gpus), 4) == 0.1360


def test_fragmentation_of_each_node_is_as_published() -> None:
    measuring, nodes = policy(GpuFragmentation), table()
    found = measuring.fragmentation.measure(
        measuring.fragmentation.may_use(nodes),
        measuring.cpu_left(nodes),
        measuring.gpus(nodes).left,
    )

    assert found.round(2).tolist() == [1087.82, 324.66, 1407.91, 1636.84]


CASES = [
    # CPU, GPUs, thousandths; by node: DotProd, Clustering, Packing, BestFit, FGD
    (3152, 1, 810, {"N1": (94, 25, 25, 18, 48), "N2": (98, 96, 49, 67, 48)}),
    (3152, 1, 810, {"N3": (96, 59, 49, 51, 48), "N4": (98, 68, 49, 89, 58)}),
    (8000, 1, 470, {"N1": (94, 25, 25, 18, 42), "N2": (97, 96, 49, 67, 42)}),
    (8000, 1, 470, {"N3": (96, 59, 95, 51, 59), "N4": (98, 68, 93, 88, 47)}),
    (11300, 1, 1000, {"N1": (90, 25, 25, 23, 53), "N2": (96, 21, 49, 71, 53)}),
    (11300, 1, 1000, {"N3": (93, 59, 49, 55, 53)}),
    (8000, 2, 1000, {"N1": (85, 25, 25, 28, 56), "N3": (90, 9, 48, 60, 56)}),
    (12500, 0, 0, {"N1": (96, 0, 0, 17, 50), "N2": (96, 0, 0, 66, 50), "N3": (97, 0, 0, 49, 50)}),
]


@pytest.mark.parametrize(("cpu", "gpus", "milli", "want"), CASES)
def test_scores_are_as_published(
    cpu: int, gpus: int, milli: int, want: dict[str, tuple[int, ...]]
) -> None:
    info = PodInfo(gpu_pod("p", cpu=cpu, gpus=gpus, milli=milli))
    for place, kind in enumerate(POLICIES):
        scorer = policy(kind)
        assert isinstance(scorer, ScorePlugin)
        scores = scorer.score(CycleState(), info, table())
        assert isinstance(scores, np.ndarray)
        found = {name: int(scores[table().row_of[name]]) for name in want}

        assert found == {name: scores_[place] for name, scores_ in want.items()}, kind.NAME


@pytest.mark.parametrize(
    ("cpu", "milli", "want"),
    [(3152, 810, {"N1": 0, "N2": 0, "N3": 4, "N4": 2}), (8000, 470, {"N3": 2, "N4": 1})],
)
def test_a_shared_gpu_is_the_one_that_gave_the_score(
    cpu: int, milli: int, want: dict[str, int]
) -> None:
    chooser, info = policy(GpuFragmentation), PodInfo(gpu_pod("p", cpu=cpu, gpus=1, milli=milli))
    left = chooser.gpus(table()).left
    rows = {name: table().row_of[name] for name in want}
    found = {name: chooser.choose(CycleState(), info, row, left[row]) for name, row in rows.items()}

    assert found == {name: [gpu] for name, gpu in want.items()}


@pytest.mark.parametrize(
    ("left", "gpus", "milli", "want"),
    [
        pytest.param([1000, 600, 500], 1, 500, [2], id="the one with the least that is enough"),
        pytest.param([500, 1000, 500], 1, 500, [0], id="the first of equals"),
        pytest.param([900, 1000, 1000, 1000], 2, 1000, [1, 2], id="whole ones from the left"),
    ],
)
def test_the_tightest_gpus_are_chosen(
    left: list[int], gpus: int, milli: int, want: list[int]
) -> None:
    assert tightest(Demand(gpus, milli), np.array(left)) == want


def fits(gpus: int, milli: int) -> set[str]:
    rejected = (
        policy(GpuBestFit)
        .filter(CycleState(), PodInfo(gpu_pod("p", gpus=gpus, milli=milli)), table())
        .rejected()
    )
    assert rejected is not None
    return {name for name, row in table().row_of.items() if not rejected[row]}


def test_room_on_several_gpus_is_not_added_up() -> None:
    assert fits(1, 100) == {"N1", "N2", "N3", "N4"}
    assert fits(2, 1000) == {"N1", "N3"}
    assert fits(8, 1000) == {"N1"}


def test_a_request_for_one_and_a_half_gpus_is_refused() -> None:
    odd = PodInfo(pod("p", requests={RESOURCE: 1500}))
    status = policy(GpuBestFit).pre_filter(CycleState(), odd, table())

    assert getattr(status, "message", "") == f"{RESOURCE}: 1500 is no multiple of 1000"


def test_the_random_policy_takes_every_node_now_and_then() -> None:
    scorer, state = policy(GpuRandom), CycleState()
    assert isinstance(scorer, GpuRandom)
    state.feasible = np.array([True, False, True, True])
    info = PodInfo(gpu_pod("p", gpus=1, milli=100))
    taken = {int(scorer.score(state, info, table()).argmax()) for _ in range(60)}

    assert taken == {0, 2, 3}


@pytest.mark.parametrize("policies", [(GpuRandom, GpuBestFit), (GpuBestFit, GpuRandom)])
async def test_of_two_policies_the_first_gives_a_pod_its_gpus(
    policies: tuple[type[GpuSharing], ...],
) -> None:
    """The other does not choose from what is left then, which may be nothing."""
    harness = with_plugins(*policies)
    harness.put(
        gpu_node("n", cpu=8_000, gpus=3),
        gpu_pod("whole", gpus=2, milli=1000),
        gpu_pod("shared", gpus=1, milli=600),
    )
    harness.cluster.bind_errors["whole"] = OSError("no route")
    await harness.until_idle()
    assert harness.placements() == {"shared": "n"}
    harness.cluster.bind_errors.clear()
    await harness.pass_time(2)

    assert harness.placements() == {"whole": "n", "shared": "n"}
    given = harness.listers.shared(GivenGpus)
    assert sorted(len(gpus) for gpus in given.values()) == [1, 2]
    assert {gpu for gpus in given.values() for gpu in gpus} == {0, 1, 2}
