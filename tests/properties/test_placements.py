"""No infeasible placement, and nobody left behind, by an oracle of straight loops.

The oracle knows nothing of plugins, tables or counters: it goes over pods and nodes. Not made up
here: preemption (all pods are of one priority), volumes, devices and preferences.
"""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler import outcome
from berth.scheduler.cycle import Cycle
from berth.scheduler.find_nodes_that_fit import evaluate_all_nodes
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.diagnosis import Diagnosis
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.schedule_pod import evaluate_pod, schedule_pod
from tests.builders import (
    HOSTNAME,
    ZONE,
    affinities,
    node,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    selector,
    spread,
    taint,
    toleration,
)
from tests.harness import Harness


@dataclass(frozen=True)
class Place:
    """A node, as far as pods here care."""

    name: str
    cpu: int
    pods: int
    zone: str
    tainted: bool

    def object(self) -> Node:
        taints = [taint("dedicated")] if self.tainted else []
        return node(self.name, cpu=self.cpu, pods=self.pods, zone=self.zone, taints=taints)


@dataclass(frozen=True)
class Want:
    """A pod, as far as it matters where it goes."""

    name: str
    cpu: int
    app: str
    zone: str
    tolerates: bool
    port: int
    keeps_off: str
    """Does not share a node with pods of this application."""
    near: str
    """Wants a pod of this application in its zone."""
    spreads: bool
    """Evenly over zones, with pods of its application."""

    def object(self) -> Pod:
        off, near = self.keeps_off, self.near
        wanted = affinities(
            *([pod_anti_affinity(required=[pod_term({"app": off}, key=HOSTNAME)])] if off else []),
            *([pod_affinity(required=[pod_term({"app": near}, key=ZONE)])] if near else []),
        )
        return pod(
            self.name,
            labels={"app": self.app},
            cpu=self.cpu,
            ports=[self.port] if self.port else [],
            node_selector={ZONE: self.zone} if self.zone else None,
            tolerations=[toleration("dedicated")] if self.tolerates else [],
            affinity=wanted if off or near else None,
            spread=[spread(ZONE, selector=selector({"app": self.app}))] if self.spreads else [],
        )


Placed = dict[Want, Place]


def fits(want: Want, place: Place, placed: Placed, places: list[Place]) -> bool:
    """Say whether *want* may go to *place* when the others are where they are."""
    here = [other for other, where in placed.items() if where == place]
    if place.tainted and not want.tolerates:
        return False
    if want.zone and want.zone != place.zone:
        return False
    if len(here) + 1 > place.pods or sum(other.cpu for other in here) + want.cpu > place.cpu:
        return False
    if want.port and any(other.port == want.port for other in here):
        return False
    if any(other.app == want.keeps_off or other.keeps_off == want.app for other in here):
        return False
    return _is_near(want, place, placed) and _is_even(want, place, placed, places)


def _is_near(want: Want, place: Place, placed: Placed) -> bool:
    if not want.near:
        return True
    liked = [where.zone for other, where in placed.items() if other.app == want.near]
    return place.zone in liked or (not liked and want.app == want.near)


def _is_even(want: Want, place: Place, placed: Placed, places: list[Place]) -> bool:
    if not want.spreads:
        return True
    zones = {other.zone for other in places if want.zone in ("", other.zone)}
    counts = {
        zone: sum(o.app == want.app and where.zone == zone for o, where in placed.items())
        for zone in zones
    }
    return counts[place.zone] + 1 - min(counts.values()) <= 1


apps = st.sampled_from(["x", "y"])
clusters = st.lists(
    st.builds(
        Place,
        name=st.sampled_from(["n1", "n2", "n3", "n4", "n5"]),
        cpu=st.integers(1, 4),
        pods=st.integers(1, 4),
        zone=st.sampled_from(["a", "b", "c"]),
        tainted=st.booleans(),
    ),
    min_size=1,
    unique_by=lambda place: place.name,
)
wants = st.lists(
    st.builds(
        Want,
        name=st.sampled_from([f"p{i}" for i in range(9)]),
        cpu=st.integers(0, 2),
        app=apps,
        zone=st.sampled_from(["", "", "", "a"]),
        tolerates=st.booleans(),
        port=st.sampled_from([0, 0, 80]),
        keeps_off=st.sampled_from(["", "", "x", "y"]),
        near=st.sampled_from(["", "", "x", "y"]),
        spreads=st.booleans(),
    ),
    min_size=1,
    unique_by=lambda want: want.name,
)


async def scheduled(places: list[Place], pods: list[Want]) -> Harness:
    harness = Harness()
    harness.put(*(place.object() for place in places))
    for want in pods:
        harness.put(want.object())
    await harness.until_idle()
    return harness


@given(clusters, wants)
async def test_every_placement_was_possible_when_it_was_made(
    places: list[Place], pods: list[Want]
) -> None:
    harness = await scheduled(places, pods)
    nodes = {place.name: place for place in places}
    by_key = {f"default/{want.name}": want for want in pods}

    placed: Placed = {}
    for event in harness.cluster.events:
        if event.reason == "Scheduled":
            want, place = by_key[event.pod], nodes[event.note.rpartition(" ")[2]]
            assert fits(want, place, placed, places), (want, place)
            placed[want] = place
    assert {want.name: place.name for want, place in placed.items()} == harness.placements()


@given(clusters, wants)
async def test_nobody_waits_who_has_a_place(places: list[Place], pods: list[Want]) -> None:
    harness = await scheduled(places, pods)
    where = harness.placements()
    nodes = {place.name: place for place in places}
    placed = {want: nodes[where[want.name]] for want in pods if want.name in where}

    for want in pods:
        if want not in placed:
            assert not any(fits(want, place, placed, places) for place in places), want


@given(clusters, wants)
async def test_a_row_is_evaluated_alone_as_it_is_in_the_table(
    places: list[Place], pods: list[Want]
) -> None:
    *running, pending = pods
    harness = await scheduled(places, running)
    table, state = harness.cache.table, CycleState()
    (profile,) = harness.scheduler.profiles.values()
    info = PodInfo(pending.object())
    whole = evaluate_all_nodes(Cycle(profile, info, table, {}, state))

    for name, row in table.row_of.items():
        alone, part = state.clone(), table.take([row])
        alone.feasible = part.exists.copy()
        diagnosis = Diagnosis(1)
        profile.run_filters(alone, info, part, diagnosis)
        assert diagnosis.status_of(0) == whole.status_of(row), name


@given(clusters, wants)
async def test_a_pod_is_placed_the_same_where_all_nodes_are_evaluated(
    places: list[Place], pods: list[Want]
) -> None:
    *running, pending = pods
    harness = await scheduled(places, running)
    (profile,) = harness.scheduler.profiles.values()
    info, table = PodInfo(pending.object()), harness.cache.table

    quick = schedule_pod(Cycle(profile, info, table, {}), select=min)
    full = evaluate_pod(Cycle(profile, info, table, {}), select=min)

    assert type(quick) is type(full)
    if isinstance(quick, outcome.Placed) and isinstance(full, outcome.Placed):
        assert quick.node_name == full.node_name
    elif isinstance(quick, outcome.Unschedulable) and isinstance(full, outcome.Unschedulable):
        assert quick.message == full.message
