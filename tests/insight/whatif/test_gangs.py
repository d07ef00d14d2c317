"""Gangs in a simulation: they are placed as the scheduler places them, all or nobody."""

import random
from typing import Any, NamedTuple

import pytest
from examples.plugins.gang.gang_by_label import NAME_LABEL, SIZE_LABEL, GangByLabel
from hypothesis import assume, given
from hypothesis import strategies as st

from berth.insight.offline.simulate import simulate
from berth.insight.whatif.answer import Answer
from berth.insight.whatif.engine import answer
from berth.insight.whatif.question import Question
from berth.insight.whatif.snapshot import Snapshot
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.cycle_state import CycleState, Gang
from berth.scheduler.framework.interface import PreFilterPlugin, ReservePlugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.profile.build import Registry
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod
from tests.harness import with_plugins
from tests.insight.whatif.asking import manifest, reread, snapshot

SEED = 1


class Teams(PreFilterPlugin):
    """Pods of one ``team`` are a gang; they are named after it, and numbered up to ``size``."""

    NAME = "Teams"

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Any) -> Status | None:
        team = pod.labels.get("team")
        if team is not None:
            names = tuple(f"default/{team}-{i}" for i in range(int(pod.labels["size"])))
            state.gang = Gang(f"team {team}", names, self.NAME)
        return None


REGISTRY: Registry = {**IN_TREE, "Teams": Teams, "GangByLabel": GangByLabel}


def configured(plugin: str) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": plugin}]}}}],
    }


def ask(taken: Snapshot, *, plugin: str = "Teams", **question: Any) -> Answer:
    asked = Question.model_validate({"config": configured(plugin), **question})
    return answer(asked, taken, REGISTRY)


def refusals(found: Answer) -> dict[str, str]:
    return {key: group.message for group in found.unplaced for key in group.pods}


def in_team(name: str, *, size: int, cpu: int | str = 1, team: str = "t", **more: Any) -> Pod:
    return pod(name, cpu=cpu, labels={"team": team, "size": str(size)}, **more)


class Wanted(NamedTuple):
    cpus: tuple[int, ...]
    """Of each member."""
    is_gang: bool


wanted = st.builds(
    Wanted, st.lists(st.integers(1, 3), min_size=1, max_size=4).map(tuple), st.booleans()
)


def pods_of(groups: list[Wanted]) -> list[Pod]:
    return [
        in_team(f"t{g}-{i}", size=len(group.cpus), cpu=cpu, team=f"t{g}")
        if group.is_gang
        else pod(f"t{g}-{i}", cpu=cpu)
        for g, group in enumerate(groups)
        for i, cpu in enumerate(group.cpus)
    ]


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.lists(wanted, min_size=1, max_size=4),
    st.randoms(use_true_random=False),
)
async def test_gangs_are_placed_as_the_scheduler_places_them(
    cpus: list[int], groups: list[Wanted], order: random.Random
) -> None:
    """Left out is where a pod had to be tried again to be placed, as for single pods."""
    pods = pods_of(groups)
    order.shuffle(pods)
    nodes = [node(f"n{i}", cpu=cpu) for i, cpu in enumerate(cpus)]
    before = snapshot(*nodes, *pods)
    harness = with_plugins(Teams)
    harness.core.outside.rng.seed(SEED)
    harness.put(*nodes)
    harness.put(*pods)
    await harness.until_idle()
    told = {e.pod: e.note for e in harness.cluster.events if e.reason == "FailedScheduling"}
    placed = {f"default/{name}": where for name, where in harness.placements().items()}
    assume(not told.keys() & placed.keys())

    found = ask(reread(before), seed=SEED, preemption=True)

    assert found.placements == placed
    assert refusals(found).keys() == told.keys()
    # A simulation tries the others again once somebody is placed, and tells what was then.
    assert placed or refusals(found) == told
    for g, group in enumerate(groups):
        members = {f"default/t{g}-{i}" for i in range(len(group.cpus))}
        if group.is_gang:
            assert members <= found.placements.keys() or not members & found.placements.keys()


def test_a_gang_that_does_not_fit_leaves_its_room_to_others() -> None:
    members = [in_team(f"t-{i}", size=3) for i in range(3)]
    found = ask(snapshot(node("n1", cpu=2), *members, pod("other", cpu=2)))

    why = "team t: 2 of 3 members fit; first blocker default/t-2: 0/1 nodes are available: "
    assert found.placements == {"default/other": "n1"}
    assert refusals(found).keys() == {"default/t-0", "default/t-1", "default/t-2"}
    assert all(text.startswith("team t: ") for text in refusals(found).values())
    alone = ask(snapshot(node("n1", cpu=2), *members))
    assert set(refusals(alone).values()) == {f"{why}1 Insufficient cpu."}


def test_how_many_nodes_a_gang_needs() -> None:
    members = [manifest(in_team(f"t-{i}", size=3)) for i in range(3)]
    found = ask(
        snapshot(node("n1", cpu=1), node("like", cpu=1, unschedulable=True)),
        pods=members,
        findNodes={"like": "n1"},
    )

    assert found.placements == {}
    assert found.nodes_needed is not None
    assert found.nodes_needed.count == 2


def test_nobody_is_evicted_for_a_gang() -> None:
    found = ask(
        snapshot(
            node("n1", cpu=2),
            pod("low", cpu=2, node="n1", priority=0),
            *(in_team(f"t-{i}", size=2, priority=9) for i in range(2)),
        ),
        preemption=True,
    )
    assert (found.placements, found.victims) == ({}, ())


def by_label(name: str) -> Pod:
    return pod(name, cpu=1, labels={NAME_LABEL: "train", SIZE_LABEL: "3"})


@pytest.mark.parametrize(
    ("names", "placed"),
    [
        pytest.param("abc", {f"default/{name}": "n1" for name in "abc"}, id="complete"),
        pytest.param("ab", {}, id="one is not there yet"),
    ],
)
def test_a_gang_that_gates_its_pods(names: str, placed: dict[str, str]) -> None:
    found = ask(
        snapshot(node("n1", cpu=3), *(by_label(name) for name in names)), plugin="GangByLabel"
    )
    assert found.placements == placed
    assert set(refusals(found).values()) == (
        set() if placed else {"not tried: gang train: 2 of 3 members exist"}
    )


@pytest.mark.parametrize("cpu", [pytest.param(2, id="too small"), pytest.param(3, id="enough")])
def test_a_sequence_of_pods(cpu: int) -> None:
    scenario = {
        "id": "gang",
        "config": configured("GangByLabel"),
        "objects": [{**manifest(node("n1", cpu=cpu)), "kind": "Node"}],
        "pods": [manifest(made) for made in (by_label("a"), pod("p", cpu=2), *map(by_label, "bc"))],
    }
    gang = ("default/a", "default/b", "default/c")
    found = simulate(scenario, REGISTRY)
    if cpu == 3:
        assert found["assignments"] == {**dict.fromkeys(gang, "n1"), "default/p": None}
    else:
        assert found["assignments"] == {**dict.fromkeys(gang, None), "default/p": "n1"}
        assert set(found["fitErrors"]) == set(gang)


def test_what_plugins_reserved_for_a_gang_is_given_back() -> None:
    held: list[str] = []

    class Desk(ReservePlugin):
        NAME = "Teams"  # in its place

        def reserve(self, _state: CycleState, pod: PodInfo, _node_name: str) -> Status | None:
            held.append(pod.name)
            return Status.unschedulable("no desk") if pod.name == "t-2" else None

        def unreserve(self, _state: CycleState, pod: PodInfo, _node_name: str) -> None:
            held.remove(pod.name)

    class Both(Desk, Teams):
        pass

    asked = Question.model_validate({"config": configured("Teams")})
    members = [in_team(f"t-{i}", size=3) for i in range(3)]
    found = answer(asked, snapshot(node("n1"), *members), {**IN_TREE, "Teams": Both})

    assert found.placements == {}
    assert held == []
    assert set(refusals(found).values()) == {
        "team t: 2 of 3 members fit; first blocker default/t-2: 0/1 nodes are available: 1 no desk."
    }
