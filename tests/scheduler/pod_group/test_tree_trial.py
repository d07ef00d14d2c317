"""The trial of groups of groups, level by level (1.37 spec N11, N16.3)."""

from collections.abc import Sequence
from typing import Any

import pytest

from berth.kube.objects.pod_group import PodGroup
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import (
    FilterPlugin,
    PlacementFeasiblePlugin,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    Plugin,
    QueueSortPlugin,
)
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.placement import Placement, PlacementProgress, PodGroupPlacement
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.framework.verdict import PASS, Verdict
from berth.scheduler.pod_group.feasible_trial import FeasibleTrial
from berth.scheduler.pod_group.tree_trial import status_below
from berth.scheduler.pod_group.trial import GroupStatus, Result
from tests.builders import node
from tests.harness import Harness
from tests.scheduler.pod_group.building import composite, condition_of, group, member
from tests.scheduler.pod_group.test_feasible_trial import filtering, harness_with

GATES = ("TopologyAwareWorkloadScheduling", "CompositePodGroup")
BUILT_IN = ("DefaultPreemption", "TopologyPlacementGenerator", "PodGroupPodsCount")
FOUR = ("n1", "n2", "n3", "n4")
HALVES = (("n1", "n2"), ("n3", "n4"))


def generating(placements: dict[str, Any]) -> type[Plugin]:
    """Make a plugin that gives groups, by name, placements of these nodes, or a Status.

    A group without any has one for each node that its parent has.
    """

    class Generates(PlacementGeneratePlugin):
        NAME = "Generates"

        def placement_generate(
            self, group: PodGroup, scheduled: Any, parent: Placement, nodes: NodeTable
        ) -> Sequence[Placement] | Status:
            inside = parent.rows_of(nodes)
            single = [(name,) for name, row in nodes.row_of.items() if inside[row]]
            wanted = placements.get(group.metadata.name, sorted(single))
            if isinstance(wanted, Status):
                return wanted
            found = []
            for names in wanted:
                rows = nodes.no_rows()
                rows[[nodes.row_of[name] for name in names]] = True
                found.append(Placement("+".join(names), rows & inside))
            return found

    return Generates


def liking(scores: dict[tuple[str, str], int]) -> type[Plugin]:
    """Make a plugin that scores placements by the pods that get nodes there, and its name."""

    class Likes(PlacementScorePlugin):
        NAME = "Likes"

        def placement_score(self, candidate: PodGroupPlacement, nodes: NodeTable) -> int:
            pods = "+".join(assignment.pod.name for assignment in candidate.proposed)
            return scores.get((pods, candidate.placement.name), 0)

    return Likes


class RefusesTheFirst(PlacementFeasiblePlugin, QueueSortPlugin):
    """Says of the root that it may not start, once."""

    NAME = "RefusesTheFirst"

    def __init__(self, args: None = None, handle: Any = None) -> None:
        super().__init__(args, handle)
        self.has_refused = False

    def sort_key(self, queued: Any) -> Any:
        return queued.timestamp

    def placement_feasible(self, group: PodGroup, progress: PlacementProgress) -> Status | None:
        if group.metadata.name != "root" or self.has_refused:
            return None
        self.has_refused = True
        return Status.unschedulable("refused")


def harness_of_tree(*plugins: type[Plugin], but_not: Sequence[str] = (), cpu: str = "1") -> Harness:
    """Make a scheduler with a root of two groups, each with one pod, and four nodes."""
    harness = harness_with(
        *plugins, gates=GATES, but_not=(*BUILT_IN, "NodeResourcesBalancedAllocation", *but_not)
    )
    harness.put(*(node(name, cpu=cpu) for name in FOUR))
    return harness


REFUSED = "0/1 nodes are available: 1 refused."
FULL = "0/1 nodes are available: 1 Insufficient cpu."
FIRST = "0/2 placements are available, first placement status: pod group is unschedulable, "
TOO_FEW = "minCount (1) cannot be satisfied: 0 scheduled, 0 remaining"
NONE = "pod group is unschedulable"
CHILD = "composite pod group evaluation failed due to child error: "
NO_GANGS = ("GangScheduling",)


@pytest.mark.parametrize(
    ("plugins", "but_not", "placements", "pods", "groups"),
    [
        pytest.param(
            [liking({("p1+p2", "n3+n4"): 9, ("p1", "n1"): 99, ("p1", "n4"): 5, ("p2", "n3"): 5})],
            NO_GANGS,
            {"root": HALVES},
            {"p1": "n4", "p2": "n3"},
            {"pg1": "", "pg2": ""},
            id="children go to nodes in the placement of the root",
        ),
        pytest.param(
            [RefusesTheFirst, liking({("p1+p2", "n1+n2"): 9, ("p1", "n3"): 5})],
            NO_GANGS,
            {"root": HALVES},
            {"p1": "n3", "p2": "n4"},
            {"pg1": "", "pg2": ""},
            id="the first placement is refused before any child is tried",
        ),
        pytest.param(
            [filtering({"p1": "U", "p2": "U"})],
            NO_GANGS,
            {"root": [FOUR]},
            {"p1": REFUSED, "p2": REFUSED},
            {"pg1": NONE, "pg2": NONE},
            id="nobody needs pods, and none has a node: the root may not start",
        ),
        pytest.param(
            [filtering({"p1": "U", "p2": "U"})],
            (),
            {"root": HALVES},
            {"p1": REFUSED, "p2": "not tried"},
            {"pg1": FIRST + TOO_FEW, "pg2": "not tried"},
            id="all levels need what they cannot have",
        ),
        pytest.param(
            [liking({("p1", "n1"): 100, ("", "n1"): 100})],
            NO_GANGS,
            {"root": [("n1", "n2")]},
            {"p1": "n1", "p2": FULL},
            {"pg1": "", "pg2": ""},
            id="a placement without a pod of the child may win",
        ),
        pytest.param(
            [],
            NO_GANGS,
            {"root": Status.error("broken")},
            {"p1": "broken", "p2": "broken"},
            {"pg1": "broken", "pg2": "broken"},
            id="no placements of the root: an error",
        ),
        pytest.param(
            [],
            NO_GANGS,
            {"root": [FOUR], "pg2": Status.error("broken")},
            {"p1": f"{CHILD}broken", "p2": "broken"},
            {"pg1": f"{CHILD}broken", "pg2": "broken"},
            id="no placements of a child: an error of all",
        ),
    ],
)
async def test_a_tree_of_two_groups(
    plugins: list[type[Plugin]],
    but_not: Sequence[str],
    placements: dict[str, Any],
    pods: dict[str, str],
    groups: dict[str, str],
) -> None:
    """*pods* and *groups* by name: the node or the message; empty: it is scheduled."""
    not_tried = FIRST + "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"
    harness = harness_of_tree(generating(placements), *plugins, but_not=but_not)
    harness.put(composite(min_count=2))
    for number in "12":
        created = f"2026-01-0{number}T00:00:00Z"
        harness.put(group(f"pg{number}", min_count=1, parent="root", created=created))
        harness.put(member(f"p{number}", f"pg{number}", cpu="1"))
    for binding in await harness.core.schedule_next() or ():
        await harness.scheduler.binding_cycle.run(binding)
    for name, want in pods.items():
        placed = harness.placements().get(name)
        text = placed or harness.cluster.conditions[f"default/{name}"].message
        assert text == (not_tried if want == "not tried" else want), name
    for name, want in groups.items():
        condition = condition_of(harness, name)
        assert condition is not None
        assert condition.message == (not_tried if want == "not tried" else want)
        assert (condition.status == "True") is (not want)
    if not harness.placements():
        assert not harness.cache.table.requested.any()
    harness.core.check_invariants()


async def test_three_levels_are_tried_depth_first(monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[tuple[CycleState | None, ...]] = []

    class Looks(FilterPlugin):
        NAME = "Looks"

        def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
            leaf = state.placement
            middle = leaf.placement if leaf else None
            root = middle.placement if middle else None
            states.append((root, middle, leaf))
            return PASS

    # Of the root's halves, the middle has one node in each of its placements.
    placements = {"root": HALVES, "middle": (("n1", "n3"), ("n2", "n4")), "pg": HALVES}
    trials: list[str] = []
    run = FeasibleTrial.run

    def counted(self: FeasibleTrial, *args: Any, **kwargs: Any) -> Any:
        trials.append(self._group.metadata.name)
        return run(self, *args, **kwargs)

    monkeypatch.setattr(FeasibleTrial, "run", counted)
    harness = harness_of_tree(generating(placements), Looks, liking({}), but_not=NO_GANGS)
    harness.put(composite(), composite("middle", parent="root"), group("pg", parent="middle"))
    harness.put(member("p", "pg", cpu="1"))
    await harness.until_idle()
    assert trials.count("pg") == 8
    assert None not in {state for chain in states for state in chain}
    roots, middles, _ = zip(*states, strict=True)
    assert (len(set(roots)), len(set(middles))) == (2, 4)
    assert len(harness.placements()) == 1


async def test_a_composite_is_scored_by_the_pods_of_groups_that_may_start() -> None:
    proposed: list[tuple[str, ...]] = []

    class Notes(PlacementScorePlugin):
        NAME = "Notes"

        def placement_score(self, candidate: PodGroupPlacement, nodes: NodeTable) -> int:
            if "+" in candidate.placement.name:
                pods = (assignment.pod.name for assignment in candidate.proposed)
                proposed.append(tuple(sorted(pods)))
            return 0

    # The second group has room for one of its two pods only.
    harness = harness_of_tree(generating({"root": HALVES}), Notes)
    harness.put(composite(min_count=1))
    harness.put(group("pg1", min_count=1, parent="root", created="2026-01-01T00:00:00Z"))
    harness.put(group("pg2", min_count=2, parent="root", created="2026-01-02T00:00:00Z"))
    harness.put(member("p1", "pg1", cpu="1"))
    harness.put(member("q1", "pg2", cpu="1"), member("q2", "pg2", cpu="1"))
    await harness.bind_at_once()
    assert proposed == [("p1",), ("p1",)]
    assert set(harness.placements()) == {"p1"}
    told = {name: condition_of(harness, name) for name in ("pg1", "pg2")}
    assert {name: each.status if each else "" for name, each in told.items()} == {
        "pg1": "True",
        "pg2": "False",
    }


OK, U, E = (
    GroupStatus(Result.SCHEDULED, ""),
    GroupStatus(Result.UNSCHEDULABLE, "of the whole"),
    GroupStatus(Result.ERROR, "broken"),
)
OWN = GroupStatus(Result.UNSCHEDULABLE, "its own")
OWN_ERROR = GroupStatus(Result.ERROR, "its own")


@pytest.mark.parametrize(
    ("whole", "own", "want"),
    [
        pytest.param(OK, OK, OK, id="all is well"),
        pytest.param(OK, OWN, OWN, id="the others are enough"),
        pytest.param(U, OK, U, id="it would have been enough"),
        pytest.param(U, OWN, OWN, id="one reason of many"),
        pytest.param(U, None, U, id="it was not tried"),
        pytest.param(E, OWN, E, id="another has broken"),
        pytest.param(E, OWN_ERROR, OWN_ERROR, id="it has broken the whole"),
    ],
)
def test_what_a_part_comes_to(whole: GroupStatus, own: GroupStatus | None, want: Any) -> None:
    assert status_below(whole, own) is want
