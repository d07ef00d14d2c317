"""Pods go where they wake least hardware, as the plain formula says for each node."""

from typing import Any

import numpy as np
import pytest
from examples.plugins.gpu_sharing._gpu_sharing import RESOURCE
from examples.plugins.gpu_sharing.gpu_fragmentation import GpuFragmentation
from examples.plugins.gpu_sharing.gpu_power import GpuPower, GpuPowerArgs
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.node import Node
from berth.scheduler.cache.cache import Cache
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.interface import Plugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.testing import configuration
from berth_plugins.registry import IN_TREE
from tests.builders import node
from tests.examples.test_gpu_sharing import gpu_node, gpu_pod
from tests.harness import Harness

MODEL = "example.com/gpu-model"
T4, P100 = (10, 70), (25, 250)


def of_model(name: str, model: str, *, cpu: int = 64, gpus: int = 2) -> Node:
    gpus_in_all = {RESOURCE: gpus * 1000}
    return node(name, cpu=str(cpu), allocatable=gpus_in_all, labels={MODEL: model})


@pytest.mark.parametrize(
    ("asked", "watts"),
    [
        pytest.param(
            {"gpus": 1, "milli": 500},
            {"t4": 60, "p100": 0, "full": 60},
            id="a part of a GPU in use",
        ),
        pytest.param(
            {"gpus": 1, "milli": 600}, {"t4": 60, "p100": 225, "full": 60}, id="too large a part"
        ),
        pytest.param(
            {"gpus": 2, "milli": 1000}, {"t4": 120, "p100": 450, "full": 120}, id="whole GPUs"
        ),
        pytest.param(
            {"cpu": 1000}, {"t4": 105, "p100": 0, "full": 105}, id="a core of an idle CPU"
        ),
        pytest.param(
            {"cpu": 33_000}, {"t4": 210, "p100": 105, "full": 210}, id="cores of two CPUs"
        ),
    ],
)
def test_what_a_node_would_draw_more(asked: dict[str, Any], watts: dict[str, int]) -> None:
    cache = Cache()
    for each in (of_model("t4", "T4"), of_model("p100", "P100"), of_model("full", "T4")):
        cache.add_node(each)
    cache.add_pod(PodInfo(gpu_pod("a", cpu=1000, gpus=1, milli=500, on="p100", index="0")))
    cache.add_pod(PodInfo(gpu_pod("b", cpu=0, gpus=1, milli=800, on="full", index="1")))
    plugin = GpuPower(GpuPowerArgs(), Handle(cache.table))
    more = plugin.score(CycleState(), PodInfo(gpu_pod("p", **asked)), cache.table)
    assert {name: int(more[row]) for name, row in cache.table.row_of.items()} == watts


@given(st.lists(st.tuples(st.integers(0, 63), st.integers(0, 4)), min_size=1, max_size=5))
def test_the_sum_of_what_pods_add_is_what_all_nodes_draw(pods: list[tuple[int, int]]) -> None:
    cache = Cache()
    cache.add_node(of_model("n", "T4", cpu=512, gpus=32))
    plugin = GpuPower(GpuPowerArgs(), Handle(cache.table))
    idle = drawn = plugin.measure()["power in kW"]
    assert idle == (16 * 15 + 32 * 10) / 1000
    for number, (cpu, gpus) in enumerate(pods):
        first = sum(before for _, before in pods[:number])
        index = ",".join(str(first + gpu) for gpu in range(gpus))
        wanted: dict[str, Any] = {"cpu": cpu * 1000, "gpus": gpus, "milli": 1000}
        more = plugin.score(CycleState(), PodInfo(gpu_pod("p", **wanted)), cache.table)
        drawn += int(more[0]) / 1000
        cache.add_pod(PodInfo(gpu_pod(f"p{number}", **wanted, on="n", index=index)))
        assert plugin.measure()["power in kW"] == pytest.approx(drawn)


def test_only_the_measure_is_left_with_measures_only() -> None:
    cache = Cache()
    cache.add_node(of_model("n", "T4"))
    plugin = GpuPower(GpuPowerArgs(measures_only=True), Handle(cache.table))
    scores = plugin.score(CycleState(), PodInfo(gpu_pod("p", cpu=1000)), cache.table)
    assert np.all(scores == 0)


async def test_it_sees_the_gpus_that_another_plugin_gives_in_a_scheduler_without_a_lab() -> None:
    config = configuration(GpuFragmentation, GpuPower)
    (profile,) = config["profiles"]
    enabled = [{"name": "GpuFragmentation"}, {"name": "GpuPower", "weight": 100}]
    profile["plugins"]["multiPoint"]["enabled"] = enabled
    registry: dict[str, type[Plugin]] = {**IN_TREE}
    registry |= {"GpuFragmentation": GpuFragmentation, "GpuPower": GpuPower}
    harness = Harness(config=config, registry=registry)
    harness.put(gpu_node("a", 64_000, 2), gpu_node("b", 64_000, 2))
    for name in ("first", "second", "third", "fourth"):
        harness.put(gpu_pod(name, cpu=1000, gpus=1, milli=300))
        await harness.until_idle()
    assert len(harness.placements()) == 4
    assert len({harness.placements()[name] for name in ("first", "second", "third")}) == 1
