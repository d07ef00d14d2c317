"""Which nodes can take a pod, and what is known of the others (spec §2.3-2.5)."""

from collections.abc import Sequence

import pytest

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.cache.cache import Cache
from berth.scheduler.cycle import Cycle
from berth.scheduler.find_nodes_that_fit import (
    FeasibleNodes,
    evaluate_all_nodes,
    find_nodes_that_fit_pod,
)
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import Plugin, PreFilterPlugin, PreFilterResult
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.profile.profile import Profile
from berth_plugins.node_unschedulable import NodeUnschedulable
from berth_plugins.priority_sort import PrioritySort
from tests.builders import node, pod


def table(*nodes: Node) -> NodeTable:
    cache = Cache()
    for each in nodes:
        cache.add_node(each)
    cache.refresh_order()
    return cache.table


# The nominated node.

OPEN, CORDONED = node("open"), node("cordoned", unschedulable=True)


def cycle(a_pod: Pod, *pre_filters: Plugin, nodes: Sequence[Node] = (OPEN, CORDONED)) -> Cycle:
    points: dict[str, list[Plugin]] = {
        "queue_sort": [PrioritySort()],
        "pre_filter": list(pre_filters),
        "filter": [NodeUnschedulable()],
    }
    return Cycle(Profile("default", points, weights={}), PodInfo(a_pod), table(*nodes), {})


def names(found: FeasibleNodes, of: Cycle) -> tuple[list[str], list[str]]:
    """Return the candidates, and the nodes that are known not to fit."""
    rejected = of.nodes.names(found.diagnosis.rejected(of.nodes).nonzero()[0].tolist())
    return list(of.nodes.names(found.candidates.tolist())), sorted(rejected)


@pytest.mark.parametrize(
    ("nominated", "candidates", "is_nominated", "rejected"),
    [
        pytest.param("open", ["open"], True, [], id="it fits: no other is looked at"),
        pytest.param("cordoned", ["open"], False, ["cordoned"], id="it does not: all are"),
        pytest.param("gone", ["open"], False, ["cordoned"], id="it does not exist: all are"),
        pytest.param("", ["open"], False, ["cordoned"], id="there is none: all are"),
    ],
)
def test_the_nominated_node_is_evaluated_first(
    nominated: str, candidates: list[str], is_nominated: bool, rejected: list[str]
) -> None:
    of = cycle(pod(nominated=nominated))
    found = find_nodes_that_fit_pod(of)
    assert (*names(found, of), found.is_nominated) == (candidates, rejected, is_nominated)


def test_the_nominated_node_may_be_a_node_like_any_other() -> None:
    of = cycle(pod(nominated="open"), nodes=[OPEN, node("other")])
    found = find_nodes_that_fit_pod(of, nominated_first=False)
    assert (sorted(names(found, of)[0]), found.is_nominated) == (["open", "other"], False)


def test_what_is_found_out_about_a_nominated_node_that_pre_filter_left_out_counts() -> None:
    of = cycle(pod(nominated="cordoned"), Narrowing(), nodes=[node("n000"), CORDONED])
    found = find_nodes_that_fit_pod(of)
    assert names(found, of) == (["n000"], ["cordoned"])
    status = found.status_of(of.nodes.row_of["cordoned"])
    assert status is not None
    assert status.plugin == "NodeUnschedulable"


def test_all_nodes_are_evaluated_for_those_who_want_to_know() -> None:
    of = cycle(pod(nominated="open"), nodes=[OPEN, CORDONED, node("other")])
    found = evaluate_all_nodes(of)
    assert (*names(found, of), found.is_nominated) == (["open"], ["cordoned"], True)
    assert sorted(of.nodes.names(found.feasible.nonzero()[0].tolist())) == ["open", "other"]


# What is known of a node.


def test_a_node_that_pre_filter_left_out_has_the_status_of_all_such_nodes() -> None:
    of = cycle(pod(), Narrowing(), nodes=[node("n000"), node("n001")])
    found = find_nodes_that_fit_pod(of)
    left_out = found.status_of(of.nodes.row_of["n001"])
    assert found.status_of(of.nodes.row_of["n000"]) is None
    assert left_out is not None
    assert left_out.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert left_out.reasons == ("node(s) didn't satisfy plugin(s) [Narrowing]",)


# Who must change its mind when PreFilter rejects a pod.


class Narrowing(PreFilterPlugin):
    """Leaves one node."""

    NAME = "Narrowing"

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> Status | PreFilterResult | None:
        return PreFilterResult(frozenset({"n000"}))


class Elsewhere(Narrowing):
    """Leaves another."""

    NAME = "Elsewhere"

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> Status | PreFilterResult | None:
        return PreFilterResult(frozenset({"n001"}))


class Refusing(PreFilterPlugin):
    """Lets no pod in for now."""

    NAME = "Refusing"
    answer = Status.unschedulable("not now")

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        return self.answer


class Hopeless(Refusing):
    """Lets no pod in, whatever the others say."""

    NAME = "Hopeless"
    answer = Status.unresolvable("never")


@pytest.mark.parametrize(
    ("kinds", "rejectors"),
    [
        pytest.param([Narrowing, Elsewhere], {"Narrowing", "Elsewhere"}, id="nothing in common"),
        pytest.param([Narrowing, Refusing], {"Narrowing", "Refusing"}, id="unschedulable"),
        pytest.param([Narrowing, Hopeless], {"Hopeless"}, id="unresolvable: nobody else counts"),
    ],
)
def test_who_rejected_a_pod_before_any_node_was_filtered(
    kinds: list[type[PreFilterPlugin]], rejectors: set[str]
) -> None:
    points: dict[str, list[Plugin]] = {
        "queue_sort": [PrioritySort()],
        "pre_filter": [kind() for kind in kinds],
    }
    by = Profile("default-scheduler", points, weights={})
    found = find_nodes_that_fit_pod(
        Cycle(by, PodInfo(pod()), table(node("n000"), node("n001")), {})
    )
    assert found.diagnosis.unschedulable_plugins == rejectors
