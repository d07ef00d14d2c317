"""The comparer: every way in which cache and API can differ, and those that are none."""

from collections.abc import Iterable

import pytest

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.runtime.clock import FakeClock
from berth.scheduler.cache.cache import Cache
from berth.scheduler.cache.comparer import Comparison, Counted, compare, placed
from berth.scheduler.framework.pod_info import PodInfo
from berth.service.cache_check import CacheCheck
from tests.builders import node, pod


def cache_of_two_nodes() -> Cache:
    """Nodes a and b; pod ``bound`` on a, and ``assumed`` on b."""
    cache = Cache()
    cache.add_node(node("a"))
    cache.add_node(node("b"))
    cache.add_pod(PodInfo(pod("bound", node="a")))
    cache.assume_pod(PodInfo(pod("assumed", node="b")))
    return cache


def difference(cache: Cache, *, nodes: Iterable[Node], pods: Iterable[Pod]) -> Comparison:
    names = [node.metadata.name for node in nodes]
    return compare(Counted.by(cache), nodes=names, pods=placed(pods))


NODES = (node("a"), node("b"))
PODS = (pod("bound", node="a"), pod("assumed"))


@pytest.mark.parametrize(
    ("nodes", "pods", "want"),
    [
        pytest.param(NODES, PODS, Comparison(), id="alike, one pod is assumed only"),
        pytest.param(
            NODES,
            (PODS[0], pod("assumed", node="b")),
            Comparison(),
            id="the API has bound the assumed pod already",
        ),
        pytest.param(NODES, (*PODS, pod("waiting")), Comparison(), id="a waiting pod counts not"),
        pytest.param(
            NODES,
            (*PODS, pod("done", node="a", phase="Succeeded")),
            Comparison(),
            id="nor does a finished one",
        ),
        pytest.param(
            (*NODES, node("c")), PODS, Comparison(missing_nodes=("c",)), id="a node is missing"
        ),
        pytest.param(
            NODES[:1], PODS, Comparison(redundant_nodes=("b",)), id="a node is there no more"
        ),
        pytest.param(
            NODES,
            (*PODS, pod("other", node="b")),
            Comparison(missing_pods=("default/other",)),
            id="a pod is missing",
        ),
        pytest.param(
            NODES,
            (),
            Comparison(redundant_pods=("default/assumed", "default/bound")),
            id="all gone",
        ),
        pytest.param(
            NODES,
            (pod("bound"), PODS[1]),
            Comparison(redundant_pods=("default/bound",)),
            id="unbound, and not assumed",
        ),
        pytest.param(
            NODES,
            (pod("bound", node="b"), PODS[1]),
            Comparison(misplaced_pods=("default/bound is on b, not on a",)),
            id="on another node",
        ),
        pytest.param(
            NODES,
            (pod("bound", node="a", uid="second"), PODS[1]),
            Comparison(missing_pods=("default/bound",), redundant_pods=("default/bound",)),
            id="recreated under its name",
        ),
    ],
)
async def test_compare(nodes: tuple[Node, ...], pods: tuple[Pod, ...], want: Comparison) -> None:
    cache = cache_of_two_nodes()
    found = difference(cache, nodes=nodes, pods=pods)
    check = CacheCheck(
        cache,
        nodes={each.metadata.name: each for each in nodes},
        pods={each.key: each for each in pods},
        clock=FakeClock(),
    )
    await check.look()

    assert found == want
    assert found.is_clean == (want == Comparison())
    assert check.differences == sum(len(getattr(want, name)) for name in want.__struct_fields__)


def test_pods_on_a_node_that_is_not_known_are_compared_too() -> None:
    cache = cache_of_two_nodes()
    cache.remove_node("a")

    assert difference(cache, nodes=NODES, pods=PODS) == Comparison(missing_nodes=("a",))


def test_differences_in_words() -> None:
    assert Comparison().lines() == []
    assert Comparison(
        missing_nodes=("a", "b"), misplaced_pods=("x is on a, not on b",)
    ).lines() == [
        "nodes missing in the cache: a, b",
        "pods on another node: x is on a, not on b",
    ]
