"""NodeResourcesFit and NodeResourcesBalancedAllocation: scores against the scalar rules."""

import json
import math
from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import ScorePlugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import SKIP, Status
from berth_plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
)
from berth_plugins.node_resources_fit import (
    NodeResourcesFit,
    NodeResourcesFitArgs,
)
from berth_plugins.shared.resource_allocation import ResourceSpec
from tests.builders import node, pod
from tests.plugins.evaluating import raw_scores, table

GPU = "example.com/gpu"
SHAPE = ((10, 2), (30, 9), (67, 0), (90, 7))


class Amounts(NamedTuple):
    """One resource of one node: what it has, what its pods take, what the new pod adds."""

    has: int
    used: int
    request: int

    @property
    def requested(self) -> int:
        return self.used + self.request


def least(r: Amounts) -> int:
    return 0 if r.requested > r.has else (r.has - r.requested) * 100 // r.has


def most(r: Amounts) -> int:
    return min(r.requested, r.has) * 100 // r.has


def on_curve(r: Amounts) -> int:
    u = 100 if r.requested > r.has else r.requested * 100 // r.has
    for k, (x, y) in enumerate(SHAPE):
        if u <= x:
            if k == 0:
                return y * 10
            x0, y0 = SHAPE[k - 1]
            return y0 * 10 + math.trunc((y - y0) * 10 * (u - x0) / (x - x0))
    return SHAPE[-1][1] * 10


def average(scored: list[tuple[int, int]]) -> int:
    """Spec §5.8 for LeastAllocated and MostAllocated: ``(score, weight)`` of one node."""
    return sum(s * w for s, w in scored) // max(sum(w for _, w in scored), 1)


def rounded_average(scored: list[tuple[int, int]]) -> int:
    """Spec §5.8 for RequestedToCapacityRatio."""
    above = [(s, w) for s, w in scored if s > 0]
    if not above:
        return 0
    return math.floor(sum(s * w for s, w in above) / sum(w for _, w in above) + 0.5)


def balance(fractions: list[float]) -> int:
    match fractions:
        case []:
            std = 0.0
        case [first, second]:
            std = abs((first - second) / 2)
        case _:
            total = 0.0
            for f in fractions:
                total += f
            mean, squares = total / len(fractions), 0.0
            for f in fractions:
                squares += (f - mean) * (f - mean)
            std = math.sqrt(squares / len(fractions)) if len(fractions) > 2 else 0.0
    return int((1 - std) * 100)


def balanced(counted: list[Amounts]) -> int:
    """Spec §5.9 for one node."""
    with_pod = balance([min(1.0, r.requested / r.has) for r in counted])
    without = balance([min(1.0, r.used / r.has) for r in counted])
    return 50 + (50 + with_pod - without) // 2


STRATEGIES = {
    "LeastAllocated": (least, average),
    "MostAllocated": (most, average),
    "RequestedToCapacityRatio": (on_curve, rounded_average),
}


NAMES = {"cpu": "cpu", "memory": "memory", "gpu": GPU, "unknown": "example.com/unknown"}


def fit(strategy: str, **weights: int) -> NodeResourcesFit:
    resources = [{"name": NAMES[name], "weight": weight} for name, weight in weights.items()]
    scoring: dict[str, object] = {"type": strategy, "resources": resources}
    if strategy == "RequestedToCapacityRatio":
        shape = [{"utilization": x, "score": y} for x, y in SHAPE]
        scoring["requestedToCapacityRatio"] = {"shape": shape}
    args = json.dumps({"scoringStrategy": scoring})
    return NodeResourcesFit(NodeResourcesFitArgs.model_validate_json(args))


class Row(NamedTuple):
    """The resources of one node."""

    cpu: Amounts
    memory: Amounts
    gpu: Amounts


def alike(rows: list[Row]) -> list[Row]:
    """Give all nodes the requests of the first, as one pod is scored on all of them."""
    return [
        Row(*(of._replace(request=first.request) for of, first in zip(row, rows[0], strict=True)))
        for row in rows
    ]


TIB = 2**40

cpus = st.builds(Amounts, st.integers(0, 512_000), st.integers(0, 600_000), st.integers(0, 9000))
tebibytes = st.integers(0, 99 * TIB)
memories = st.builds(Amounts, tebibytes, tebibytes, st.integers(0, TIB))
small_memories = st.builds(Amounts, st.integers(0, 20), st.integers(0, 20), st.integers(0, 9))
gpus = st.builds(Amounts, st.integers(0, 8), st.integers(0, 9), st.integers(0, 4))
clusters = st.lists(
    st.builds(Row, cpus, memories | small_memories, gpus), min_size=1, max_size=4
).map(alike)
weights = st.integers(1, 100)


def scores_of(plugin: ScorePlugin, rows: list[Row]) -> list[int]:
    """Score nodes with these amounts for the pod of the first; they share its requests."""
    nodes = table(
        *[
            node(f"n{i}", cpu=f"{cpu.has}m", memory=memory.has, allocatable={GPU: gpu.has})
            for i, (cpu, memory, gpu) in enumerate(rows)
        ],
        pods=[
            pod(f"old-{i}", node=f"n{i}", cpu=f"{cpu.used}m", memory=m.used, requests={GPU: g.used})
            for i, (cpu, m, g) in enumerate(rows)
        ],
    )
    cpu, memory, gpu = rows[0]
    a_pod = pod(cpu=f"{cpu.request}m", memory=memory.request, requests={GPU: gpu.request})
    return list(raw_scores(plugin, a_pod, nodes).values())


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(rows=clusters, of=st.tuples(weights, weights, weights))
def test_fit_scores_follow_the_rule(
    strategy: str, rows: list[Row], of: tuple[int, int, int]
) -> None:
    formula, combine = STRATEGIES[strategy]
    plugin = fit(strategy, cpu=of[0], memory=of[1], gpu=of[2], unknown=5)
    want = []
    for cpu, memory, gpu in rows:
        counted = [(cpu, of[0]), (memory, of[1])] + ([(gpu, of[2])] if gpu.request else [])
        want.append(combine([(formula(r), w) for r, w in counted if r.has]))
    assert scores_of(plugin, rows) == want


@pytest.mark.parametrize("names", [("cpu", "memory"), ("cpu", "memory", "gpu"), ("memory",)])
@given(rows=clusters)
def test_balanced_scores_follow_the_rule(names: tuple[str, ...], rows: list[Row]) -> None:
    assume(any(getattr(rows[0], name).request for name in names))  # else PreScore skips
    resources = tuple(ResourceSpec(name=NAMES[name]) for name in names)
    args = NodeResourcesBalancedAllocationArgs(resources=resources)
    want = []
    for row in rows:
        asked_for = [getattr(row, n) for n in names if n != "gpu" or row.gpu.request]
        want.append(balanced([amounts for amounts in asked_for if amounts.has]))
    assert scores_of(NodeResourcesBalancedAllocation(args), rows) == want


@pytest.mark.parametrize(
    ("plugin", "want"),
    [
        pytest.param(NodeResourcesFit(), {"a": 73, "b": 84}, id="NodeResourcesFit"),
        pytest.param(NodeResourcesBalancedAllocation(), {"a": 73, "b": 70}, id="Balanced"),
    ],
)
def test_the_worked_example(plugin: ScorePlugin, want: dict[str, int]) -> None:
    """Spec §12.3."""
    nodes = table(
        node("a", cpu="4", memory="8Gi"),
        node("b", cpu="2", memory="4Gi"),
        pods=[pod("old", cpu="1", memory="1Gi", node="a")],
    )
    assert raw_scores(plugin, pod(cpu="500m", memory="256Mi"), nodes) == want


def test_fit_counts_defaults_for_pods_without_requests() -> None:
    nodes = table(node("n", cpu="1", memory="1000Mi"), pods=[pod("old", node="n")])
    assert raw_scores(NodeResourcesFit(), pod(), nodes) == {"n": (80 + 60) // 2}


@pytest.mark.parametrize(
    ("a_pod", "want"),
    [
        pytest.param(pod(), SKIP, id="no requests"),
        pytest.param(pod(cpu="1m"), None, id="one of the resources"),
        pytest.param(pod(requests={GPU: 1}), SKIP, id="other resources only"),
    ],
)
def test_balanced_skips_pods_without_requests(a_pod: Pod, want: Status | None) -> None:
    plugin = NodeResourcesBalancedAllocation()
    assert plugin.pre_score(CycleState(), PodInfo(a_pod), table()) == want


def test_three_resources_on_nodes_that_have_one_two_or_all() -> None:
    """For 36/50 and 2/50 the formulas for two and for more resources differ in the last digit."""
    three = tuple(ResourceSpec(name=name) for name in ("cpu", "memory", "ephemeral-storage"))
    plugin = NodeResourcesBalancedAllocation(NodeResourcesBalancedAllocationArgs(resources=three))
    disk = {"ephemeral-storage": "50"}
    nodes = table(
        node("all", cpu="50", memory="10", allocatable=disk),
        node("two", cpu="50", memory=0, allocatable=disk),
        node("one", cpu="50", memory=0),
        node("none", cpu=0, memory=0),
    )
    a_pod = pod(cpu="36", memory="1", requests={"ephemeral-storage": "2"})
    cpu, memory, storage = Amounts(50000, 0, 36000), Amounts(10, 0, 1), Amounts(50, 0, 2)
    assert raw_scores(plugin, a_pod, nodes) == {
        "all": balanced([cpu, memory, storage]),
        "two": balanced([cpu, storage]),
        "one": balanced([cpu]),
        "none": balanced([]),
    }
    assert balanced([cpu, storage]) == 58


def test_balanced_counts_no_defaults() -> None:
    nodes = table(node("n", cpu="1", memory="1000Mi"), pods=[pod("old", node="n")])
    want = balanced([Amounts(1000, 0, 500), Amounts(1000, 0, 100)])
    a_pod = pod(cpu="500m", memory="100Mi")
    assert raw_scores(NodeResourcesBalancedAllocation(), a_pod, nodes) == {"n": want}
