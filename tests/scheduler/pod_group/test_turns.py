"""Others have turns while a place for a group is searched: it starts as a whole, or not at all."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from berth.kube.objects.node import Node
from berth.scheduler.pod_group import placement_search
from tests.builders import node, pod
from tests.harness import Harness
from tests.scheduler.pod_group.building import composite, group, members
from tests.scheduler.pod_group.topologies import GATES

NAMES = ("u", "v", "w", "x")
PARTS = {"g": NAMES[:2], "h": NAMES[2:]}


@pytest.fixture(autouse=True)
def turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have a turn after each placement."""
    monkeypatch.setattr(placement_search, "PODS_PER_TURN", 1)


def node_of(rack: str, number: int, *, cpu: str = "2") -> Node:
    return node(f"{rack}{number}", cpu=cpu, labels={"rack": rack})


def racks(*, is_tree: bool = False, **sizes: int) -> Harness:
    """Make a cluster of racks with so many nodes of 2 CPUs, and a group that needs four pods.

    If it *is_tree*, it is a group of two groups, which need two pods each.
    """
    harness = Harness(
        config={
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "featureGates": dict.fromkeys((*GATES, "CompositePodGroup"), True),
        }
    )
    for rack, size in sizes.items():
        harness.put(*(node_of(rack, number) for number in range(size)))
    if is_tree:
        harness.put(composite(min_count=2, topology="rack"))
        for name, pods in PARTS.items():
            harness.put(group(name, min_count=2, parent="root"), *members(*pods, of=name, cpu="1"))
    else:
        harness.put(group(min_count=4, topology="rack"), *members(*NAMES, cpu="1"))
    return harness


async def during(harness: Harness, change: Callable[[], Any], *, turn: int) -> None:
    """Have *change* happen in the turn of this number, counted from 1, and go on to the end."""
    step = asyncio.create_task(harness.core.step())
    for _ in range(turn):
        assert not step.done()
        await asyncio.sleep(0)
    assert not step.done()
    harness.core.check_invariants()  # nothing of a trial is seen
    assert not [pod for pod in harness.cache.pods() if pod.name in NAMES]
    change()
    await step
    harness.core.check_invariants()
    await harness.pass_time(3)


def rack_of(harness: Harness) -> set[str]:
    return {on[0] for name, on in harness.placements().items() if name in NAMES}


@pytest.mark.parametrize("is_tree", [False, True], ids=["a group", "a group of groups"])
@pytest.mark.parametrize("turn", [1, 2])
@pytest.mark.parametrize(
    ("change", "rack"),
    [
        pytest.param(lambda _: None, {"b"}, id="nothing: the fullest that holds it"),
        pytest.param(
            lambda harness: harness.put(pod("other", cpu="1", node="b0")),
            {"c"},
            id="the best is taken",
        ),
        pytest.param(
            lambda harness: harness.delete(harness.cluster.nodes["b1"]),
            {"c"},
            id="a node of the best is gone",
        ),
        pytest.param(
            lambda harness: [harness.delete(harness.cluster.nodes[name]) for name in ("b0", "b1")],
            {"c"},
            id="the best is gone",
        ),
        pytest.param(
            lambda harness: [
                harness.put(pod(f"other{name}", cpu="2", node=name))
                for name in ("b0", "b1", "c0", "c1", "c2")
            ],
            set(),
            id="all are taken",
        ),
        pytest.param(
            lambda harness: harness.put(node_of("d", 0, cpu="8")), {"b"}, id="another one comes"
        ),
    ],
)
async def test_the_cluster_changes(
    change: Callable[[Harness], Any], rack: set[str], turn: int, is_tree: bool
) -> None:
    harness = racks(is_tree=is_tree, a=1, b=2, c=3)
    await during(harness, lambda: change(harness), turn=turn)
    assert rack_of(harness) == rack
    assert len([name for name in harness.placements() if name in NAMES]) == (4 if rack else 0)


async def test_a_pod_of_the_group_goes() -> None:
    harness = racks(a=1, b=2, c=3)
    await during(harness, lambda: harness.delete(harness.cluster.pods["default/x"]), turn=1)
    assert harness.placements() == {}
    harness.put(*members("x", cpu="1"))
    await harness.pass_time(30)
    assert rack_of(harness) == {"b"}


async def test_the_group_goes() -> None:
    harness = racks(a=1, b=2, c=3)
    [gone] = [*harness.listers.pod_groups]
    await during(harness, lambda: harness.delete(gone), turn=1)
    assert harness.placements() == {}


async def test_a_group_of_the_group_goes() -> None:
    harness = racks(is_tree=True, a=1, b=2, c=3)
    gone = harness.listers.pod_groups.get("default", "h")
    assert gone is not None
    await during(harness, lambda: harness.delete(gone), turn=1)
    assert harness.placements() == {}
    harness.put(gone)
    await harness.pass_time(30)
    assert rack_of(harness) == {"b"}
