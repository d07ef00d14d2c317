"""How many feasible nodes are enough, and where the search for them begins (spec §2.5)."""

import pytest

from berth.scheduler.cache.cache import Cache
from berth.scheduler.cycle import Cycle
from berth.scheduler.find_nodes_that_fit import find_nodes_that_fit_pod
from berth.scheduler.framework.interface import Plugin
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.profile.profile import Profile
from berth.scheduler.sampling import Sampling, num_feasible_nodes_to_find
from berth_plugins.image_locality import ImageLocality
from berth_plugins.node_unschedulable import NodeUnschedulable
from berth_plugins.priority_sort import PrioritySort
from tests.builders import node, pod


@pytest.mark.parametrize(
    ("percentage", "num_nodes", "want"),
    [
        pytest.param(0, 99, 99, id="few nodes: all of them"),
        pytest.param(5, 99, 99, id="few nodes: all, whatever is configured"),
        pytest.param(0, 6000, 6000, id="not configured: all of them"),
        pytest.param(40, 1000, 400, id="as configured"),
        pytest.param(5, 1000, 100, id="never fewer than a hundred"),
        pytest.param(100, 1000, 1000, id="all"),
    ],
)
def test_how_many_feasible_nodes_are_enough(percentage: int, num_nodes: int, want: int) -> None:
    assert num_feasible_nodes_to_find(percentage, num_nodes) == want


def table(*, nodes: int, cordoned: int) -> NodeTable:
    """Nodes n000, n001 ..., of which the first are *cordoned*."""
    cache = Cache()
    for i in range(nodes):
        cache.add_node(node(f"n{i:03}", unschedulable=i < cordoned))
    cache.refresh_order()
    return cache.table


def profile(percentage: int, *, scores: bool = True) -> Profile:
    points: dict[str, list[Plugin]] = {
        "queue_sort": [PrioritySort()],
        "filter": [NodeUnschedulable()],
        "score": [ImageLocality()] if scores else [],
    }
    return Profile(
        "default-scheduler",
        points,
        weights={"ImageLocality": 1},
        percentage_of_nodes_to_score=percentage,
    )


def candidates(nodes: NodeTable, by: Profile, sampling: Sampling) -> list[str]:
    """Make one attempt; return the candidates, in order."""
    found = find_nodes_that_fit_pod(Cycle(by, PodInfo(pod()), nodes, {}), sampling)
    return list(nodes.names(found.candidates.tolist()))


def names(*numbers: range) -> list[str]:
    return [f"n{i:03}" for some in numbers for i in some]


def test_a_sample_ends_before_the_first_feasible_node_too_many_and_the_next_begins_there() -> None:
    nodes, by, sampling = table(nodes=200, cordoned=20), profile(50), Sampling()
    assert candidates(nodes, by, sampling) == names(range(20, 120))
    assert sampling.next_start_node_index == 120

    assert candidates(nodes, by, sampling) == names(range(120, 200), range(20, 40))
    assert sampling.next_start_node_index == 40


def test_unsampled_every_node_comes_into_question_and_the_search_begins_at_the_same() -> None:
    nodes, by, sampling = table(nodes=200, cordoned=20), profile(0), Sampling()
    for _ in range(2):
        assert candidates(nodes, by, sampling) == names(range(20, 200))
        assert sampling.next_start_node_index == 0


def test_without_scores_the_first_node_of_a_sample_will_do() -> None:
    nodes, by, sampling = table(nodes=200, cordoned=20), profile(50, scores=False), Sampling()
    assert candidates(nodes, by, sampling) == ["n020"]
    assert sampling.next_start_node_index == 21
    assert candidates(nodes, by, sampling) == ["n021"]


def test_without_scores_extenders_are_given_more_than_one_node_to_filter() -> None:
    nodes, by = table(nodes=200, cordoned=20), profile(50, scores=False)
    assert candidates(nodes, by, Sampling(extenders_decide=True)) == names(range(20, 120))
