"""Where a pod is, in words, from its arrival to its being bound."""

import asyncio

import pytest

from berth.insight.explain.explanation import PodState, Whereabouts
from tests.builders import node, pod, taint
from tests.harness import Harness
from tests.insight.explain.asking import explain, explainer
from tests.service.server.scheduler.debug.world import permitted

START = "2001-09-09T01:46:40Z"
"""What the clock of the harness shows at first."""


@pytest.fixture
def harness() -> Harness:
    return Harness()


def state(harness: Harness, name: str = "p") -> PodState:
    found = explain(harness, f"default/{name}").state
    assert found is not None
    return found


def test_a_pod_that_was_not_tried_yet_is_told_who_is_ahead(harness: Harness) -> None:
    harness.put(pod("p"), pod("high", priority=9), pod("middle", priority=5))

    assert state(harness) == PodState(
        where=Whereabouts.ACTIVE,
        words="not tried yet: 2 pods ahead, first default/high",
        attempts=0,
        since=START,
        pods_ahead=2,
    )
    assert state(harness, "high").words == "not tried yet: it is next"


def test_a_gated_pod_is_told_by_whom_and_is_evaluated_all_the_same(harness: Harness) -> None:
    harness.put(node("n1"), pod("p", gates=["example.com/x", "example.com/y"]))

    told = explain(harness, "default/p")
    assert told.state == PodState(
        where=Whereabouts.GATED,
        words="gated by SchedulingGates: waiting for scheduling gates:"
        " [example.com/x example.com/y]",
        attempts=0,
        since=START,
        waits_for=("SchedulingGates",),
        woken_by={"SchedulingGates": ("Pod/UpdatePodSchedulingGatesEliminated",)},
    )
    assert told.evaluation is not None
    assert told.evaluation.notes == ("evaluated as if it were not gated",)
    assert told.evaluation.choice is not None
    assert told.evaluation.choice.node == "n1"


async def test_an_unschedulable_pod_is_told_whom_it_waits_for(harness: Harness) -> None:
    harness.put(node("n1", taints=[taint("a")]), node("n2", cpu=1), pod("p", cpu=2))
    await harness.until_idle()

    assert state(harness) == PodState(
        where=Whereabouts.UNSCHEDULABLE,
        words="waits until something changes for NodeResourcesFit, TaintToleration,"
        " after 1 attempt",
        attempts=1,
        since=START,
        until="2001-09-09T01:51:40Z",
        waits_for=("NodeResourcesFit", "TaintToleration"),
        woken_by={
            "NodeResourcesFit": (
                "Pod/Delete",
                "Pod/UpdatePodScaleDown",
                "Node/Add",
                "Node/UpdateNodeAllocatable",
                "resource.k8s.io/DeviceClass/Add",
                "resource.k8s.io/DeviceClass/Update",
            ),
            "TaintToleration": ("Node/Add", "Node/UpdateNodeTaint", "Pod/UpdatePodToleration"),
        },
    )


async def test_a_pod_in_backoff_is_told_until_when(harness: Harness) -> None:
    harness.cluster.bind_error = OSError("refused")
    harness.put(node("n1"), pod("p"))
    await harness.until_idle()

    told = state(harness)
    assert told == PodState(
        where=Whereabouts.BACKOFF,
        words="in backoff until 2001-09-09T01:46:42Z, 2 s from now, after 1 attempt;"
        " the last attempt ended in an error",
        attempts=1,
        since=START,
        until="2001-09-09T01:46:42Z",
    )
    harness.clock.advance(1.9)
    harness.queue.flush_backoff_completed()
    assert state(harness).where is Whereabouts.BACKOFF
    harness.clock.advance(0.1)
    harness.queue.flush_backoff_completed()
    assert state(harness).words == "to be tried again, after 1 attempt: it is next"


async def test_a_pod_is_bound_after_it_is_being_bound(harness: Harness) -> None:
    harness.put(node("n1"), pod("p"))
    queued = harness.queue.pop()
    assert queued is not None
    assert state(harness).words == "is being tried"
    (binding,) = harness.scheduler.scheduling_cycle(queued)

    assert state(harness) == PodState(
        where=Whereabouts.BINDING,
        words="being bound to n1 at attempt 1",
        node="n1",
        attempts=1,
        since=START,
    )
    await harness.scheduler.binding_cycle.run(binding)
    assert state(harness) == PodState(
        where=Whereabouts.BOUND, words="bound to n1 at attempt 1", node="n1", attempts=1
    )


def test_a_pod_that_was_bound_by_somebody_else(harness: Harness) -> None:
    harness.put(node("n1"), pod("p", node="n1", scheduler="other"))

    told = explain(harness, "default/p")
    assert told.state == PodState(where=Whereabouts.BOUND, words="bound to n1", node="n1")
    assert told.evaluation is None


def test_a_pod_of_another_scheduler(harness: Harness) -> None:
    harness.put(node("n1"), pod("p", scheduler="other"))

    assert state(harness) == PodState(
        where=Whereabouts.FOREIGN,
        words="waits for another scheduler: spec.schedulerName is 'other', not one of"
        " default-scheduler",
    )


def test_where_nothing_is_scheduled_no_pod_is_about_to_be_queued(harness: Harness) -> None:
    harness.put(node("n1"))
    waiting = pod("p")
    harness.cluster.pods[waiting.key] = waiting  # as the watch tells, but not the queue

    here, elsewhere = (
        explainer(harness, schedules=schedules).explain("default/p", limit=None)
        for schedules in (True, False)
    )

    assert here is not None
    assert here.state == PodState(where=Whereabouts.UNQUEUED, words="has not reached the queue yet")
    assert elsewhere is not None
    assert elsewhere.state == PodState(
        where=Whereabouts.FOREIGN,
        words="waits for default-scheduler elsewhere: nothing is scheduled here",
    )
    assert elsewhere.evaluation is not None
    assert elsewhere.evaluation.choice is not None


async def test_a_pod_that_waits_for_permit_is_told_for_whom_and_until_when() -> None:
    harness, (binding,) = permitted("p")
    told = PodState(
        where=Whereabouts.WAITING,
        words="has room on n1, and waits for Permit of Hesitant",
        node="n1",
        attempts=1,
        since=START,
        waits_for=("Hesitant",),
    )
    assert state(harness) == told

    task = asyncio.create_task(harness.scheduler.binding_cycle.run(binding), name="bind p")
    await asyncio.sleep(0)
    until = "2001-09-09T01:47:40Z"
    assert state(harness) == told.model_copy(
        update={"until": until, "words": f"{told.words} until {until}"}
    )
    assert binding.waiting is not None
    binding.waiting.allow("Hesitant")
    await task
    assert state(harness).where is Whereabouts.BOUND


async def test_a_pod_for_which_others_must_leave_is_told_which() -> None:
    harness = Harness()
    harness.cluster.lets_victims_linger = True
    harness.put(node("n1", cpu=1), pod("old", cpu=1, node="n1"), pod("p", cpu=1, priority=5))
    await harness.until_idle()

    told = state(harness)
    assert (told.nominated_node, told.leaving) == ("n1", ("default/old",))
    assert told.words.endswith("; nominated to n1, which default/old must leave")


@pytest.mark.parametrize(
    ("node_name", "words"),
    [
        pytest.param("n1", "is being deleted; bound to n1", id="bound"),
        pytest.param("", "is being deleted; not tried yet: it is next", id="in the queue"),
    ],
)
def test_a_pod_that_is_being_deleted_says_so(harness: Harness, node_name: str, words: str) -> None:
    harness.put(node("n1"), pod("p", node=node_name, deleted=START))

    told = explain(harness, "default/p")
    assert told.state is not None
    assert told.state.words == words
    assert (told.evaluation is not None) == bool(node_name), "it will not be tried any more"


async def test_a_waiting_pod_that_is_being_deleted_says_so(harness: Harness) -> None:
    harness.put(node("n1", cpu=1), pod("p", cpu=2))
    await harness.until_idle()
    harness.put(pod("p", cpu=2, deleted=START))

    assert state(harness).words == (
        "is being deleted; waits until something changes for NodeResourcesFit, after 1 attempt"
    )


def test_a_nominated_pod_says_so(harness: Harness) -> None:
    harness.put(node("n1"), pod("p", nominated="n1"))

    told = explain(harness, "default/p")
    assert told.state is not None
    assert told.state.nominated_node == "n1"
    assert told.state.words == "not tried yet: it is next; nominated to n1"
    assert told.evaluation is not None
    assert told.evaluation.notes == ("n1 is nominated and fits: no other node is considered",)


def test_extenders_are_not_asked_and_that_is_told() -> None:
    harness = Harness(
        config={
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [{"urlPrefix": "http://nobody", "filterVerb": "filter"}],
        }
    )
    harness.put(node("n1"), pod("p"))

    evaluated = explain(harness, "default/p").evaluation
    assert evaluated is not None
    assert evaluated.notes == ("evaluated without the extenders, which have a say, too",)


async def test_a_bound_pod_is_evaluated_as_if_it_had_no_node_yet(harness: Harness) -> None:
    harness.put(node("n1", cpu=1), node("n2", cpu=1), pod("p", cpu=1, ports=[80]))
    await harness.until_idle()
    before = harness.cache.table.generation.tolist()

    told = explain(harness, "default/p").evaluation
    assert told is not None
    assert told.notes == ("evaluated on the cluster as it is now, as if the pod had no node yet",)
    assert [each.node for each in told.nodes if each.fits] == ["n1", "n2"]
    assert harness.cache.table.generation.tolist() == before
    harness.cache.check_invariants()


async def test_asking_changes_no_decision(harness: Harness) -> None:
    twin = Harness()
    for each in (harness, twin):
        each.put(*(node(f"n{i}") for i in range(5)), *(pod(f"p{i}") for i in range(20)))
    for i in range(20):
        explain(harness, f"default/p{i}")
    await harness.until_idle()
    await twin.until_idle()

    assert harness.placements() == twin.placements()


async def test_attempts_are_recorded_with_all_scores_and_the_runner_up(harness: Harness) -> None:
    harness.put(node("n1", cpu=4), node("n2", cpu=2), node("n3", cpu=1), pod("p", cpu=1))
    await harness.until_idle()
    harness.clock.advance(5)

    (past,) = explain(harness, "default/p").history
    assert (past.attempt, past.node, past.num_feasible, past.seconds_ago) == (1, "n1", 3, 5)
    assert past.choice is not None
    assert (past.choice.runner_up, past.choice.decided_by) == ("n2", "NodeResourcesFit")
    assert [score.node for score in past.best] == ["n1", "n2", "n3"]
    fit = past.best[0].plugins["NodeResourcesFit"]
    assert (fit.raw, fit.normalized, fit.weight, fit.weighted) == (86, 86, 1, 86)
    assert sum(past.choice.differences.values()) == past.best[0].total - past.best[1].total


async def test_all_equals_are_counted_and_the_chosen_one_comes_first(harness: Harness) -> None:
    harness.put(*(node(f"n{i}") for i in range(8)), pod("p"))
    await harness.until_idle()

    (past,) = explain(harness, "default/p").history
    assert past.choice is not None
    assert past.choice.words.endswith("chance decides between 8 nodes with the same total")
    assert past.best[0].node == past.node == harness.placements()["p"]
    assert len(past.best) == 5


def test_an_unknown_pod_has_no_explanation(harness: Harness) -> None:
    assert explainer(harness).explain("default/p", limit=1) is None


async def test_decisions_come_newest_first(harness: Harness) -> None:
    harness.put(node("n1"), pod("a", priority=1), pod("b"))
    await harness.until_idle()

    told = explainer(harness).decisions()
    assert [past.pod for past in told] == ["default/b", "default/a"]
    assert explainer(harness).decisions(limit=1) == told[:1]
    assert explainer(harness).decisions("default/a") == told[1:]
