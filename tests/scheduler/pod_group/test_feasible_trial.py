"""When the trial of a group ends, and what it comes to (1.37 spec N8.3, N16.1, N16.2)."""

from collections.abc import Callable, Iterator, Sequence
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
from berth.scheduler.framework.status import Code, Status
from berth.scheduler.framework.verdict import PASS, Verdict
from berth.scheduler.pod_group.feasible_trial import FeasibleTrial
from berth_plugins.gang_scheduling import GangScheduling
from berth_plugins.registry import IN_TREE
from tests.builders import node
from tests.harness import Harness
from tests.scheduler.pod_group.building import condition_of, group, members

TOPOLOGY = "TopologyAwareWorkloadScheduling"
OK, W, U, UU, E = "OK", "W", "U", "UU", "E"
STATUSES = {
    OK: None,
    W: Status(Code.WAIT, ("waiting",)),
    U: Status.unschedulable("refused"),
    UU: Status.unresolvable("refused"),
    E: Status.error("broken"),
}


def answering(answers: Sequence[str]) -> type[Plugin]:
    """Make a plugin that says one after the other whether a group may start."""
    left = iter(answers)

    class Answers(PlacementFeasiblePlugin, QueueSortPlugin):
        NAME = "Answers"

        def placement_feasible(self, group: PodGroup, progress: PlacementProgress) -> Status | None:
            return STATUSES[next(left)]

        def sort_key(self, queued: Any) -> Any:
            return queued.timestamp

    return Answers


def filtering(results: dict[str, str]) -> type[Plugin]:
    """Make a plugin that says of each pod, by name, whether any node takes it."""

    class Filters(FilterPlugin):
        NAME = "Filters"

        def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
            status = STATUSES[results.get(pod.name, OK)]
            return PASS if status is None else Verdict.reject(status, nodes.exists)

    return Filters


def harness_with(
    *plugins: type[Plugin], gates: Sequence[str] = (), but_not: Sequence[str] = ()
) -> Harness:
    """Make a scheduler of groups with *plugins* after those by default, and without some."""
    sorts = [each.NAME for each in plugins if issubclass(each, QueueSortPlugin)]
    off = [*but_not, *(["PrioritySort"] if sorts else [])]
    enabled = [{"name": each.NAME} for each in plugins]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "featureGates": dict.fromkeys(("GenericWorkload", *gates), True),
        "profiles": [
            {
                "plugins": {
                    "multiPoint": {
                        "enabled": enabled,
                        "disabled": [{"name": name} for name in off],
                    }
                }
            }
        ],
    }
    return Harness(config=config, registry={**IN_TREE, **{p.NAME: p for p in plugins}})


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str | None]]]:
    """What trials came to, each with the results of its pods; None: it was not tried."""
    found: list[tuple[str, list[str | None]]] = []
    run = FeasibleTrial.run

    def recorded(self: FeasibleTrial, members: Any, *args: Any, **kwargs: Any) -> Any:
        status = run(self, members, *args, **kwargs)
        names = [type(each.outcome).__name__ if each.outcome else None for each in members]
        found.append((status.result.value, names))
        return status

    monkeypatch.setattr(FeasibleTrial, "run", recorded)
    return found


RESULTS = {OK: "Placed", U: "Unschedulable", UU: "Unschedulable", E: "Failed"}


@pytest.mark.parametrize(
    "gates",
    [(), (TOPOLOGY,), (TOPOLOGY, "CompositePodGroup")],
    ids=["", "with topology", "with groups of groups"],
)
@pytest.mark.parametrize(
    ("answers", "filters", "result", "tried"),
    [
        pytest.param(None, [OK, OK, OK], OK, 3, id="nobody is asked: all fit"),
        pytest.param([OK] * 4, [OK, OK, OK], OK, 3, id="it may start with what it has"),
        pytest.param([W, W, W, OK], [OK, OK, OK], OK, 3, id="all are needed, and fit"),
        pytest.param([W] * 4, [OK, OK, OK], U, 3, id="all fit, and are too few"),
        pytest.param([W, U], [OK, OK, OK], U, 1, id="too few after the first"),
        pytest.param([W, W, U], [OK, OK, OK], U, 2, id="too few after the second"),
        pytest.param([W, W, W, OK], [U, OK, OK], OK, 3, id="two are enough"),
        pytest.param([W, OK, OK, OK], [UU, U, U], U, 3, id="it may start, and nobody fits"),
        pytest.param(None, [OK, E, OK], E, 2, id="nobody is asked: an error"),
        pytest.param([W, OK, E], [OK, OK, OK], E, 2, id="an error after the second"),
        pytest.param([U], [OK, OK, OK], U, 0, id="hopeless"),
        pytest.param([E], [OK, OK, OK], E, 0, id="an error at once"),
    ],
)
async def test_the_trial_of_three_pods_on_one_node(
    trials: list[tuple[str, list[str | None]]],
    answers: Sequence[str] | None,
    filters: Sequence[str],
    result: str,
    tried: int,
    gates: Sequence[str],
) -> None:
    pods = dict(zip("abc", filters, strict=True))
    plugins = [filtering(pods), *([answering(answers)] if answers else [])]
    harness = harness_with(*plugins, gates=gates, but_not=("GangScheduling", "DefaultPreemption"))
    harness.put(node("n"), group(min_count=3), *members("a", "b", "c"))
    popped = harness.scheduler.next_pod()
    assert popped is not None
    bindings = await harness.scheduler.schedule_one(popped)

    condition = condition_of(harness)
    assert condition is not None
    assert (condition.status, condition.reason) == {
        OK: ("True", "Scheduled"),
        U: ("False", "Unschedulable"),
        E: ("False", "SchedulerError"),
    }[result]
    _, results = trials[0]
    want = [RESULTS[each] for each in filters[:tried]]
    assert results == want + [None] * (3 - tried)
    placed = [name for name, each in zip("abc", want, strict=False) if each == "Placed"]
    assert [each.pod.name for each in bindings] == (placed if result == OK else [])
    harness.core.check_invariants()


@pytest.mark.parametrize(
    ("min_count", "progress", "status"),
    [
        pytest.param(3, (3, 0), "W not yet satisfied: 0 scheduled, 3 remaining", id="none yet"),
        pytest.param(3, (1, 1), "U cannot be satisfied: 1 scheduled, 1 remaining", id="too few"),
        pytest.param(3, (0, 3), "", id="all"),
        pytest.param(3, (2, 3), "", id="enough, and some remain"),
        pytest.param(None, (2, 0), "W not yet satisfied: 0 scheduled, 2 remaining", id="basic"),
        pytest.param(None, (0, 0), "U cannot be satisfied: 0 scheduled, 0 remaining", id="none"),
        pytest.param(None, (1, 1), "", id="basic: one is enough"),
    ],
)
def test_gang_scheduling_counts(
    min_count: int | None, progress: tuple[int, int], status: str
) -> None:
    plugin = GangScheduling(None, harness_with().core.handle)
    found = plugin.placement_feasible(group(min_count=min_count), PlacementProgress(*progress))
    needed = min_count or 1
    match status[:1]:
        case "W":
            assert found == Status(Code.WAIT, (f"minCount ({needed}) is {status[2:]}",))
        case "U":
            assert found == Status.unschedulable(f"minCount ({needed}) {status[2:]}")
        case _:
            assert found is None


# Placements: one pod, "one" is node n1, "two" is n2.


def generating(answer: Callable[[NodeTable], Sequence[Placement] | Status]) -> type[Plugin]:
    class Generates(PlacementGeneratePlugin):
        NAME = "Generates"

        def placement_generate(
            self, group: PodGroup, scheduled: Any, parent: Placement, nodes: NodeTable
        ) -> Sequence[Placement] | Status:
            return answer(nodes)

    return Generates


def _on(nodes: NodeTable, *names: str) -> Iterator[Placement]:
    for name in names:
        rows = nodes.exists & False
        rows[nodes.row_of[name]] = True
        yield Placement(f"on {name}", rows)


def both(nodes: NodeTable) -> list[Placement]:
    return [*_on(nodes, "n1", "n2")]


def scoring(name: str, scores: dict[str, int | Status]) -> type[Plugin]:
    class Scores(PlacementScorePlugin):
        NAME = name

        def placement_score(self, candidate: PodGroupPlacement, nodes: NodeTable) -> int | Status:
            return scores[candidate.placement.name]

    return Scores


NOT = "0/2 placements are available, first placement status: pod group is unschedulable, refused"


def scores_of(one: int, two: int, name: str = "S") -> type[Plugin]:
    return scoring(name, {"on n1": one, "on n2": two})


@pytest.mark.parametrize(
    ("plugins", "result", "counted"),
    [
        pytest.param([scores_of(2, 1)], "n1", (2, 2, 0), id="the first is better"),
        pytest.param([scores_of(1, 2)], "n2", (2, 2, 0), id="the second is better"),
        pytest.param(
            [generating(lambda _: [])], "no feasible placements found", (0, 0, 0), id="none"
        ),
        pytest.param(
            [filtering({"a": U}), answering([W, U, W, U])], NOT, (2, 0, 2), id="no node takes it"
        ),
        pytest.param(
            [answering([W, U, W, U])], NOT, (2, 0, 2), id="it has a node, and may not start"
        ),
        pytest.param(
            [answering([W, OK, W, U]), scores_of(1, 9)], "n1", (2, 1, 1), id="one is feasible"
        ),
        pytest.param(
            [generating(lambda _: Status.error("broken"))], "broken", (0, 0, 0), id="an error"
        ),
        pytest.param(
            [scoring("S", {"on n1": Status.error("broken")})],
            'running PlacementScore plugins: plugin "S" failed with: broken',
            (2, 2, 0),
            id="a score fails",
        ),
        pytest.param(
            [filtering({"a": E}), generating(lambda nodes: [*_on(nodes, "n1")])],
            'failed to schedule other pod from a pod group: running "Filters" filter plugin:'
            " broken (node n1)",
            (1, 0, 0),
            id="an error in the only placement",
        ),
    ],
)
async def test_the_search_for_a_placement(
    plugins: list[type[Plugin]], result: str, counted: tuple[int, int, int]
) -> None:
    if not any(issubclass(each, PlacementGeneratePlugin) for each in plugins):
        plugins = [*plugins, generating(both)]
    off = ("GangScheduling", "DefaultPreemption", "TopologyPlacementGenerator",
           "PodGroupPodsCount", "NodeResourcesFit")  # fmt: skip
    harness = harness_with(*plugins, gates=(TOPOLOGY,), but_not=off)
    harness.put(node("n1"), node("n2"), group(min_count=1), *members("a"))
    bindings = await harness.core.schedule_next()
    for binding in bindings or ():
        await harness.scheduler.binding_cycle.run(binding)
    condition = condition_of(harness)
    assert condition is not None
    placed = harness.placements().get("a")
    assert (placed or condition.message) == result
    found: dict[str, float] = {}
    for family in harness.metrics.placements.collect():
        for sample in family.samples:
            if sample.name.endswith("_total"):
                key = sample.labels.get("result", "generated")
                found[key] = found.get(key, 0) + sample.value
    names = ("generated", "feasible", "infeasible")
    assert tuple(found.get(name, 0) for name in names) == counted


class Counts(FilterPlugin, PlacementScorePlugin):
    """Counts the pods of a trial, and scores a placement by what it counted there."""

    NAME = "Counts"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        assert state.placement is not None
        before = state.placement.get(self.NAME) or ()
        state.placement.write(self.NAME, (*before, pod.name))
        return PASS

    def placement_score(self, candidate: PodGroupPlacement, nodes: NodeTable) -> int | Status:
        assert candidate.state is not None
        seen = candidate.state.read(self.NAME)
        return 100 if seen == ("a", "b") else Status.error(f"saw {seen}")


async def test_a_score_reads_what_was_written_in_its_own_placement() -> None:
    off = ("TopologyPlacementGenerator", "PodGroupPodsCount", "NodeResourcesFit")
    harness = harness_with(Counts, generating(both), gates=(TOPOLOGY,), but_not=off)
    harness.put(node("n1"), node("n2"), group(min_count=2), *members("a", "b"))
    await harness.until_idle()
    assert len(harness.placements()) == 2
