"""The answer in a sentence, for every place where a pod can be."""

import pytest

from berth.insight.explain.explanation import Whereabouts
from berth.insight.explain.summary import Subject, summarize
from berth.insight.explain.tables import render
from berth.insight.explain.wakers import ANY_CHANGE, woken_by
from berth.runtime.tables import as_text
from berth.scheduler.framework.cycle_state import CycleState, Gang
from berth.scheduler.framework.interface import FilterPlugin, PreFilterPlugin
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.framework.verdict import Verdict
from tests.builders import node, pod, taint
from tests.harness import Harness, with_plugins
from tests.insight.explain.asking import explain

MISS = "nearest is n1: remove taint a:NoSchedule, or tolerate it"


@pytest.fixture
def harness() -> Harness:
    made = Harness()
    made.put(node("n1", taints=[taint("a")]), node("n2", cpu=1), node("n3", cpu="500m"))
    return made


async def test_an_unschedulable_pod(harness: Harness) -> None:
    harness.put(pod("p", cpu=2))
    await harness.until_idle()

    told = explain(harness, "default/p")
    assert told.summary == (
        "default/p is pending: 0/3 nodes are available: 2 Insufficient cpu,"
        f" 1 node(s) had untolerated taint(s); {MISS}"
    )
    assert told.evaluation is not None
    assert told.evaluation.message == (
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
        " no new claims to deallocate,"
        " preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )


class Pair(PreFilterPlugin):
    """``p`` and ``q`` get nodes together."""

    NAME = "Pair"

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        state.gang = Gang("gang pq", ("default/p", "default/q"), self.NAME)
        return None


GANG_WAITS = (
    "waits for its gang: gang pq: 1 of 2 members fit; first blocker default/q: 0/1 nodes are"
    " available: 1 Insufficient cpu"
)


async def test_members_of_a_gang_tell_who_blocks_it() -> None:
    harness = with_plugins(Pair)
    harness.put(node("n1", cpu=2), pod("p", cpu=1), pod("q", cpu=3))
    await harness.until_idle()

    fits, blocks = explain(harness, "default/p"), explain(harness, "default/q")
    assert fits.summary == (
        f"default/p is pending: {GANG_WAITS}; alone 1 of 1 node could take it now"
    )
    assert blocks.summary == (
        f"default/q is pending: {GANG_WAITS}; alone it would fit nowhere now: 0/1 nodes are"
        " available: 1 Insufficient cpu; nearest is n1: request 1000m cpu less, or have a larger"
        " node"
    )
    assert fits.evaluation is not None
    assert fits.evaluation.gang == "gang pq"
    assert fits.evaluation.notes == (
        "evaluated alone; it gets a node only together with 1 other pod of gang pq",
    )
    assert [past.gang for past in fits.history] == ["gang pq"]
    lines = [line.split(maxsplit=2) for line in as_text(render(fits), width=200).splitlines()]
    assert ["waits", "for", f"{GANG_WAITS.partition(': ')[2]}."] in lines


def test_a_member_of_a_gang_that_was_not_tried_yet() -> None:
    harness = with_plugins(Pair)
    harness.put(node("n1", cpu=4), pod("p", cpu=1), pod("q", cpu=3))

    assert explain(harness, "default/q").summary == (
        "default/q is pending: not tried yet: 1 pod ahead, first default/p; now if all of gang pq"
        " got nodes it would go to n1, the only node that fits"
    )


async def test_an_unschedulable_pod_that_would_fit_by_now(harness: Harness) -> None:
    harness.put(pod("p", cpu=2))
    await harness.until_idle()
    harness.cache.add_node(node("n4"))

    assert explain(harness, "default/p").summary.startswith(
        "default/p is pending: nothing fit when it was last tried, but now 1 of 4 nodes can take"
        " it; waits until"
    )


async def test_what_extenders_refused_is_not_said_to_fit(harness: Harness) -> None:
    """They are not asked again, so all that plugins leave seems to fit."""
    harness.put(pod("p", cpu=1))
    told = explain(harness, "default/p")
    assert told.state is not None
    refused = told.state.model_copy(
        update={"where": Whereabouts.UNSCHEDULABLE, "words": "waits", "waits_for": ("Extender",)}
    )

    assert summarize(Subject("default/p"), refused, told.evaluation) == (
        "default/p is pending: 1 of 3 nodes can take it, but an extender said no when it was"
        " asked; waits"
    )


@pytest.mark.parametrize(
    ("cpu", "now"),
    [
        pytest.param(1, "now it would go to n2, the only node that fits", id="it fits"),
        pytest.param(
            2,
            "now it would fit nowhere: 0/3 nodes are available: 2 Insufficient cpu,"
            f" 1 node(s) had untolerated taint(s); {MISS}",
            id="it does not",
        ),
    ],
)
def test_a_pod_that_was_not_tried_yet(harness: Harness, cpu: int, now: str) -> None:
    harness.put(pod("p", cpu=cpu), pod("first", priority=1))

    assert explain(harness, "default/p").summary == (
        f"default/p is pending: not tried yet: 1 pod ahead, first default/first; {now}"
    )


async def test_a_bound_pod_is_told_why_it_is_there(harness: Harness) -> None:
    harness.put(node("n4", cpu=8), pod("p", cpu="500m"))
    await harness.until_idle()

    summary = explain(harness, "default/p").summary
    assert summary.startswith("default/p is bound to n4 at attempt 1: n4 (")
    assert " before n2 (" in summary


def test_a_pod_of_another_scheduler_has_nothing_but_its_state(harness: Harness) -> None:
    harness.put(pod("p", scheduler="other"))

    told = explain(harness, "default/p")
    assert told.state is not None
    assert told.summary == f"default/p is pending: {told.state.words}"


class Silent(FilterPlugin):
    """Refuses every node, and says of no event that it could change that."""

    NAME = "Silent"

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdict:
        return Verdict.reject(Status.unschedulable("no"), where=nodes.exists)


def test_a_plugin_that_registers_nothing_is_woken_by_everything() -> None:
    profile = with_plugins(Silent).scheduler.profiles["default-scheduler"]

    assert woken_by(profile, ["Silent"]) == {"Silent": (ANY_CHANGE,)}


async def test_the_message_is_that_of_the_event_with_what_preemption_adds() -> None:
    harness = Harness()
    harness.put(node("n1", cpu=1), node("n2", taints=[taint("a")]))
    harness.put(pod("vital", cpu=1, node="n1", priority=9), pod("p", cpu=1, priority=5))
    await harness.until_idle()

    (event,) = (event.note for event in harness.cluster.events if event.pod == "default/p")
    assert " preemption: 0/2 nodes are available: " in event
    told = explain(harness, "default/p").evaluation
    assert told is not None
    assert told.message == event

    harness.put(node("n3", cpu=1, taints=[taint("a")]))
    changed = explain(harness, "default/p").evaluation
    assert changed is not None
    assert "preemption" not in changed.message, "nobody has asked it about what is there now"
    assert changed.message.startswith("0/3 nodes are available: ")
