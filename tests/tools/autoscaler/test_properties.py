"""Whatever the cluster: no node is added that helps nobody, none removed whose pods have no place.

Both are checked by placing the pods with the scheduler in the cluster that the plan leads to.
"""

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.insight.whatif.question import AddedNodes, NodeChoice, Question
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.tools.autoscaler.actions import RemoveNode, ScaleUp
from berth.tools.autoscaler.cluster_view import ClusterView
from berth.tools.autoscaler.node_groups import NodeGroup, group_of
from tests.builders import node, pod_anti_affinity, pod_term, spread
from tests.tools.autoscaler.planning import (
    SIMULATION,
    group,
    member,
    plan,
    planner,
    running,
    states,
    unschedulable,
    view,
)

GROUPS = {
    "a": group("a", cpu="2", max_size=3, labels={"pool": "a"}),
    "b": group("b", cpu="4", max_size=2, min_size=1, labels={"pool": "b"}),
}
POOLS = st.sampled_from([None, {"pool": "a"}, {"pool": "b"}, {"pool": "none"}])
CPUS = st.sampled_from(["100m", "1", "1500m", "3", "5"])
APART = pod_anti_affinity(required=[pod_term({"app": "web"}, key="kubernetes.io/hostname")])
RULES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {},
        {"labels": {"app": "web"}, "affinity": APART},
        {"labels": {"app": "web"}, "spread": [spread("kubernetes.io/hostname")]},
    ]
)


@st.composite
def clusters(draw: st.DrawFn) -> ClusterView:
    objects: list[Node | Pod] = []
    for name, each in GROUPS.items():
        for i in range(draw(st.integers(0, each.max_size))):
            cpu = "2" if name == "a" else "4"
            objects.append(member(f"{name}-{i}", of=name, cpu=cpu, labels={"pool": name}))
    if draw(st.booleans()):
        objects.append(node("other", cpu="2"))
    nodes = [object_.metadata.name for object_ in objects]
    for i, (at, cpu) in enumerate(draw(st.lists(st.tuples(st.integers(0, 9), CPUS), max_size=5))):
        if nodes:
            objects.append(running(f"r{i}", nodes[at % len(nodes)], cpu=cpu, **draw(RULES)))
    for i, (pool, cpu) in enumerate(draw(st.lists(st.tuples(POOLS, CPUS), max_size=5))):
        objects.append(unschedulable(f"w{i}", cpu=cpu, node_selector=pool, **draw(RULES)))
    return view(*objects)


def placed(
    seen: ClusterView, *, added: Sequence[AddedNodes] = (), removed: Sequence[str] = ()
) -> set[str]:
    question = Question(add_nodes=list(added), remove_nodes=NodeChoice(names=list(removed)))
    return set(SIMULATION.answer(question, seen.snapshot).placements)


def more(of: NodeGroup, count: int) -> list[AddedNodes]:
    return [AddedNodes(manifest=of.node(), count=count)] if count else []


@settings(max_examples=40, deadline=None)
@given(clusters())
def test_every_node_that_is_added_helps(seen: ClusterView) -> None:
    found = [
        e for e in plan(seen, states(seen, *GROUPS.values())).actions if isinstance(e, ScaleUp)
    ]
    assert len(found) <= 1
    for action in found:
        grown = GROUPS[action.group]
        now = sum(group_of(each.labels) == action.group for each in seen.nodes.values())
        assert action.current_size == now < action.new_size <= grown.max_size
        before = placed(seen)
        assert not before & set(action.pods), "nobody of them had a place"
        after = placed(seen, added=more(grown, action.delta))
        assert set(action.pods) <= after
        fewer = placed(seen, added=more(grown, action.delta - 1))
        assert not set(action.pods) <= fewer, "one node less would do, too"


@settings(max_examples=40, deadline=None)
@given(clusters())
def test_the_pods_of_every_node_that_is_removed_have_a_place(seen: ClusterView) -> None:
    used, now = planner(), states(seen, *GROUPS.values())
    plan(seen, now, by=used)
    actions = plan(seen, now, by=used, at=600.0).actions
    gone = [action for action in actions if isinstance(action, RemoveNode)]
    moving = {pod.key for each in gone for pod in each.pods}
    assert moving <= placed(seen, removed=[each.node for each in gone])
    for state in now:
        left = state.target_size - sum(each.group == state.group.name for each in gone)
        assert left >= min(state.group.min_size, state.target_size)
    assert not (gone and any(isinstance(action, ScaleUp) for action in actions))
