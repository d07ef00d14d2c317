"""Workloads of scheduler_perf: their shapes, and that all pods that can be bound are."""

from collections import Counter

import msgspec
import pytest

from berth import cli
from berth.bench.names import SCHEDULER_PERF
from berth.bench.scheduler_perf import WORKLOADS, Size
from berth.bench.scheduler_perf_load import measure
from berth.bench.throughput import Settings
from berth.clock import RealClock
from berth.framework.kind import NODES, PODS


def test_the_command_line_knows_them_all() -> None:
    assert tuple(WORKLOADS) == SCHEDULER_PERF


@pytest.mark.parametrize("name", WORKLOADS)
def test_objects_are_as_many_as_the_size_says(name: str) -> None:
    workload, size = WORKLOADS[name], Size(4, 8, 3)
    nodes = [NODES.decode(msgspec.json.encode(each)) for each in workload.nodes(size)]
    initial = [PODS.decode(msgspec.json.encode(each)) for each in workload.initial_pods(size)]
    measured = [PODS.decode(msgspec.json.encode(each)) for each in workload.measured_pods(size)]
    assert len({each.name for each in nodes}) == size.nodes + bool(workload.named_node)
    kinds = len(workload.initial) or 1
    assert len({each.metadata.name for each in initial}) == size.initial * kinds
    assert set(Counter(each.spec.node_name for each in initial).values()) == {2 * kinds}
    assert len({each.metadata.name for each in measured}) == size.measured
    assert not any(each.spec.node_name for each in measured)


def test_a_size_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["bench", "throughput", "--workload=PreemptionBasic", "--size=5Nodes"]
    assert cli.run(argv) == 2
    said = capsys.readouterr().err
    assert said.endswith("--size 5Nodes: PreemptionBasic has 1000Nodes, 5000Nodes\n")


@pytest.mark.wall
@pytest.mark.slow
async def test_measured_pods_are_bound_while_others_come() -> None:
    size = Size(12, 4, 5)
    result = await measure("PreemptionAsync", size, Settings(), clock=RealClock())
    assert (result.pods, result.bound) == (5, 5)
