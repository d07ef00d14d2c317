"""Pods of a snapshot are explained as those of a running scheduler are."""

import pytest

from berth.insight.explain.explanation import Whereabouts
from berth.insight.explain.unplaced import AS_IF_UNPLACED
from berth.insight.whatif.reasons import explain_pod
from berth.insight.whatif.snapshot import SnapshotError
from berth.kube.objects.pod import Pod
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod
from tests.harness import Harness
from tests.insight.explain.asking import explain
from tests.insight.whatif.asking import reread, snapshot

NODES = (node("n1", cpu=1), node("n2", cpu=2))


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(pod("p", cpu=4), id="it fits nowhere"),
        pytest.param(pod("p", cpu=2), id="it fits on one node"),
        pytest.param(pod("p", cpu=2, node="n2"), id="it has a node"),
        pytest.param(pod("p", cpu=2, nominated="n2"), id="it is nominated"),
        pytest.param(pod("p", scheduler="other"), id="another scheduler's"),
    ],
)
def test_the_same_as_of_a_running_scheduler(asked: Pod) -> None:
    objects = (*NODES, pod("old", cpu="500m", node="n1"), asked)
    harness = Harness()
    harness.put(*objects)

    told = explain_pod(reread(snapshot(*objects)), "default/p", IN_TREE, limit=None)
    live = explain(harness, "default/p")
    assert (told.evaluation, told.uid, told.profile) == (live.evaluation, live.uid, live.profile)
    assert told.history == ()
    assert live.state is not None
    if told.state is None:
        assert not asked.spec.node_name
    else:
        assert (told.state.where, told.state.node) == (live.state.where, live.state.node)


def test_a_pod_that_has_a_node_is_evaluated_as_if_it_had_none() -> None:
    taken = snapshot(*NODES, pod("p", cpu=2, node="n2"))

    told = explain_pod(taken, "default/p", IN_TREE, limit=0)
    assert told.state is not None
    assert (told.state.where, told.state.node) == (Whereabouts.BOUND, "n2")
    assert told.summary == "default/p is bound to n2"
    evaluated = told.evaluation
    assert evaluated is not None
    assert (evaluated.notes, evaluated.num_feasible) == ((AS_IF_UNPLACED,), 1)


@pytest.mark.parametrize("key", ["default/q", "default/done"])
def test_pods_that_are_not_there(key: str) -> None:
    taken = snapshot(*NODES, pod("done", node="n1", phase="Succeeded"))

    with pytest.raises(SnapshotError, match=f"pod {key}: not found, or it has finished"):
        explain_pod(taken, key, IN_TREE, limit=None)
