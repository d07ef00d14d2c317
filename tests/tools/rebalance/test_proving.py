"""Proposals with proof: by a plan of the solver, carried out with the scheduler's own rules."""

from typing import Any

import pytest

from berth.insight.certificate.certificate import Number
from berth.insight.certificate.problem import Limits
from berth.insight.certificate.solver_process import is_installed
from berth.kube.objects.meta import KubeStruct
from berth.tools.rebalance.proposal import Proposal
from berth.tools.rebalance.propose import Goals, propose
from berth_plugins.registry import IN_TREE
from tests.builders import disruption_budget, node, pod, selector
from tests.insight.whatif.asking import snapshot

pytestmark = [
    pytest.mark.wall,
    pytest.mark.skipif(not is_installed(), reason="the extra `solver` is not installed"),
]
WEB = {"app": "web"}


def proposed(*objects: KubeStruct, prove: bool = True, **goals: Any) -> Proposal:
    proof = Limits(seconds=20) if prove else None
    return propose(snapshot(*objects), Goals(**goals), IN_TREE, proof=proof)


def numbers(proposal: Proposal) -> list[Number]:
    [certificate] = proposal.certificates
    return list(certificate.numbers)


def full_nodes(count: int) -> list[KubeStruct]:
    """Nodes of four CPUs with a pod of two and one of one: one is free on each."""
    return [
        obj
        for i in range(count)
        for obj in (
            node(f"n{i}", cpu="4"),
            pod(f"two-{i}", node=f"n{i}", cpu="2", owner="two", labels=WEB),
            pod(f"one-{i}", node=f"n{i}", cpu="1", owner="one"),
        )
    ]


def test_nodes_become_empty_with_the_fewest_evictions() -> None:
    """The node with the fewest pods cannot become empty: nobody else has room for its large one."""
    objects = [
        *(node(name, cpu="4") for name in "abc"),
        pod("large", node="a", cpu="4", owner="large"),
        *(pod(f"b{i}", node="b", cpu="1", owner="web") for i in range(2)),
        *(pod(f"c{i}", node="c", cpu="500m", owner="web") for i in range(3)),
    ]
    proposal = proposed(*objects, num_empty_nodes=1)
    assert proposal.emptied == ["b"]
    assert proposal.unmet == ()
    assert numbers(proposal) == [Number("evictions", 2, 2)]


def test_pods_of_other_nodes_move_so_that_one_becomes_empty() -> None:
    """What runs on a may go to b alone, where somebody else has to make room."""
    objects = [
        *(node(name, cpu="4", labels={"pool": name}) for name in "abcd"),
        pod("x", node="a", cpu="2", owner="x", node_selector={"pool": "b"}),
        pod("y", node="b", cpu="3", owner="y"),
        *(pod(f"pet-{name}", node=name, cpu="1") for name in "bcd"),
    ]
    assert proposed(*objects, prove=False, num_empty_nodes=1).unmet
    proposal = proposed(*objects, num_empty_nodes=1)
    assert (proposal.emptied, proposal.unmet) == (["a"], ())
    assert numbers(proposal) == [Number("evictions", 2, 2)]


def test_that_no_node_can_become_empty_is_proven() -> None:
    objects = [obj for i in range(2) for obj in (node(f"n{i}"), pod(f"p{i}", node=f"n{i}"))]
    objects += [pod(f"w{i}", node=f"n{i}", cpu="3", owner="w") for i in range(2)]
    proposal = proposed(*objects, num_empty_nodes=1)
    assert [unmet.why for unmet in proposal.unmet] == [
        "proven: no evictions of pods that may be evicted empty so many nodes"
    ]
    assert proposal.steps == ()


BIG = pod("big", cpu="4", priority=5)
FOR_BIG: dict[str, Any] = {"for_pods": ["default/big"]}


def test_pods_of_several_nodes_move_where_those_of_one_are_not_enough() -> None:
    objects = (*full_nodes(4), BIG)
    assert proposed(*objects, prove=False, **FOR_BIG).steps == ()
    proposal = proposed(*objects, **FOR_BIG)
    assert proposal.unmet == ()
    assert numbers(proposal) == [Number("evictions", 3, 3)]
    assert len(proposal.evictions) == 3
    assert len({eviction.node for eviction in proposal.evictions}) == 2
    assert [placement.pod for placement in proposal.placements] == ["default/big"]


def test_nodes_of_several_pods_that_are_to_fit_are_cordoned_together() -> None:
    second = pod("second", cpu="3", priority=3)
    goals: dict[str, Any] = {"for_pods": ["default/big", "default/second"]}
    proposal = proposed(*full_nodes(9), BIG, second, **goals)
    assert numbers(proposal) == [Number("evictions", 5, 5)]
    [step] = proposal.steps
    assert {step.cordon, *step.also_cordoned} == {p.node for p in proposal.placements}


def test_it_is_proven_that_no_evictions_help() -> None:
    objects = [node("n0", cpu="4"), pod("pet", node="n0", cpu="2"), BIG]
    [unmet] = proposed(*objects, **FOR_BIG).unmet
    assert unmet.why == "proven: no evictions of pods that may be evicted make room"


def test_budgets_that_allow_nothing_keep_pods() -> None:
    budget = disruption_budget(selects=selector(WEB))
    [unmet] = proposed(*full_nodes(4), budget, BIG, **FOR_BIG).unmet
    assert unmet.why.startswith("proven: ")


@pytest.mark.parametrize(
    ("most", "want"),
    [
        pytest.param(0, [("priority 5", 0), ("priority 0", 1), ("evictions", 0)], id="no move"),
        pytest.param(3, [("priority 5", 1), ("priority 0", 1), ("evictions", 3)], id="three moves"),
    ],
)
def test_most_pending_pods_with_so_many_moves(most: int, want: list[tuple[str, int]]) -> None:
    small = pod("small", cpu="1")
    proposal = proposed(*full_nodes(5), BIG, small, pending=True, most_evictions=most)
    assert numbers(proposal) == [Number(what, value, value) for what, value in want]
    assert len(proposal.evictions) == dict(want)["evictions"]


def test_pending_pods_fit_without_proof_within_so_many_evictions() -> None:
    free = [node("a", cpu="4"), node("b", cpu="4"), pod("x", node="a", cpu="2", owner="x")]
    wanted = pod("w", cpu="4", node_selector={"kubernetes.io/hostname": "a"})
    objects = (*free, wanted)
    assert proposed(*objects, prove=False, pending=True, most_evictions=0).evictions == []
    proposal = proposed(*objects, prove=False, pending=True, most_evictions=1)
    assert [eviction.pod for eviction in proposal.evictions] == ["default/x"]
