"""Which nodes can go, and where their pods go."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.insight.whatif import find_removable
from berth.insight.whatif.answer import Removable, Usage
from berth.insight.whatif.manifests import QuestionError
from berth.insight.whatif.question import NodeChoice
from berth.kube.objects.meta import OwnerReference
from tests.builders import disruption_budget, node, pod, selector
from tests.insight.whatif.asking import ask, manifest, snapshot

DAEMON = OwnerReference("apps/v1", "DaemonSet", "agent", "u-agent", controller=True)
MIRROR = OwnerReference("v1", "Node", "n", "u-n", controller=True)


def nodes(*names: str, cpu: str = "4", **more: Any) -> list[Any]:
    return [node(name, cpu=cpu, memory="8Gi", **more) for name in names]


def can_go(*objects: Any, choice: dict[str, Any] | None = None, **question: Any) -> Any:
    found = ask(snapshot(*objects), findRemovable=choice or {}, **question)
    assert found.removable is not None
    return found.removable


def names(found: Any) -> list[str]:
    return [each.node for each in found.nodes]


def test_the_least_used_goes_and_its_pods_have_a_place() -> None:
    found = can_go(
        *nodes("a", "b", "c"),
        pod("x", cpu="3", node="a", owner="web"),
        pod("y", cpu="1", node="b", owner="web"),
        pod("z", cpu="2", node="c"),
    )
    assert [(each.node, each.moves) for each in found.nodes] == [("b", {"default/y": "c"})]
    assert (found.after.nodes, found.after.resources["cpu"].requested) == (2, 6000)
    assert [(stay.nodes, stay.why) for stay in found.stays] == [
        (("c", "a"), "the other nodes have too little cpu left")
    ]
    assert found.without_controller == ()


def test_daemons_and_mirrors_do_not_count() -> None:
    found = can_go(
        *nodes("a", "b"),
        pod("agent-a", cpu="4", node="a", owner=DAEMON),
        pod("static", cpu="1", node="b", owner=MIRROR),
        pod("y", cpu="1", node="b"),
    )
    assert [(each.node, each.moves) for each in found.nodes] == [("a", {})]
    assert [stay.why for stay in found.stays] == ["the other nodes have too little cpu left"], (
        "there is no other node any more"
    )


def test_pods_without_a_controller_are_named() -> None:
    found = can_go(*nodes("a", "b"), pod("bare", cpu="1", node="a"), pod("y", cpu="2", node="b"))
    assert (names(found), found.without_controller) == (["a"], ("default/bare",))


@pytest.mark.parametrize(("allows", "go"), [(0, []), (1, ["a"])])
def test_budgets_are_respected(allows: int, go: list[str]) -> None:
    guarded = [pod(name, cpu="1", node="a", labels={"app": "x"}) for name in "pq"]
    budget = disruption_budget(selects=selector({"app": "x"}), allows=allows)
    found = can_go(*nodes("a", "b"), *guarded, pod("y", cpu="3", node="b"), budget)
    assert names(found) == [], "both do not fit on b"
    found = can_go(*nodes("a", "b"), *guarded, pod("y", cpu="2", node="b", owner="w"), budget)
    assert names(found)[:1] == (go or ["b"])
    assert ("a PodDisruptionBudget allows no eviction" in str(found.stays)) is (not go)


def test_pods_of_other_schedulers_stay() -> None:
    found = can_go(*nodes("a", "b"), pod("x", node="a", scheduler="mine", cpu="1"))
    assert names(found) == ["b"]
    (stays,) = found.stays
    assert (stays.why, stays.nodes) == ("scheduler 'mine' places pods of it", ("a",))


def test_the_control_plane_goes_only_by_name() -> None:
    label = {"node-role.kubernetes.io/control-plane": ""}
    cluster = [*nodes("cp", labels=label), *nodes("w"), pod("y", cpu="1", node="w")]
    assert names(can_go(*cluster)) == ["w"]
    assert names(can_go(*cluster, choice={"names": ["c*"]})) == []
    assert names(can_go(*cluster, choice={"names": ["cp"]})) == ["cp"]


def test_only_the_chosen_go_and_none_that_are_added() -> None:
    cluster = [*nodes("old-1", "old-2", labels={"pool": "old"}), *nodes("b"),
               pod("x", cpu="3", node="old-1"), pod("y", cpu="3", node="old-2")]  # fmt: skip
    assert names(can_go(*cluster, choice={"selector": "pool=old"})) == ["old-1"]
    assert names(can_go(*cluster, choice={"names": ["old-2"]})) == ["old-2"]
    new = {"manifest": manifest(node("new", cpu="4"))}
    found = can_go(*cluster, choice={"names": ["old-*", "new"]}, addNodes=[new])
    assert names(found) == ["old-1", "old-2"]
    assert [(stay.nodes, stay.why) for stay in found.stays] == [
        (("new",), "it is one of the added nodes")
    ]


def test_what_is_asked_for_needs_its_room() -> None:
    cluster = [*nodes("a", "b"), pod("y", cpu="1", node="a")]
    assert names(can_go(*cluster)) == ["b"]
    asked = [manifest(pod("new", cpu="4"))]
    assert names(can_go(*cluster, pods=asked)) == []


def test_who_was_found_goes_only_together_with_the_others() -> None:
    """One after another both fit: 3 on c, then 2 on d. But the important one comes first."""
    cluster = [node(name, cpu=cpu) for name, cpu in {"a": 40, "b": 4, "c": 4, "d": 3}.items()]
    pods = [
        pod("large", cpu="3", node="a"),
        pod("important", cpu="2", node="b", priority=1),
        *(pod(f"foreign-{name}", cpu="1", node=name, scheduler="mine") for name in "cd"),
    ]
    found = can_go(*cluster, *pods)
    assert [(each.node, each.moves) for each in found.nodes] == [("a", {"default/large": "c"})]
    assert [stay.why for stay in found.stays if stay.nodes == ("b",)] == [
        "its pods fit elsewhere, but not together with those of the others"
    ]


def test_the_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_removable, "MOST_PODS", 3)
    cluster = nodes("a", "b", "c", cpu="40")
    pods = [pod(f"{name}{i}", cpu="1", node=name) for name in "abc" for i in range(2)]
    found = can_go(*cluster, *pods)
    assert names(found) == ["a"]
    assert "not tried, after 2 pods were placed for the others" in str(found.stays)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_whatever_can_go_can_be_removed_at_once(data: st.DataObject) -> None:
    """The answer is what ``removeNodes`` says, so whoever asks that next hears the same."""
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    cluster = [node(f"n{i}", cpu=str(size)) for i, size in enumerate(sizes)]
    pods = []
    for i, size in enumerate(sizes):
        for j in range(data.draw(st.integers(0, size))):
            priority = data.draw(st.integers(0, 2))
            pods.append(pod(f"p{i}-{j}", cpu="1", node=f"n{i}", priority=priority))
    found = can_go(*cluster, *pods)
    again = ask(snapshot(*cluster, *pods), removeNodes={"names": names(found)})
    assert again.fits
    assert again.placements == {k: v for each in found.nodes for k, v in each.moves.items()}
    assert again.after.model_dump(include=set(Usage.model_fields)) == found.after.model_dump()
    told = [name for stay in found.stays for name in stay.nodes]
    assert sorted([*names(found), *told]) == sorted(each.name for each in cluster)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_same_can_go_if_pods_share_answers(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=2, max_size=8))
    cluster = [node(f"n{i}", cpu=str(size)) for i, size in enumerate(sizes)]
    pods = [
        pod(f"p{i}-{j}", cpu=data.draw(st.sampled_from(("500m", "1"))), node=f"n{i}", owner="web")
        for i, size in enumerate(sizes)
        for j in range(data.draw(st.integers(0, size)))
    ]

    async def sharing(begin: find_removable.Begin, choice: NodeChoice) -> Removable:
        return await find_removable.removable(lambda **_: begin(shares_answers=True), choice)

    found = can_go(*cluster, *pods)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("berth.insight.whatif.engine.removable", sharing)
        assert can_go(*cluster, *pods) == found


# Placing anew.


def repacked(*objects: Any, **question: Any) -> Any:
    return ask(snapshot(*objects), repack=True, **question)


MOST = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {
                            "type": "MostAllocated",
                            "resources": [{"name": "cpu", "weight": 1}],
                        }
                    },
                }
            ],
            "plugins": {
                "multiPoint": {
                    "disabled": [
                        {"name": "NodeResourcesBalancedAllocation"},
                        {"name": "PodTopologySpread"},
                    ]
                }
            },
        }
    ],
}


def test_a_packed_cluster_needs_fewer_nodes() -> None:
    cluster = nodes("a", "b", "c")
    pods = [
        *(pod(f"w-{name}", cpu="1", node=name, owner="web") for name in "abc"),
        pod("agent", cpu="1", node="c", owner=DAEMON),
    ]
    found = repacked(*cluster, *pods, config=MOST, compareConfig={**MOST, "profiles": [{}]})
    assert found.fits
    assert (found.repacked.nodes_before, found.repacked.nodes_after) == (3, 1)
    assert found.repacked.emptied == ("a", "b")
    assert found.repacked.pods == 3
    assert [(move.pod, move.source, move.target) for move in found.repacked.moves] == [
        ("default/w-a", "a", "c"),
        ("default/w-b", "b", "c"),
    ]
    assert found.after.resources == found.before.resources
    assert found.compared.repacked.nodes_after > 1


def test_replicas_do_not_change_places_for_nothing() -> None:
    """Whatever order they are placed in, who can be where it was is there."""
    cluster = nodes("a", "b", cpu="1")
    pods = [pod("x", cpu="1", node="b", owner="w"), pod("y", cpu="1", node="a", owner="w")]
    found = repacked(*cluster, *pods)
    assert (found.repacked.moves, found.repacked.pods) == ((), 2)
    assert found.placements == {"default/x": "b", "default/y": "a"}
    others = [pod("x", cpu="1", node="b", owner="v"), pod("y", cpu="1", node="a", owner="w")]
    assert len(repacked(*cluster, *others).repacked.moves) == 2


def test_the_important_come_first_and_who_is_left_is_told() -> None:
    cluster = nodes("a", cpu="2")
    pods = [
        pod("low", cpu="2", node="a", priority=1),
        pod("waits", cpu="2", priority=2),
    ]
    found = repacked(*cluster, *pods)
    assert found.placements == {"default/waits": "a"}
    assert [each.pods for each in found.unplaced] == [("default/low",)]
    assert not found.fits


def test_who_may_not_be_evicted_stays() -> None:
    guarded = pod("x", cpu="1", node="a", labels={"app": "x"})
    budget = disruption_budget(selects=selector({"app": "x"}), allows=0)
    other = pod("y", cpu="1", node="b", owner="w")
    found = repacked(*nodes("a", "b"), guarded, other, budget, config=MOST)
    assert found.repacked.pods == 1
    assert (found.repacked.nodes_before, found.repacked.nodes_after) == (2, 1)
    assert found.placements == {"default/y": "a"}
    assert found.notes == ("not moved: 1 pod, because a PodDisruptionBudget allows no eviction",)


def test_too_many_to_be_packed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("berth.insight.whatif.world.MOST_PODS", 1)
    pods = [pod(f"p{i}", node="a") for i in range(2)]
    with pytest.raises(QuestionError, match="repack: 2: more than 1 pods"):
        repacked(*nodes("a"), *pods)


def test_only_one_of_both() -> None:
    with pytest.raises(ValueError, match="repack goes without findRemovable"):
        repacked(*nodes("a"), findRemovable={})
