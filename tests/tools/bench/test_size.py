"""The bench of large clusters, on a small one: what is made up, and that everything is measured."""

import asyncio
import json

import msgspec
import pytest

from berth.runtime.clock import RealClock
from berth.scheduler.framework.kind import NODES, PODS
from berth.scheduler.framework.pod_info import PodInfo
from berth.tools.bench.large_cluster import LargeCluster
from berth.tools.bench.size import Settings, measure
from berth.tools.bench.size_server import Churn

SMALL = LargeCluster(nodes=20, pods=90)


def test_pods_are_of_templates_with_names_of_their_own() -> None:
    pods = [PODS.decode(all_pod) for all_pod in SMALL.all_pods()]
    assert len({pod.key for pod in pods}) == len({pod.metadata.uid for pod in pods}) == 90
    assert len({PodInfo(pod).template for pod in pods}) == 3
    names = {NODES.decode(all_node).name for all_node in SMALL.all_nodes()}
    assert {pod.spec.node_name for pod in pods} == names


def test_objects_are_as_large_as_real_ones() -> None:
    assert 4_000 < min(map(len, SMALL.all_pods())) < max(map(len, SMALL.all_pods())) < 8_000
    (size,) = {len(all_node) // 1_000 for all_node in SMALL.all_nodes()}
    assert size == 17
    assert json.loads(SMALL.node(0))["kind"] == "Node"


def test_changes_are_those_of_one_history() -> None:
    there = {PODS.decode(all_pod).metadata.uid for all_pod in SMALL.all_pods()}
    for resource, line in Churn(SMALL).lines(2_000):
        change = msgspec.json.decode(line)
        uid = change["object"]["metadata"]["uid"]
        match resource, change["type"]:
            case "pods", "ADDED":
                assert uid not in there
                there.add(uid)
            case "pods", "DELETED":
                there.remove(uid)
            case "pods", "MODIFIED":
                assert uid in there
            case other:
                assert other == ("nodes", "MODIFIED")
    assert len(there) == 90


@pytest.mark.wall
@pytest.mark.slow
async def test_everything_is_measured() -> None:
    settings = Settings(nodes=20, pods=90, rate=200, seconds=1)
    async with asyncio.timeout(60):
        figures = {each.name: each async for each in measure(settings, clock=RealClock())}
    assert len(figures) == 10
    none = {name for name, each in figures.items() if each.median <= 0}
    assert all("longest wait" in name or "late" in name for name in none), none
    assert figures["memory, at most"].median >= figures["memory"].median > 10
    assert figures["200 changes a second, CPU of one"].unit == "µs"
